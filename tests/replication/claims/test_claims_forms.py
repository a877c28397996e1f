"""The claims about translation with attention forms: their verdicts follow from the tables."""

import pandas as pd
import pytest
from worlds import judged, write_world

from replication.claims.forms import TESTS
from replication.results import by_budget, read_forms

#: BLEU of a world in which all claims hold, by unit, form and budget (None: Full).
WORLD = {
    "sentences": {
        ("Full", None): 30.0,
        ("Top-k", 16): 30.6,
        ("Top-k", 8): 31.0,
        ("Top-k", 2): 30.4,
        ("Window", 16): 30.5,
        ("Window", 8): 30.0,
        ("Window", 2): 25.0,
        ("Random", 16): 20.0,
        ("Random", 8): 10.0,
        ("Random", 2): 2.0,
    },
    "documents": {
        ("Full", None): 1.0,
        ("Top-k OOW", 16): 25.0,
        ("Top-k OOW", 8): 26.0,
        ("Window", 16): 23.0,
        ("Window", 8): 24.0,
        ("BigBird", 16): 1.0,
        ("BigBird", 8): 8.0,
        ("Global", 16): 0.5,
        ("Global", 8): 0.6,
    },
}
#: Entropy, weight on the end and aligned words by form, of the bottom and the top layer.
CROSS = {"Full": [(3.0, 0.1, 0.3), (2.0, 0.5, 0.4)], "Top-k": [(1.0, 0.1, 0.3), (1.5, 0.1, 0.6)]}
SEEDED = {("Full", None), ("Top-k", 8)}


def tables(changes=(), tested_full=31.0, cross=None, seeds=(0, 1, 2), pairs=("fr-en",), units=tuple(WORLD)):
    """The tables of a workflow, by path."""
    found, changes = {}, dict(changes)
    for unit in units:
        for pair in pairs:
            for (form, budget), bleu in WORLD[unit].items():
                for seed in seeds if (form, budget) in SEEDED else seeds[:1]:
                    value = changes.get((unit, form, budget, seed), changes.get((unit, form, budget), bleu))
                    cell = {"form": form, "budget": budget, "seed": seed}
                    at = f"forms/{unit}/{pair}/{form.lower().replace(' ', '-')}_k{budget}_seed{seed}"
                    rows = [{"tested_with": form, "bleu": value, **cell}]
                    if form != "Full":
                        rows.append({"tested_with": "Full", "bleu": tested_full, **cell})
                    found[f"{at}/measured.csv"] = pd.DataFrame(rows)
                    of_form = (CROSS | (cross or {})).get(form, CROSS["Full"])
                    layers = [
                        {"layer": layer, "entropy": e, "on_the_end": end, "aligned_words": words, **cell}
                        for layer, (e, end, words) in enumerate(of_form)
                    ]
                    found[f"{at}/cross_attention.csv"] = pd.DataFrame(layers)
    return found


@pytest.fixture
def verdicts(tmp_path):
    return lambda **world: judged(tmp_path, tables(**world), TESTS)


def test_where_all_claims_hold_the_ledger_says_so(verdicts):
    table = verdicts()
    assert (table["verdict"] == "holds").all(), table["verdict"]
    assert table.loc["est-top-8-beats-full", ["mean", "seeds"]].tolist() == [1.0, 3]
    assert table.loc["xst-top-k-leads", "mean"] == pytest.approx((30.6 + 31 + 30.4) / 3 - (30.5 + 30 + 25) / 3)


