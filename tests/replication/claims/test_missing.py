"""A run that lacks comparisons: its claims can still fail, but not hold."""

from functools import partial

import pytest
from made import MADE
from made_graphs import CONFIGURATION, FOUR_ROUNDS
from worlds import judged_alone

CLAIM, SWEEP = "mlm-recall-distance-first", "masked_lm/sweep/seeds.csv"
HOLDS, FAILS = [1.0, 1.1, 0.9], [-1.0, -1.1, -0.9]


def judged(folder, values, change):
    """Judge the claim on its made sweep, after a change."""
    tables = MADE[CLAIM](values)
    tables[SWEEP] = change(tables[SWEEP])
    return judged_alone(folder, {"config.yaml": CONFIGURATION} | tables, CLAIM)


def without(method, table):
    return table[table["method"] != method]


def denser(method, table):
    """Move a method's points to sparsities below those of the budgets."""
    return table.assign(sparsity=table["sparsity"].where(table["method"] != method, table["sparsity"] - 0.2))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (partial(without, "window"), "no point of window"),
        (
            partial(denser, "window"),
            "at 3 % of the pairs (1 x gold) these have no points on both sides: window (starts at 22 %, needs smaller windows)",
        ),
    ],
)
def test_without_a_comparison_a_claim_that_would_hold_is_untested_and_one_that_fails_still_fails(
    tmp_path, change, words
):
    row = judged(tmp_path / "holds", HOLDS, change)
    assert (row["verdict"], row["effect"], row["interval"]) == ("untested", None, "")
    assert words in row["numbers"]
    assert words in row["change"]
    assert "sparsefinder-distance - sparsefinder-kmeans at 6 % of the pairs (2 x gold): 1 (" in row["numbers"]
    failing = judged(tmp_path / "fails", FAILS, change)
    assert (failing["verdict"], failing["effect"]) == ("fails", pytest.approx(-1.0))
    assert words in failing["numbers"]
    whole = judged(tmp_path / "whole", HOLDS, lambda table: table)
    assert whole["verdict"] == "holds"


def test_settings_that_would_reach_a_budget_are_named(tmp_path):
    row = judged(tmp_path, HOLDS, partial(denser, "reformer"))
    assert "rounds below" not in row["change"]  # one round is the fewest
    assert row["change"].endswith("reformer (starts at 22 %, needs smaller windows)")


def test_four_rounds_and_more_centroids_are_no_point_of_the_papers(tmp_path):
    """A sweep that has Reformer by four rounds alone lacks the paper's Reformer, but not every variant."""

    def only_four(table):
        return table[(table["method"] != "reformer") | table["setting"].str.contains("4")]

    row = judged(tmp_path / "papers", HOLDS, only_four)
    assert row["verdict"] == "untested"
    assert "no point of reformer" in row["change"]
    tables = MADE[CLAIM](HOLDS)
    tables[SWEEP] = only_four(tables[SWEEP])
    every = judged_alone(tmp_path / "every", {"config.yaml": CONFIGURATION} | tables, f"{CLAIM}-every-variant")
    assert every["verdict"] == "fails"
    assert every["numbers"].startswith("sparsefinder-distance - reformer")


def test_pairs_that_share_no_method_are_not_compared(tmp_path):
    tables = MADE["mt-pairs-alike"](HOLDS)
    for pair, method in (("en-de", "reformer"), ("en-fr", "window")):
        sweep = tables[f"translation/{pair}/sweep/seeds.csv"]
        tables[f"translation/{pair}/sweep/seeds.csv"] = sweep[sweep["method"] == method]
    row = judged_alone(tmp_path, {"config.yaml": CONFIGURATION} | tables, "mt-pairs-alike")
    assert (row["verdict"], row["change"]) == ("untested", "three methods of both pairs")


@pytest.mark.parametrize(
    "claim", ["mlm-recall-kmeans-second-every-variant", "mt-recall-sparsefinder-dominates-every-variant"]
)
def test_rows_about_every_variant_do_not_repeat_those_about_the_papers_variants(tmp_path, claim):
    tables = {"config.yaml": CONFIGURATION} | MADE[claim]([3.0, 3.1, 2.9])
    assert judged_alone(tmp_path / "all", tables, claim)["verdict"] == "holds"
    fewer = {
        name: table[table["setting"] != FOUR_ROUNDS] if "setting" in table else table for name, table in tables.items()
    }
    assert judged_alone(tmp_path / "fewer", fewer, claim)["verdict"] == "untested"
