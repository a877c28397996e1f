"""Claims about one of several budgets: the number of blocks that serves them best, and the k that is best."""

from functools import partial

import numpy as np
import pytest
from made_graphs import CONFIGURATION
from made_models import BLOCKS, FULL_MS, blocks, forms
from scipy import stats
from worlds import judged_alone

FASTER = "blocks-faster-than-full-entmax"
TIMED = "masked_lm/blocks/sizes/timed.csv"
METHODS = {method for method, _ in BLOCKS}
SEEDS = [-1.0, 0.0, 1.0]


def at_three_counts(eight, many, spread=0.0):
    """Both versions' nats and milliseconds with 8 and with 22 blocks; nats of v1 with 8 differ between seeds."""

    def changed(value):
        cells = {(method, 8): (9.0, 1.0) for method in METHODS}
        for version in ("sparsefinder-v1", "sparsefinder-v2"):
            cells |= {(version, 8): eight, (version, 22): many}
        nats, milliseconds = eight
        return cells | {("sparsefinder-v1", 8): (nats + spread * value, milliseconds)}

    return {"config.yaml": CONFIGURATION} | blocks(changed, SEEDS)


@pytest.mark.parametrize(
    ("eight", "many", "verdict", "chosen"),
    [
        ((1.0, 2.0), (-9.0, 5.0), "holds", 8),
        ((3.0, 2.0), (-9.0, 3.0), "holds", 22),
        ((3.0, 2.0), (-9.0, 5.0), "fails", None),
    ],
)
def test_one_number_of_blocks_that_is_better_and_faster_is_enough(tmp_path, eight, many, verdict, chosen):
    row = judged_alone(tmp_path, at_three_counts(eight, many), FASTER)
    assert row["verdict"] == verdict
    if chosen:
        assert f"K = {chosen} of 8, 22" in row["numbers"]


def test_an_interval_of_a_chosen_number_of_blocks_allows_for_the_choice(tmp_path):
    """Nats gained from 2 to 8 blocks are 0.5 with a standard deviation of 0.2: too little for one of two chosen numbers."""
    row = judged_alone(tmp_path, at_three_counts((1.5, 0.1), (9.0, 3.0), spread=0.2), FASTER)
    assert stats.t.ppf(0.975, 2) * 0.2 / np.sqrt(3) < 0.5
    half = stats.t.ppf(1 - 0.025 / 2, 2) * 0.2 / np.sqrt(3)
    assert [float(end) for end in row["interval"].split(" to ")] == pytest.approx([0.5 - half, 0.5 + half], abs=1e-3)
    assert row["verdict"] == "undecided"


@pytest.mark.parametrize("slow", ["full", "full-kernel"])
def test_blocks_have_to_be_faster_than_the_faster_full_model(tmp_path, slow):
    tables = at_three_counts((-9.0, 1.5 * FULL_MS), (-9.0, 1.5 * FULL_MS))
    timed = tables[TIMED]
    timed.loc[timed["method"] == slow, "model_repeats"] = "1.0 1.0 1.0"
    assert judged_alone(tmp_path, tables, FASTER)["verdict"] == "fails"


@pytest.mark.parametrize(
    ("better", "verdict", "named"),
    [
        ({}, "holds", ""),
        ({("Top-k", 2): 31.0}, "fails", "k = 8 - k = 2"),
        ({("Top-k", 16): 31.0}, "fails", "k = 8 - k = 16"),
        ({"Full": 31.0}, "fails", "k = 8 - full"),
    ],
)
def test_eight_has_to_beat_the_smallest_and_the_largest_k_and_full_attention(tmp_path, better, verdict, named):
    worse = {("Top-k", 2): 29.0, ("Top-k", 16): 29.0, "Full": 29.0}
    made = partial(forms, "sentences", lambda value: worse | better)
    row = judged_alone(tmp_path, {"config.yaml": CONFIGURATION} | made([0.0] * 3), "est-k-8-is-best")
    assert row["verdict"] == verdict
    assert row["numbers"].startswith(f"fr-en: {named}")