@pytest.mark.parametrize(
    ("claim", "changes"),
    [
        ("est-top-8-beats-full", {("sentences", "Top-k", 8, 2): 29.9}),
        ("est-k-8-is-best", {("sentences", "Top-k", 16): 31.1}),
        ("xst-top-k-leads", {("sentences", "Window", 2): 36.0}),
        ("xst-top-k-survives-small-k", {("sentences", "Top-k", 2): 1.0}),
        ("xst-global-forms-fail", {("sentences", "Random", 16): 90.0}),
        ("xst-documents-local-beats-global", {("documents", "Global", 16): 60.0}),
        ("xst-documents-oow-leads", {("documents", "BigBird", 16): 50.0}),
        ("xst-documents-full-is-worse", {("documents", "Full", None): 25.5}),
    ],
)
def test_a_claim_fails_where_its_table_turns(verdicts, claim, changes):
    assert verdicts(changes=changes).loc[claim, "verdict"] == "fails"


def test_averages_are_over_budgets_that_all_of_them_have(verdicts):
    """Without Global at 16 and 8, Random at 2 decides, and Top-k at 2."""
    nan = float("nan")
    changes = {("sentences", "Random", k): nan for k in (16, 8)} | {("sentences", "Top-k", 2): 1.0}
    assert verdicts(changes=changes).loc["xst-global-forms-fail", ["verdict", "mean"]].tolist() == ["fails", -1.0]


def test_training_only_is_tested_with_full_attention(verdicts):
    table = verdicts(tested_full=29.0)
    assert table.loc["est-training-only", ["verdict", "mean"]].tolist() == ["fails", -1.0]
    assert table.loc["est-top-8-beats-full", "verdict"] == "holds"


@pytest.mark.parametrize(
    ("claim", "layers"),
    [
        ("est-bottom-layer-concentrates", [(3.1, 0.1, 0.3), (1.5, 0.1, 0.6)]),
        ("est-top-layer-off-the-end", [(1.0, 0.1, 0.3), (1.5, 0.6, 0.6)]),
        ("est-top-layer-aligns", [(1.0, 0.1, 0.3), (1.5, 0.1, 0.3)]),
    ],
)
def test_cross_attention_decides_by_its_own_layer_and_measure(verdicts, claim, layers):
    table = verdicts(cross={"Top-k": layers}).loc[[name for name in TESTS if "layer" in name], "verdict"]
    assert table[table == "fails"].index.tolist() == [claim]


def test_every_pair_has_to_hold(tmp_path):
    write_world(tmp_path, tables())
    write_world(tmp_path, tables(changes={("sentences", "Window", 2): 36.0}, pairs=("en-ro",)))
    table = judged(tmp_path, {}, TESTS)
    assert table.loc["xst-top-k-leads", "verdict"] == "fails"
    assert "fr-en:" in table.loc["xst-top-k-leads", "numbers"]


def test_without_gold_alignment_alignment_is_untested(verdicts):
    nan = float("nan")
    blind = {form: [(e, end, nan) for e, end, _ in layers] for form, layers in CROSS.items()}
    table = verdicts(cross=blind)
    assert table.loc["est-top-layer-aligns", "verdict"] == "untested at this scale"
    assert table.loc["est-top-layer-off-the-end", "verdict"] == "holds"


def test_what_was_not_trained_is_untested(verdicts):
    table = verdicts(units=("sentences",))
    about = table.index.str.startswith("xst-documents")
    assert (table.loc[about, "verdict"] == "untested at this scale").all()
    assert (table.loc[~about, "verdict"] == "holds").all()


def test_budgets_are_columns_largest_first_and_forms_in_the_papers_order(tmp_path):
    write_world(tmp_path, tables(changes={("sentences", "Top-k", 8, 0): 34.0}))
    table = by_budget(read_forms(tmp_path / "forms" / "sentences" / "fr-en"))
    assert table.columns.tolist() == ["full", 16, 8, 2]
    assert table.index.tolist() == ["Full", "Window", "Random", "Top-k"]
    assert table.loc["Top-k", 8] == pytest.approx((34 + 31 + 31) / 3)
    assert table.loc["Full"].isna().tolist() == [False, True, True, True]
    with pytest.raises(FileNotFoundError, match="no table of a trained attention form"):
        read_forms(tmp_path)
