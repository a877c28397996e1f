"""Each paper's own numbers, by the same rules: its claims hold of what it prints, but for contradictions that are named."""

import pandas as pd
import pytest
from worlds import ALL_CLAIMS, CLAIMS, judged

from replication.claims.printed import BETWEEN_PAPERS, CIRCULAR, CONFIGURATION, CONTRADICTIONS, ledger_of_papers, tables
from replication.files.paths import ROOT

PUBLISHED = ROOT / "config/published"
XST, EST = "Extremely Sparse Transformer", "Explicit Sparse Transformer"


@pytest.fixture(scope="module")
def papers(tmp_path_factory):
    return ledger_of_papers(ALL_CLAIMS, PUBLISHED, tmp_path_factory.mktemp("papers")).set_index("id")


def test_what_a_paper_prints_holds_but_for_what_it_contradicts_itself(papers):
    verdicts = papers["verdict"][papers["verdict"] != "untested"]
    assert set(verdicts[verdicts != "holds"].index) == set(CONTRADICTIONS)
    assert (verdicts[list(CONTRADICTIONS)] == "fails").all()
    assert (verdicts == "holds").sum() >= 14


def test_no_printed_number_is_compared_with_itself(papers):
    assert set(CIRCULAR) <= set(papers.index)
    assert (papers.loc[list(CIRCULAR), "verdict"] == "untested").all()
    assert papers.loc[list(CIRCULAR), "numbers"].str.contains("with itself").all()


def test_the_deciding_numbers_are_those_of_the_paper_itself(papers):
    """The En-Ro row of another paper stands beside a claim and does not decide it."""
    table = pd.read_csv(PUBLISHED / "explicit_sparse_translation.csv")
    assert papers.loc["est-top-8-beats-full", "effect"] == pytest.approx(
        (table["top_8"] - table["full"]).min(), abs=1e-6
    )
    assert papers.loc["est-top-8-beats-full", "verdict"] == "holds"
    for claim in BETWEEN_PAPERS:
        assert CLAIMS.loc[claim, "paper"] == EST
        assert "contradicted by Table 1 of Extremely Sparse Transformer" in papers.loc[claim, "numbers"]
    printed = pd.read_csv(PUBLISHED / "extremely_sparse_table1.csv").set_index(["dataset", "method"])
    (row,) = (row for (dataset, method), row in printed.iterrows() if (dataset, method) == ("WMT16 En-Ro", "Top-k"))
    full = printed.loc[("WMT16 En-Ro", "Full"), "k_full"]
    assert f"{row['k8']:.2f} with k = 8, {full:.2f} with full" in BETWEEN_PAPERS["est-top-8-beats-full"]
    assert f"{row['k8']:.2f} with k = 8, {row['k16']:.2f} with k = 16" in BETWEEN_PAPERS["est-k-8-is-best"]


def test_a_contradiction_is_the_number_that_decides(papers):
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
    printed = {"config.yaml": CONFIGURATION} | tables(PUBLISHED, XST)
    cells = printed[f"forms/{table}/every_seed/measured.csv"]
    cells.loc[(cells["form"] == form) & (cells["budget"] == budget), "bleu"] = bleu
    assert judged(tmp_path, printed, printed=True).loc[claim, "verdict"] == "fails"


def test_the_gains_of_explicit_sparse_transformer_are_those_of_its_text():
    table = pd.read_csv(PUBLISHED / "explicit_sparse_translation.csv").set_index("dataset")
    gained = (table["top_8"] - table["full"]).round(1)
    assert gained.to_dict() == {"WMT14 En-De": 0.3, "IWSLT15 En-Vi": 0.5, "IWSLT14 De-En": 0.3}


def test_every_contradiction_is_of_a_claim():
    assert set(CONTRADICTIONS) | set(BETWEEN_PAPERS) <= set(ALL_CLAIMS["id"])
