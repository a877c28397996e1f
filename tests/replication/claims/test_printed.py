"""The papers' own numbers, by the same rules: every claim holds of what they print, but for contradictions that are named."""

import pandas as pd
import pytest
from worlds import ALL_CLAIMS, judged

from replication.claims.printed import CONFIGURATION, CONTRADICTIONS, tables
from replication.paths import ROOT

PUBLISHED = ROOT / "config/published"


@pytest.fixture(scope="module")
def papers(tmp_path_factory):
    return judged(tmp_path_factory.mktemp("papers"), {"config.yaml": CONFIGURATION} | tables(PUBLISHED), printed=True)


def test_what_the_papers_print_holds_but_for_what_they_contradict(papers):
    verdicts = papers["verdict"][papers["verdict"] != "untested"]
    assert set(verdicts[verdicts != "holds"].index) == set(CONTRADICTIONS)
    assert (verdicts[list(CONTRADICTIONS)] == "fails").all()
    assert (verdicts == "holds").sum() >= 20


def test_contradictions_are_the_numbers_that_decide(papers):
    assert papers.loc["est-top-8-beats-full", "effect"] == pytest.approx(33.61 - 33.73)
    assert papers.loc["est-k-8-is-best", "effect"] == pytest.approx(33.61 - 33.99)
    softmax = 1.40 - 0.10 * (193 - 151) / (210 - 151)
    assert papers.loc["clm-top-8-better-at-equal-span", "effect"] == pytest.approx(1 - 1.10 / softmax, abs=1e-5)


def test_the_gains_that_the_text_claims_are_the_effects_but_for_news(papers):
    assert papers.loc["xst-top-k-leads", "effect"] == pytest.approx(1.33, abs=0.005)
    assert papers.loc["xst-documents-oow-leads", "effect"] == pytest.approx(1.11, abs=0.005)  # 1.13 in the text
    assert papers.loc["clm-span-top-8-fewer-positions", "effect"] == pytest.approx(39.25)


@pytest.mark.parametrize(
    ("claim", "table", "form", "budget", "bleu"),
    [
        ("xst-top-k-survives-small-k", "sentences/en-ro", "Window", 2, 32.5),
        ("xst-top-k-leads", "sentences/fr-en", "Window", 2, 38.0),
        ("xst-documents-bigbird-below-window", "documents/ted-en-de", "BigBird", 32, 70.0),
    ],
)
def test_another_cell_turns_a_verdict(tmp_path, claim, table, form, budget, bleu):
    printed = {"config.yaml": CONFIGURATION} | tables(PUBLISHED)
    cells = printed[f"forms/{table}/every_seed/measured.csv"]
    cells.loc[(cells["form"] == form) & (cells["budget"] == budget), "bleu"] = bleu
    assert judged(tmp_path, printed, printed=True).loc[claim, "verdict"] == "fails"


def test_the_gains_of_explicit_sparse_transformer_are_those_of_its_text():
    table = pd.read_csv(PUBLISHED / "explicit_sparse_translation.csv").set_index("dataset")
    gained = (table["top_8"] - table["full"]).round(1)
    assert gained.to_dict() == {"WMT14 En-De": 0.3, "IWSLT15 En-Vi": 0.5, "IWSLT14 De-En": 0.3}


def test_every_contradiction_is_of_a_claim():
    assert set(CONTRADICTIONS) <= set(ALL_CLAIMS["id"])
