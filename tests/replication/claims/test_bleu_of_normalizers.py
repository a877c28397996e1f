"""BLEU of the normalisers' translators, from the counts of their sentences; one model of each decides nothing."""

import numpy as np
import pandas as pd
import pytest
from made_models import speed

from replication.claims.finding import UNKNOWN
from replication.claims.normalizer_speed import TESTS
from replication.results.bleu import COUNTS, corpus_bleu

SENTENCES = 200


@pytest.fixture
def folder(tmp_path):
    """Every contender's sentences of ten words, of which it gets some right; but for one, all get the same."""
    (written,) = speed(lambda _: {}, [1.0]).values()
    rng, rows = np.random.default_rng(0), []
    right = rng.integers(5, 9, size=SENTENCES)
    for name, whose in zip(written["contender"], written["implementation"], strict=True):
        matched = right + (rng.integers(-1, 2, size=SENTENCES) if (name, whose) == ("sparsemax", "entmax") else 0)
        for number, words in enumerate(matched):
            counts = [10, 10, *(words - np.arange(4)), *(10 - np.arange(4))]
            rows.append([name, whose, number, *counts])
    table = pd.DataFrame(rows, columns=["contender", "implementation", "sentence", *COUNTS])
    totals = table.groupby(["contender", "implementation"])[COUNTS].sum()
    keys = zip(written["contender"], written["implementation"], strict=True)
    written.assign(bleu=[corpus_bleu(totals.loc[whose].to_numpy()) for whose in keys]).to_csv(
        tmp_path / "speed.csv", index=False
    )
    table.to_parquet(tmp_path / "sentences.parquet")
    return tmp_path


def test_who_translates_alike_differs_by_nothing_and_one_model_of_each_has_no_interval(folder):
    found = {effect.what: effect for effect in TESTS["est-speed-bleu"](folder).effects}
    assert len(found) == 6
    varied = found.pop("top-k - entmax's sparsemax")
    assert all(effect.value == 0 for effect in found.values())
    assert {effect.interval for effect in [varied, *found.values()]} == {UNKNOWN}
    assert varied.n == "such models: 1 model x 200 sentences"
    bleus = pd.read_csv(folder / "speed.csv").set_index(["contender", "implementation"])["bleu"]
    assert varied.value == pytest.approx(bleus["topk"].item() - bleus["sparsemax", "entmax"])


def test_without_sentences_there_is_no_interval(folder):
    (folder / "sentences.parquet").unlink()
    assert {effect.interval for effect in TESTS["est-speed-bleu"](folder).effects} == {UNKNOWN}
