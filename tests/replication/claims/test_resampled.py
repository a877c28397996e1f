"""Claims whose tables have the scores of single sequences beside them: intervals are over sequences and seeds."""

import numpy as np
import pandas as pd
import pytest
from made import MADE
from made_graphs import CONFIGURATION, PAIRS
from worlds import judged_alone

from replication.results.bleu import COUNTS, corpus_bleu
from replication.results.points import POINT

SEQUENCES = 30


def with_losses(spread, values):
    """Nats of the made table, spread over sequences; a method's own part of the spread is so large."""
    tables = {"config.yaml": CONFIGURATION} | MADE["mlm-perplexity-routing-third"](values)
    random = np.random.default_rng(0)
    hard = random.normal(0, 3, SEQUENCES)
    table = tables["masked_lm/replaced/seeds.csv"]
    own = {method: random.normal(0, spread, SEQUENCES) for method in table["method"].unique()}
    rows = []
    for row in table.to_dict("records"):
        nats = row["nats"] + (hard - hard.mean()) + (own[row["method"]] - own[row["method"]].mean())
        point = {key: row[key] for key in POINT}
        rows += [point | {"sequence": n, "nats": 5 * value, "places": 5} for n, value in enumerate(nats)]
    return tables | {"masked_lm/replaced/losses_seed0.parquet": pd.DataFrame(rows)}


@pytest.mark.parametrize(("spread", "verdict"), [(0.1, "holds"), (30.0, "undecided")])
def test_nats_have_an_interval_over_seeds_and_sequences(tmp_path, spread, verdict):
    row = judged_alone(tmp_path, with_losses(spread, [0.9, 1.0, 1.1]), "mlm-perplexity-routing-third")
    assert row["verdict"] == verdict
    assert row["effect"] == pytest.approx(1.0, abs=0.01) or verdict == "undecided"
    assert row["n"].startswith(f"this model: 3 student seeds x {SEQUENCES} sequences")
    assert "to" in row["interval"]


def test_sequences_of_one_seed_decide_nothing(tmp_path):
    row = judged_alone(tmp_path, with_losses(0.1, [1.0]), "mlm-perplexity-routing-third")
    assert (row["verdict"], row["interval"]) == ("undecided", "")


def sentences(random, words, quality):
    """Counts of made-up sentences, of which so many words are right."""
    reference = random.integers(8, 20, words)
    right = random.binomial(reference, quality)
    matches = np.stack([np.maximum(right - 2 * order, 0) for order in range(4)], axis=1)
    ngrams = np.stack([reference - order for order in range(4)], axis=1)
    return pd.DataFrame(np.column_stack([reference, reference, matches, ngrams]), columns=COUNTS)


@pytest.mark.parametrize(
    ("quality", "models", "verdict"),
    [(0.95, 3, "fails"), (0.5, 3, "holds"), (0.7, 3, "undecided"), (0.95, 1, "undecided"), (0.5, 1, "undecided")],
)
def test_forms_are_compared_on_the_same_sentences_and_by_several_models(tmp_path, quality, models, verdict):
    """Sentences of one model each never decide between forms, whatever their scores."""
    cells = []
    tables = MADE["est-top-8-beats-full"]([0.0] * models)
    at = "forms/sentences/fr-en/every_seed"
    for seed in range(models):
        for form, budget, right in (("Full", None, quality), ("Top-k", 8, 0.7)):
            random = np.random.default_rng([seed, form == "Full", 2])
            own = {"tested_with": form, "form": form, "budget": budget, "seed": seed}
            cells.append(sentences(random, 60, right).assign(sentence=range(60), **own))
    tables[f"{at}/sentences.parquet"] = pd.concat(cells, ignore_index=True)
    row = judged_alone(tmp_path, {"config.yaml": CONFIGURATION} | tables, "est-top-8-beats-full")
    scores = [corpus_bleu(cell[COUNTS].to_numpy(float).sum(0)) for cell in cells]
    assert row["effect"] == pytest.approx(np.mean(scores[1::2]) - np.mean(scores[::2]), rel=1e-4)
    assert row["verdict"] == verdict
    counted = f"{models} models" if models > 1 else "1 model"
    assert row["n"].startswith(f"such models: {counted} x 60 sentences")
    assert (row["interval"] == "") == (models == 1)


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
    assert row["n"].startswith("this model: 2 student seeds x 20 sentences")
    low, high = map(float, row["interval"].split(" to "))
    assert 1 < low < row["effect"] < high


@pytest.mark.parametrize(("models", "verdict"), [(3, "holds"), (1, "undecided")])
def test_bits_are_compared_on_the_same_segments_and_by_several_models(tmp_path, models, verdict):
    tables = MADE["clm-xl-beats-block"]([0.0] * models)
    hard = np.random.default_rng(4).normal(2, 1, 50)
    for corpus in ("enwik8", "text8"):
        for seed in range(models):
            for model, more in (("block", 0.05), ("transformer-xl", 0.0)):
                bits = 9 * (hard + more + np.random.default_rng([seed, more > 0]).normal(0, 0.01, 50))
                table = pd.DataFrame({"bits": bits, "characters": 9})
                tables[f"char_lm/{corpus}/models/{model}/seed{seed}/segments.parquet"] = table
    row = judged_alone(tmp_path, {"config.yaml": CONFIGURATION} | tables, "clm-xl-beats-block")
    counted = f"{models} models" if models > 1 else "1 model"
    assert row["verdict"] == verdict
    assert row["n"].startswith(f"such models: {counted} x 50 segments")
    assert row["effect"] == pytest.approx(0.05, abs=0.005)
