"""Comparisons that a profile asks for: judged as the papers' claims are, and counted in no table of these."""

import pandas as pd
import pytest
from command_line import list_files
from made_graphs import CONFIGURATION, masked_nats, translated_bleu
from worlds import ALL_CLAIMS, judged, write_world

from replication.claims.compared import comparisons, with_comparisons
from replication.claims.one_claim import one_claim
from replication.claims.overview import overview
from replication.claims.rule import Rule
from replication.claims.runs import counts, ledgers
from replication.config.grids import COMPARED
from replication.results.budgets import deciding
from replication.tables import claims as tables
from workflow.ending import ending

MADE = {"recall": masked_nats, "perplexity": masked_nats, "bleu": translated_bleu}


def world(of, values=(4.0, 5.0, 6.0), leader="routing", rival="window") -> dict:
    """Tables in which the leader is so far ahead of the rival, and their comparison in the configuration."""
    task = "translation" if of == "bleu" else "masked_lm"
    row = {"method": leader, "against": [rival], "of": of}
    return MADE[of]([leader], [rival], values) | {
        "config.yaml": CONFIGURATION | {task: CONFIGURATION[task] | {"corpus": {"source": "folder"}, "compare": [row]}}
    }


def compared(table: pd.DataFrame) -> pd.Series:
    (row,) = table[table.index.str.startswith(COMPARED)].to_dict("records")
    return row


@pytest.mark.parametrize(
    ("values", "verdict"),
    [((4.0, 5.0, 6.0), "holds"), ((-4.0, -5.0, -6.0), "fails"), ((-1.0, 0.5, 1.0), "undecided")],
)
@pytest.mark.parametrize("of", ["recall", "perplexity"])
def test_a_comparison_is_judged_at_the_budgets_with_interval_and_stability(tmp_path, of, values, verdict):
    row = compared(judged(tmp_path, world(of, values)))
    assert row["verdict"] == verdict
    assert "at 1 x gold" in row["numbers"]
    assert "at 5 x gold" in row["numbers"]
    assert row["interval"]
    assert row["change"]
    assert row["stability"] == ("stable" if verdict != "undecided" else "")


def test_in_translation_it_holds_if_it_does_in_every_language_pair(tmp_path):
    write_world(tmp_path, world("bleu"))
    ((task, claim, test),) = comparisons(tmp_path)
    finding = test(tmp_path / task, deciding(claim["budgets"]))
    assert Rule(claim["relation"], claim["threshold"]).judge(finding)[0] == "holds"
    assert {effect.what for effect in finding.every_effect()} == {f"{p}: routing - window" for p in ("en-de", "en-fr")}


def test_it_is_judged_as_the_papers_claim_about_the_same_methods_is(tmp_path):
    leader, rival = "sparsefinder-distance", "sparsefinder-kmeans"
    rivals = [rival, "routing", "sparsefinder-quantization", "reformer", "bigbird", "longformer", "window"]
    tables = world("recall", leader=leader, rival=rival)
    tables |= masked_nats([leader], rivals, (4.0, 5.0, 6.0))
    tables["config.yaml"]["masked_lm"]["compare"][0]["against"] = rivals
    table = judged(tmp_path, tables)
    same = ["criterion", "verdict", "stability", "effect", "interval", "where", "n", "numbers", "change"]
    assert {name: compared(table)[name] for name in same} == table.loc["mlm-recall-distance-first", same].to_dict()


def test_a_method_without_points_is_missing(tmp_path):
    row = compared(judged(tmp_path, world("recall", rival="landmarks")))
    assert row["verdict"] == "holds"  # its points are made
    tables = world("recall")
    tables["config.yaml"]["masked_lm"]["compare"][0]["against"] = ["nothing"]
    row = compared(judged(tmp_path / "other", tables))
    assert (row["verdict"], row["change"]) == ("untested", "no point of nothing")


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout with a run of this profile, once below results and once stored, in which a comparison holds."""
    for name in ("results/mine", "reported/stored", "reported/papers"):
        (tmp_path / name).mkdir(parents=True)
        judged(tmp_path / name, world("recall")).reset_index().to_csv(tmp_path / name / "claims.csv", index=False)
        list_files(tmp_path / name)
    (tmp_path / "config/published").mkdir(parents=True)
    ALL_CLAIMS.to_csv(tmp_path / "config/published/claims.csv", index=False)
    monkeypatch.setattr(tables, "ROOT", tmp_path)
    monkeypatch.setattr(tables, "configuration", lambda name: name)
    monkeypatch.setattr(tables, "regime", lambda *_: "masked language model")
    return tmp_path


def test_the_ledgers_page_shows_it_behind_the_claims(checkout):
    runs = ledgers(checkout, "mine")
    claims = with_comparisons(ALL_CLAIMS, checkout / "results/mine")
    assert claims["id"].tolist()[:-1] == ALL_CLAIMS["id"].tolist()
    last = overview(claims, runs["mine"]).iloc[-1]
    assert (last["statement"], last["verdict"]) == ("recall, masked_lm: routing is at least as good as window", "holds")
    assert "Runs on real data: holds in 2." in one_claim(claims, runs, len(claims))
    assert with_comparisons(ALL_CLAIMS, checkout).equals(ALL_CLAIMS)


def test_it_counts_in_no_table_of_the_papers_claims(checkout):
    assert (counts(ledgers(checkout, "mine")).sum(axis=1) == (ALL_CLAIMS["kind"] == "finding").sum()).all()
    shown = {name: getattr(tables, name)() for name in ("verdicts", "stable", "main", "abstracts", "counts")}
    shown |= {"outcomes": str(tables.outcomes("compared")), "judged": tables.judged("stored")}
    path = checkout / "reported/stored/claims.csv"
    path.write_text("".join(line for line in path.open() if not line.startswith(COMPARED)))
    without = {name: getattr(tables, name)() for name in ("verdicts", "stable", "main", "abstracts", "counts")}
    assert shown == without | {"outcomes": str(tables.outcomes("compared")), "judged": tables.judged("stored")}


def test_the_end_of_a_run_names_it_and_does_not_count_it(checkout):
    (checkout / "results/mine/report.html").touch()
    first, second, *_ = ending(checkout / "results/mine", 0).strip().splitlines()
    assert first.startswith(f"{len(ALL_CLAIMS)} claims: ")
    assert second.startswith("recall, masked_lm: routing is at least as good as window: holds, ")
