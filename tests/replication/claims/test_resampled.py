"""Claims whose tables have the scores of single sequences beside them: intervals are over sequences and seeds."""

import numpy as np
import pandas as pd
import pytest
from made import CONFIGURATION, MADE, PAIRS
from worlds import judged_alone

from replication.bleu import COUNTS, corpus_bleu
from replication.results import POINT

SEQUENCES = 30


def with_losses(spread):
    """Nats of the made table, spread over sequences; a method's own part of the spread is so large."""
    tables = {"config.yaml": CONFIGURATION} | MADE["mlm-perplexity-routing-third"]([1.0])
    random = np.random.default_rng(0)
    hard = random.normal(0, 3, SEQUENCES)
    rows = []
    for row in tables["masked_lm/replaced/seeds.csv"].to_dict("records"):
        own = random.normal(0, spread, SEQUENCES)
        nats = row["nats"] + (hard - hard.mean()) + (own - own.mean())
        point = {key: row[key] for key in POINT}
        rows += [point | {"sequence": n, "nats": 5 * value, "places": 5} for n, value in enumerate(nats)]
    return tables | {"masked_lm/replaced/losses_seed0.parquet": pd.DataFrame(rows)}


@pytest.mark.parametrize(("spread", "verdict"), [(0.1, "holds"), (30.0, "undecided")])
def test_one_seed_has_an_interval_over_sequences(tmp_path, spread, verdict):
    row = judged_alone(tmp_path, with_losses(spread), "mlm-perplexity-routing-third")
    assert row["verdict"] == verdict
    assert row["effect"] == pytest.approx(1.0, abs=0.01) or verdict == "undecided"
    assert row["n"] == f"1 student seed x {SEQUENCES} sequences"
    assert "to" in row["interval"]


def sentences(random, words, quality):
    """Counts of made-up sentences, of which so many words are right."""
    reference = random.integers(8, 20, words)
    right = random.binomial(reference, quality)
    matches = np.stack([np.maximum(right - 2 * order, 0) for order in range(4)], axis=1)
    ngrams = np.stack([reference - order for order in range(4)], axis=1)
    return pd.DataFrame(np.column_stack([reference, reference, matches, ngrams]), columns=COUNTS)


@pytest.mark.parametrize(("quality", "verdict"), [(0.95, "fails"), (0.5, "holds"), (0.7, "undecided")])
def test_forms_are_compared_on_the_same_sentences(tmp_path, quality, verdict):
    random, cells = np.random.default_rng(1), []
    tables = MADE["est-top-8-beats-full"]([0.0])
    at = "forms/sentences/fr-en/every_seed"
    for form, budget, right in (("Full", None, quality), ("Top-k", 8, 0.7)):
        counts = sentences(np.random.default_rng(2) if quality == 0.7 else random, 60, right)
        own = {"tested_with": form, "form": form, "budget": budget, "seed": 0}
        cells.append(counts.assign(sentence=range(60), **own))
    if verdict == "undecided":  # all but equal: one sentence was better, another worse
        cells[1].loc[[0, 1], "matches1"] += [1, -1]
    tables[f"{at}/sentences.parquet"] = pd.concat(cells, ignore_index=True)
    row = judged_alone(tmp_path, {"config.yaml": CONFIGURATION} | tables, "est-top-8-beats-full")
    scores = [corpus_bleu(cell[COUNTS].to_numpy(float).sum(0)) for cell in cells]
    assert row["effect"] == pytest.approx(scores[1] - scores[0], rel=1e-4)
    assert row["verdict"] == verdict
    assert row["n"] == "1 model x 60 sentences"


def test_translation_under_replaced_graphs_has_an_interval_over_sentences(tmp_path):
    claim = "mt-bleu-low-sparsity-close-to-full"
    tables, random = {"config.yaml": CONFIGURATION} | MADE[claim]([0.5, 0.5]), np.random.default_rng(3)
    for at in PAIRS:
        table = tables[f"{at}/replaced/seeds.csv"]
        for column in ("bleu", "recall"):
            table[column] = table[column].fillna(0.5)
        parts = []
        for row in table.to_dict("records"):
            quality = 0.9 if row["method"] in ("full", "gold graph") else 0.5
            point = {key: row[key] for key in POINT}
            parts.append(sentences(random, 20, quality).assign(sentence=range(20), **point))
        tables[f"{at}/replaced/sentences_seed0.parquet"] = pd.concat(parts, ignore_index=True).drop_duplicates(
            [*POINT, "sentence"]
        )
    row = judged_alone(tmp_path, tables, claim)
    assert row["verdict"] == "fails"
    assert row["n"] == "2 student seeds x 20 sentences"
    low, high = map(float, row["interval"].split(" to "))
    assert 1 < low < row["effect"] < high


def test_bits_are_compared_on_the_same_segments(tmp_path):
    tables = MADE["clm-xl-beats-block"]([0.0])
    hard = np.random.default_rng(4).normal(2, 1, 50)
    for corpus in ("enwik8", "text8"):
        for model, more in (("block", 0.05), ("transformer-xl", 0.0)):
            bits = 9 * (hard + more + np.random.default_rng(5).normal(0, 0.01, 50))
            table = pd.DataFrame({"bits": bits, "characters": 9})
            tables[f"char_lm/{corpus}/models/{model}/seed0/segments.parquet"] = table
    row = judged_alone(tmp_path, tables, "clm-xl-beats-block")
    assert (row["verdict"], row["n"]) == ("holds", "1 model x 50 segments")
    assert row["effect"] == pytest.approx(0.05)
