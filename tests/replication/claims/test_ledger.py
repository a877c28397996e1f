"""The claim ledger: every claim has a test, a premise that is understood and a notebook; ledgers say what was read."""

import fnmatch
import json
from datetime import date

import pandas as pd
import pytest
from made import MADE
from made_graphs import CONFIGURATION
from worlds import ALL_CLAIMS, judged, write_world

from replication.claims import TASKS, TESTS, VERDICTS, ledger
from replication.claims.premises import MEASURES, parse
from replication.claims.rule import Rule
from replication.files.paths import ROOT
from replication.results.budgets import deciding

COLUMNS = [
    "id",
    "paper",
    "section",
    "statement",
    "kind",
    "criterion",
    "budgets",
    "premise",
    "verdict",
    "stability",
    "effect",
    "interval",
]
COLUMNS += ["where", "n", "data", "numbers", "change", "inputs"]
PREMISES = pd.read_csv(ROOT / "config/published/premises.csv", keep_default_na=False)
#: Runs whose tables are stored beside their ledgers; those of the demo are made by everybody, and not stored.
REPORTED = ["papers", *sorted(path.parent.name for path in (ROOT / "reported").glob("*/config.yaml"))]


def test_every_claim_has_a_test_and_every_test_a_claim():
    assert set(ALL_CLAIMS["id"]) == set(TESTS)
    assert ALL_CLAIMS["id"].is_unique
    assert len(TESTS) == sum(map(len, TASKS.values()))


def test_claims_have_a_rule_a_premise_that_is_measured_and_a_notebook():
    for claim in ALL_CLAIMS.itertuples():
        Rule(claim.relation, claim.threshold)
        (task,) = (task for task, tests in TASKS.items() if claim.id in tests)
        assert {condition.name for condition in parse(claim.premise)} <= set(MEASURES[task]), claim.id
        assert json.loads((ROOT / "notebooks" / f"{claim.notebook}.ipynb").read_text())["cells"]
        assert all((claim.statement, claim.effect, claim.paper, claim.section))


def test_claims_have_a_kind_a_source_of_their_threshold_and_a_reason_for_their_budgets():
    for claim in ALL_CLAIMS.itertuples():
        assert claim.kind in ("finding", "identity", "ours"), claim.id
        assert claim.threshold_source, claim.id
        assert bool(claim.budgets) == bool(claim.budgets_reason), claim.id
        assert not claim.budgets or deciding(claim.budgets)
    assert (ALL_CLAIMS.loc[ALL_CLAIMS["paper"] == "This repository", "kind"] == "ours").all()


def conditions(claims):
    return {
        (claim.id, f"{condition.name} {condition.relation} {condition.number:g}")
        for claim in claims.itertuples()
        for condition in parse(claim.premise)
    }


def test_every_premise_quotes_its_source_and_says_when_it_was_added():
    sourced = set()
    for row in PREMISES.itertuples():
        (condition,) = parse(row.condition)
        assert row.quote, row.condition
        assert row.reason, row.condition
        assert date(2026, 11, 20) <= date.fromisoformat(row.added)
        named = {claim for pattern in row.claims.split() for claim in fnmatch.filter(ALL_CLAIMS["id"], pattern)}
        words = f"{condition.name} {condition.relation} {condition.number:g}"
        used = {claim for claim, premise in conditions(ALL_CLAIMS) if premise == words}
        assert named & used, row.condition
        sourced |= {(claim, words) for claim in named & used}
    assert conditions(ALL_CLAIMS) == sourced


@pytest.mark.parametrize(
    "change", [lambda claims: claims[1:], lambda claims: claims.replace("mlm-perplexity", "other")]
)
def test_a_claim_without_a_test_or_a_test_without_a_claim_is_an_error(tmp_path, change):
    with pytest.raises(ValueError, match="`claims` must have exactly the ids of the tests, got"):
        ledger(change(ALL_CLAIMS), tmp_path)


def test_inputs_change_with_what_was_read_and_with_nothing_else(tmp_path):
    claim, other = "mlm-recall-distance-first", "mlm-perplexity-distance-first"
    tables = {"config.yaml": CONFIGURATION} | MADE[other]([1.0, 1.1])
    before = judged(tmp_path, tables)["inputs"]
    write_world(tmp_path, {"masked_lm/replaced/seeds.csv": tables["masked_lm/replaced/seeds.csv"].assign(perplexity=2)})
    after = judged(tmp_path, {})["inputs"]
    assert len(before[claim]) == 12
    assert after[claim] == before[claim]
    assert after[other] != before[other]
    assert after["clm-xl-beats-block"] == ""


@pytest.mark.parametrize("run", REPORTED)
def test_ledgers_of_reported_runs_are_what_the_rules_say_now(run, tmp_path):
    from replication.claims.printed import ledger_of_papers

    stored = pd.read_csv(ROOT / "reported" / run / "claims.csv", keep_default_na=False)
    assert stored.columns.tolist() == COLUMNS
    assert set(stored["verdict"]) <= set(VERDICTS)
    if run == "papers":
        found = ledger_of_papers(ALL_CLAIMS, ROOT / "config/published", tmp_path / "papers")
    else:
        found = ledger(ALL_CLAIMS, ROOT / "reported" / run)
    found.to_csv(tmp_path / "now.csv", index=False)
    now = pd.read_csv(tmp_path / "now.csv", keep_default_na=False)
    pd.testing.assert_frame_equal(now, stored, check_exact=False, rtol=1e-4)
