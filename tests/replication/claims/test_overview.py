"""The ledger at a glance."""

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from worlds import ALL_CLAIMS

from replication.claims.overview import bar, effect, markdown, overview, places, unmet

FINITE = st.floats(-1e6, 1e6)


def judged(verdict="holds", effect=0.5, interval="0.2 to 0.8", **more) -> pd.Series:
    row = {"verdict": verdict, "effect": effect, "interval": interval, "n": "3 seeds", "premise": ""}
    return pd.Series(row | {"where": "", "change": "more seeds", "data": "real", "stability": ""} | more)


@pytest.fixture
def run() -> pd.DataFrame:
    rows = [judged() for _ in ALL_CLAIMS["id"]]
    rows[1] = judged("untested", "", "", n="", change="", data="generated")
    rows[3] = judged(where="sparsity 0.870-0.990", data="generated")
    rows[2] = judged("not comparable", premise="gold_sparsity >= 0.95 (0.82); bigram_share <= 0.5 (0.1)")
    return pd.DataFrame(rows).assign(id=ALL_CLAIMS["id"].to_numpy())


@given(FINITE, st.floats(0, 1e3), st.floats(0, 1e3), FINITE, st.sampled_from([">=", "<="]))
def test_what_is_for_the_claim_lies_to_the_right_of_the_threshold(value, below, above, threshold, relation):
    row = judged(effect=value, interval=f"{value - below!r} to {value + above!r}")
    low, middle, high = places(row, relation, threshold)
    assert -1 <= low <= middle <= high <= 1
    holds = value >= threshold if relation == ">=" else value <= threshold
    assert (middle >= 0) == holds
    assert len(bar((low, middle, high))) == 13
    assert bar((low, middle, high)).count("●") == 1


def test_an_effect_has_its_unit_and_its_interval_if_there_is_one():
    assert effect(judged(), "points") == "0.5 points (0.2 to 0.8)"
    assert effect(judged(interval="")) == "0.5"


def test_a_row_says_what_the_ledger_does(run):
    table = overview(ALL_CLAIMS, run)
    assert table["number"].tolist() == list(range(1, len(ALL_CLAIMS) + 1))
    assert table["premise"][2] == "gold_sparsity >= 0.95 (0.82)"
    assert (table["effect"][1], table["place"][1]) == ("", None)
    assert table["needed"][0] == "at most 1e-05 nats"
    assert table["n"][[0, 3]].tolist() == ["3 seeds", "sparsity 0.870-0.990; 3 seeds"]
    assert table["change"][[0, 1]].tolist() == ["more seeds", ""]


def test_every_claim_is_linked_once_and_stands_below_its_paper(run):
    text = markdown(ALL_CLAIMS, {"mine": run, "other": run.iloc[:1]}, "mine")
    assert text.count(".ipynb)") == len(ALL_CLAIMS)
    assert [line[3:] for line in text.splitlines() if line.startswith("## ")] == list(
        dict.fromkeys(ALL_CLAIMS["paper"])
    )
    first = next(line for line in text.splitlines() if line.startswith("| 1 "))
    assert first.count("✓ holds") == 2


def test_verdicts_on_generated_data_are_demonstrations(run):
    lines = markdown(ALL_CLAIMS, {"mine": run}, "mine").splitlines()
    marked = [int(line.split(" ")[1]) for line in lines if "(demonstration)" in line]
    assert marked == [4]  # the second claim was not tested


def test_premises_that_are_met_are_not_told():
    assert unmet("gold_sparsity >= 0.95 (0.988); bigram_share <= 0.5 (0.7 of all)") == [
        "bigram_share <= 0.5 (0.7 of all)"
    ]


def test_the_ledger_stays_narrow_and_needs_no_emoji_font(run):
    """Other runs share one cell per claim, and text fonts such as DejaVu have the signs of verdicts."""
    few, many = (
        markdown(ALL_CLAIMS, {"mine": run} | {f"run{n}": run for n in range(count)}, "mine") for count in (1, 9)
    )
    columns = [text.splitlines()[2].count("|") - 1 for text in (few, many)]
    assert columns == [5, 5]
    assert "✓ holds: run0 0.5, run1 0.5" in many
    assert max(map(ord, many)) < 0x2800


def test_a_cell_has_the_interval_what_it_varies_over_and_the_unmet_premise(run):
    line = next(line for line in markdown(ALL_CLAIMS, {"mine": run}, "mine").splitlines() if line.startswith("| 3 "))
    cell = line.split(" | ")[3].strip()
    assert cell.startswith("– not comparable<br>0.5 points of recall (0.2 to 0.8)<br>`")
    assert cell.endswith("`<br>3 seeds<br>gold_sparsity >= 0.95 (0.82)")
