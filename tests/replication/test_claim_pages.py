"""Pages of the site about claims."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from browser import act, in_a_browser

from replication.claims import TESTS
from replication.pages import interactive, write_claims
from replication.pages.comparisons import comparisons
from replication.pages.judged import Claim, judged_claims
from replication.pages.rules import changes_of, functions_of
from replication.tables.claims import at_a_glance, counts, published, runs

#: Interval as ledgers write it behind a comparison's effect.
INTERVAL = re.compile(r": -?[\d.e+-]+ \(-?[\d.e+-]+ to -?[\d.e+-]+\)")


@pytest.fixture(scope="module")
def claims() -> list[Claim]:
    return judged_claims()


@pytest.fixture(scope="module")
def ledger() -> str:
    return interactive()


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("claims")
    (folder / "of-a-removed-claim.md").touch()
    write_claims(folder)
    return folder


def test_every_claim_has_a_page_and_its_rows(pages):
    names = {f"{claim}{ending}" for claim in published()["id"] for ending in (".md", ".csv")}
    assert {path.name for path in pages.iterdir()} == names


def test_rows_have_every_interval_of_the_ledgers_and_one_deciding_comparison_for_each_verdict(pages, claims):
    for claim in claims:
        if not claim.rows:
            continue
        table = pd.read_csv(pages / f"{claim.id}.csv", keep_default_na=False, dtype=str)
        for row in claim.rows:
            of_run = table[table["run"] == row["run"]]
            deciding = of_run[of_run["decides"] == "True"]
            effects = [] if row["verdict"] == "untested" else [float(row["effect"])]
            assert deciding["effect"].astype(float).tolist() == effects
            others = of_run[(of_run["decides"] == "False") & (of_run["low"] != "")]
            assert len(others) == sum(bool(INTERVAL.search(part)) for part in row["numbers"].split("; "))


def test_a_comparison_has_the_verdict_of_its_own_interval():
    shared = {
        "relation": ">=",
        "threshold": 0.0,
        "verdict": "fails",
        "effect": -2.0,
        "interval": "-3 to -1",
        "where": "x",
    }
    row = pd.Series(
        shared | {"numbers": "a - b; a - c at 5 %: 1.5 (-inf to 3); a - d: -1e-05 (-2e-05 to -1e-06); a: behind"}
    )
    found, notes = comparisons(row)
    assert [(one.what, one.verdict, one.decides) for one in found] == [
        ("a - b at x", "fails", True),
        ("a - c at 5 %", "undecided", False),
        ("a - d", "fails", False),
    ]
    assert found[2].interval == (-2e-05, -1e-06)
    assert notes == ["a: behind"]


def test_a_page_shows_the_code_that_judges_the_claim(pages):
    for claim in TESTS:
        functions = functions_of(claim)
        assert functions, claim
        text = (pages / f"{claim}.md").read_text(encoding="utf-8")
        assert text.count("```python") == len(functions)
        assert "def tested(" not in text or claim.endswith(("en-de", "en-fr", "enwik8", "text8"))
    assert '@_claim("mlm-distance-saves")' in (pages / "mlm-distance-saves.md").read_text(encoding="utf-8")


def test_changes_of_a_rule_are_those_that_name_the_claim_or_its_group():
    assert "`est-speed-bleu`" in [row[1] for row in changes_of("est-speed-bleu")]
    assert any("`mlm-recall-*`" in row[1] for row in changes_of("mlm-recall-routing-third"))
    assert changes_of("fac-edges") == []


def test_the_ledger_has_every_claim_with_the_runs_that_measured_it(ledger, claims):
    assert re.findall(r'<div class="claim" id="([\w-]+)"', ledger) == published()["id"].tolist()
    # Also of runs that lack a comparison, whose rows say which.
    measured = sum(((table["verdict"] != "untested") | (table["data"] != "")).sum() for table in runs().values())
    assert ledger.count("<tr data-regime=") == sum(len(claim.rows) for claim in claims) == measured
    assert not re.search(r'(?:src|<link[^>]*href)="', ledger)


def test_the_default_runs_verdicts_are_those_of_the_results(claims):
    """The ledger's rows of a run count as the table of all runs counts them."""
    cells = next(line for line in counts().splitlines() if line.startswith("| [demo]")).strip("| ").split(" | ")
    rows = [row for claim in claims if claim.stated["kind"] == "finding" for row in claim.rows]
    words = [row["counts_as"] for row in rows if row["run"] == "demo" and row["data"] == "real"]
    found = [words.count(word) for word in ("holds", "fails", "depends on the budget", "undecided", "not comparable")]
    assert found == [int(cell) for cell in cells[1:]]


@pytest.fixture
def shown(ledger, tmp_path) -> Callable[[str], dict]:
    """Return a function from actions in the ledger to the sentence that it then shows, and the visible and open claims."""
    (tmp_path / "index.html").write_text(ledger, encoding="utf-8")

    def shown(actions: str) -> dict:
        return json.loads(act(tmp_path / "index.html", f"""
            const claims = state => [...page.querySelectorAll(".claim" + state)].map(claim => claim.id);
            {actions}
            setTimeout(() => document.title = JSON.stringify({{ sentence: page.getElementById("shown").textContent,
              visible: claims(":not([hidden])"), open: claims(":has([aria-expanded=true])") }}), 100);"""))  # fmt: skip

    return shown


@in_a_browser
def test_the_ledger_first_counts_what_the_readme_counts(shown):
    assert re.findall(r"\d+", shown("")["sentence"]) == re.findall(r"\d+", at_a_glance())


@in_a_browser
def test_the_ledger_shows_the_chosen_claims(shown, claims):
    found = shown('choose("regime", "translation"); choose("outcome", "holds");')
    expected = [
        claim.id
        for claim in claims
        if claim.stated["kind"] == "finding" and claim.outcomes.get("translation") == "holds"
    ]
    assert found["visible"] == expected != []
    assert found["sentence"].startswith(f"{len(expected)} of {len(expected)} claims")


@in_a_browser
def test_an_address_with_an_id_opens_that_claim_although_a_filter_hides_it(shown):
    found = shown('choose("outcome", "holds"); page.location.hash = "retrofit-distance-leads";')
    assert found["open"] == ["retrofit-distance-leads"]
    assert len(found["visible"]) == len(published())
