"""The claim ledger: every claim has a test, a premise that is understood and a notebook; ledgers say what was read."""

import json

import pandas as pd
import pytest
from made import CONFIGURATION, MADE
from worlds import ALL_CLAIMS, judged, write_world

from replication.claims import TASKS, TESTS, VERDICTS, ledger
from replication.claims.finding import Rule
from replication.claims.premises import MEASURES, parse
from replication.paths import ROOT

COLUMNS = ["id", "paper", "section", "statement", "criterion", "premise", "verdict", "effect", "interval", "n"]
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


@pytest.mark.parametrize(
    "change", [lambda claims: claims[1:], lambda claims: claims.replace("mlm-perplexity", "other")]
)
def test_a_claim_without_a_test_or_a_test_without_a_claim_is_an_error(tmp_path, change):
    with pytest.raises(ValueError, match="claims without a test"):
        ledger(change(ALL_CLAIMS), tmp_path)


def test_inputs_change_with_what_was_read_and_with_nothing_else(tmp_path):
    claim, other = "mlm-recall-distance-first", "mlm-perplexity-distance-first"
    tables = {"config.yaml": CONFIGURATION} | MADE[other]([1.0, 1.1])
    before = judged(tmp_path, tables)["inputs"]
    write_world(tmp_path, {"masked_lm/replaced/seeds.csv": tables["masked_lm/replaced/seeds.csv"].assign(more=1)})
    after = judged(tmp_path, {})["inputs"]
    assert len(before[claim]) == 12
    assert after[claim] == before[claim]
    assert after[other] != before[other]
    assert after["clm-xl-beats-block"] == ""


@pytest.mark.parametrize("run", REPORTED)
def test_ledgers_of_reported_runs_are_what_the_rules_say_now(run, tmp_path):
    from replication.claims.printed import write

    stored = pd.read_csv(ROOT / "reported" / run / "claims.csv", keep_default_na=False)
    assert stored.columns[: len(COLUMNS)].tolist() == COLUMNS
    assert set(stored["verdict"]) <= set(VERDICTS)
    results = ROOT / "reported" / run
    if run == "papers":
        write(ROOT / "config/published", results := tmp_path / "papers")
    ledger(ALL_CLAIMS, results, printed=run == "papers").to_csv(tmp_path / "now.csv", index=False)
    now = pd.read_csv(tmp_path / "now.csv", keep_default_na=False)
    pd.testing.assert_frame_equal(now, stored, check_exact=False, rtol=1e-4)
