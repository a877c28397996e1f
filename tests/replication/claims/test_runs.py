"""All runs side by side."""

import pandas as pd
import pytest
from command_line import list_files
from worlds import ALL_CLAIMS

from replication.claims.runs import counts, known, ledgers


@pytest.fixture
def root(tmp_path):
    for name, verdict in {"results/small": "fails", "reported/papers": "holds", "reported/zeta": "untested"}.items():
        run = pd.DataFrame(
            {"id": ALL_CLAIMS["id"][::-1], "verdict": verdict, "effect": -0.12345, "interval": "", "data": "real"}
        ).assign(kind=ALL_CLAIMS["kind"], stability="")
        if verdict == "untested":
            run["effect"] = None
        (tmp_path / name).mkdir(parents=True)
        run.to_csv(tmp_path / name / "claims.csv", index=False)
        list_files(tmp_path / name)
    return tmp_path


def test_the_profile_comes_first_and_the_papers_last(root):
    assert list(ledgers(root, "small")) == ["small", "zeta", "papers"]


def test_claims_of_which_a_run_knows_nothing_are_untested(root):
    run = ledgers(root, "small")["papers"].iloc[:3]
    table = known(ALL_CLAIMS, run)
    assert table["id"].tolist() == ALL_CLAIMS["id"].tolist()
    assert (table["verdict"] == "untested").sum() == len(ALL_CLAIMS) - 3


def test_counts_are_of_findings_and_generated_data_count_apart(root):
    runs = ledgers(root, "small")
    findings = runs["small"].index[runs["small"]["kind"] == "finding"]
    assert 10 < len(findings) < len(ALL_CLAIMS)
    runs["small"].loc[findings[:3], "data"] = "generated"
    runs["small"].loc[findings[3], ["verdict", "stability"]] = ["holds", "changes with the Pareto set: fails"]
    runs["zeta"].loc[findings[:3], "data"] = "generated"  # nothing was tested there
    table = counts(runs)
    none = dict.fromkeys(["fails", "holds", "undecided", "untested", "demonstration"], 0)
    assert table.loc["small"].to_dict() == none | {"fails": len(findings) - 4, "undecided": 1, "demonstration": 3}
    assert table.loc["zeta"].to_dict() == none | {"untested": len(findings)}


def test_results_stand_in_for_the_stored_run_of_their_profile(tmp_path):
    for folder in ("results/demo", "reported/demo", "reported/papers", "reported/zebra"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "claims.csv").write_text(f"id,verdict,effect,interval\n{folder},holds,1,\n")
        list_files(tmp_path / folder)
    found = {name: table["id"].item() for name, table in ledgers(tmp_path, "demo").items()}
    assert found == {"demo": "results/demo", "zebra": "reported/zebra", "papers": "reported/papers"}
    assert list(found) == ["demo", "zebra", "papers"]
    assert next(iter(ledgers(tmp_path, "mine"))) == "demo"
