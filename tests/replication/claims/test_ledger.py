"""The claim ledger: every claim has a test and a notebook; what was not measured is untested."""

import json

import pytest
from worlds import ALL_CLAIMS

from replication.claims import TASKS, TESTS, ledger
from replication.paths import ROOT


def test_every_claim_has_a_test_and_every_test_a_claim():
    assert set(ALL_CLAIMS["id"]) == set(TESTS)
    assert ALL_CLAIMS["id"].is_unique
    assert len(TESTS) == sum(map(len, TASKS.values()))


def test_claims_have_a_notebook_and_numbers_a_tolerance():
    for notebook in ALL_CLAIMS["notebook"]:
        cells = json.loads((ROOT / "notebooks" / f"{notebook}.ipynb").read_text())["cells"]
        assert cells
    assert (ALL_CLAIMS["value"].isna() == ALL_CLAIMS["tolerance"].isna()).all()
    assert (ALL_CLAIMS["tolerance"].dropna() > 0).all()


@pytest.mark.parametrize(
    "change", [lambda claims: claims[1:], lambda claims: claims.replace("mlm-perplexity", "other")]
)
def test_a_claim_without_a_test_or_a_test_without_a_claim_is_an_error(tmp_path, change):
    with pytest.raises(ValueError, match="claims without a test"):
        ledger(change(ALL_CLAIMS), tmp_path, False)


def test_a_task_that_was_not_run_is_untested(tmp_path):
    table = ledger(ALL_CLAIMS, tmp_path, True)
    assert table["id"].tolist() == ALL_CLAIMS["id"].tolist()
    assert (table["verdict"] == "untested at this scale").all()
    assert (table["seeds"] == 0).all()
