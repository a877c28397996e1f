"""One claim in every run."""

import pandas as pd
import pytest
from worlds import ALL_CLAIMS

from replication.claims.one_claim import one_claim

#: A claim with budgets and a premise.
NUMBER = 2


def run(verdict: str, effect: float | str, **more: str) -> pd.DataFrame:
    row = {"id": ALL_CLAIMS["id"][NUMBER - 1], "verdict": verdict, "effect": effect, "interval": "0.2 to 0.8"}
    row |= {
        "where": "sparsity 0.8-0.9",
        "n": "3 seeds",
        "premise": "",
        "change": "more seeds",
        "data": "real",
        "stability": "stable",
    }
    return pd.DataFrame([row | {"numbers": "a - b; a - c: 0.7 (0.6 to 0.8)"} | more])


def cells(text: str, name: str) -> list[str]:
    line = next(line for line in text.splitlines() if line.startswith(f"| {name} "))
    return [cell.strip() for cell in line.strip("|").split("|")]


@pytest.fixture
def runs() -> dict[str, pd.DataFrame]:
    missed = run("not comparable", 0.1, premise="gold_sparsity >= 0.95 (0.82); bigram_share <= 0.5 (0.1)")
    return {"mine": run("holds", 0.5), "silent": run("untested", "", numbers="not measured here"), "theirs": missed}


def test_the_rule_has_its_source_its_band_and_its_premise(runs):
    text = one_claim(ALL_CLAIMS, runs, NUMBER)
    stated = ALL_CLAIMS.iloc[NUMBER - 1]
    for part in ("statement", "id", "effect", "threshold_source", "budgets", "budgets_reason", "premise"):
        assert str(stated[part]) in text, part


def test_runs_that_tested_the_claim_have_a_row(runs):
    text = one_claim(ALL_CLAIMS, runs, NUMBER)
    assert cells(text, "mine")[1:] == [
        "✓ holds",
        "stable",
        "0.5 (0.2 to 0.8)",
        "sparsity 0.8-0.9; 3 seeds",
        "",
        "more seeds",
    ]
    assert cells(text, "theirs")[5] == "gold_sparsity >= 0.95 (0.82)"
    assert "silent" not in text


def test_every_comparison_of_a_run_is_listed(runs):
    text = one_claim(ALL_CLAIMS, runs, NUMBER)
    assert text.count("<details>") == text.count("</details>") == 2
    assert text.count("\n\n- a - b\n- a - c: 0.7 (0.6 to 0.8)\n\n") == 2


def test_a_claim_that_no_run_tested_has_its_rule(runs):
    text = one_claim(ALL_CLAIMS, {"silent": runs["silent"]}, NUMBER)
    assert "Runs on real data: none tested it." in text


def test_verdicts_are_counted_and_generated_pictures_are_a_demonstration(runs):
    generated = {"drawn": run("holds", 0.5, data="generated"), "second": run("holds", 0.6)}
    text = one_claim(ALL_CLAIMS, runs | generated, NUMBER)
    assert "Runs on real data: holds in 2, not comparable in 1." in text
    assert cells(text, "drawn")[1] == "✓ holds (demonstration)"


@pytest.mark.parametrize("number", [0, -1, len(ALL_CLAIMS) + 1])
def test_there_has_to_be_a_claim_of_that_number(runs, number):
    with pytest.raises(ValueError, match=f"`claim` must be a number from 1 to {len(ALL_CLAIMS)}, got {number}"):
        one_claim(ALL_CLAIMS, runs, number)
