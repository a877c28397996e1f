"""Claims that cannot be judged as they are stated are refused by name."""

import pandas as pd
import pytest
from command_line import assert_one_line, list_files, run
from worlds import ALL_CLAIMS

from replication.claims import ledger
from replication.claims.runs import ledgers

FIRST = ALL_CLAIMS["id"].iloc[0]


@pytest.mark.parametrize("threshold", [float("nan"), float("inf"), -float("inf"), "much", None])
def test_a_threshold_that_is_no_number_is_refused(tmp_path, threshold):
    """Every comparison with NaN is false, so that the claim failed."""
    claims = ALL_CLAIMS.astype({"threshold": object})
    claims.loc[0, "threshold"] = threshold
    with pytest.raises(ValueError, match=f"`claims` threshold of {FIRST} must be a finite number, got"):
        ledger(claims, tmp_path)


@pytest.mark.parametrize("relation", [">", "=", "", float("nan")])
def test_a_relation_that_is_none_is_refused(tmp_path, relation):
    claims = ALL_CLAIMS.copy()
    claims.loc[0, "relation"] = relation
    with pytest.raises(ValueError, match=f"`claims` relation of {FIRST} must be <= or >=, got"):
        ledger(claims, tmp_path)


def test_a_claim_that_is_stated_twice_is_refused(tmp_path):
    """It had two rows, whose rules could differ."""
    with pytest.raises(ValueError, match=f"`claims` must have each claim once, got {FIRST} twice"):
        ledger(pd.concat([ALL_CLAIMS, ALL_CLAIMS.iloc[:1]]), tmp_path)


@pytest.mark.parametrize("column", ["id", "threshold", "premise"])
def test_a_column_that_is_missing_is_named(tmp_path, column):
    with pytest.raises(ValueError, match=f"`claims` must have a column {column}, got"):
        ledger(ALL_CLAIMS.drop(columns=column), tmp_path)


def test_the_stage_names_the_file(tmp_path):
    results = tmp_path / "results/tiny"
    results.mkdir(parents=True)
    (results / "config.yaml").write_text("profile: tiny\n")
    list_files(results)
    (tmp_path / "published").mkdir()
    pd.concat([ALL_CLAIMS, ALL_CLAIMS]).to_csv(tmp_path / "published/claims.csv", index=False)
    done = run(tmp_path, "claims", "results/tiny", config=None, published="published", output="results/tiny/claims.csv")
    assert_one_line(done, f"published/claims.csv must have each claim once, got {FIRST} twice")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("id,verdict\n", "must have a column effect"),
        ("id,verdict,effect,interval\na,holds,1,\na,fails,1,\n", "each claim once, got a"),
    ],
)
def test_a_ledger_with_a_claim_twice_or_without_a_column_is_refused(tmp_path, content, message):
    path = tmp_path / "results/tiny/claims.csv"
    path.parent.mkdir(parents=True)
    path.write_text(content)
    list_files(path.parent)
    with pytest.raises(ValueError, match=rf"tiny/claims\.csv: must have .*{message.removeprefix('must have ')}"):
        ledgers(tmp_path, "tiny")
