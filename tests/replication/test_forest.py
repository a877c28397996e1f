"""The forest plot of the ledger: where its points stand, and how they look."""

import pandas as pd
import pytest

from replication.plots.forest import STYLES, forest

COLUMNS = [
    "statement", "paper", "regime", "verdict", "stability", "effect", "interval", "relation", "threshold",
]  # fmt: skip
ROWS = [
    ("more", "First", "translation", "holds", "stable", 3.0, "2 to 4", ">=", 1.0),
    ("more", "First", "documents", "undecided", "changes with one half", 1.5, "-0.5 to 3.5", ">=", 1.0),
    ("less", "Second", "images", "fails", "", 5.0, "", "<=", 1.0),
]


@pytest.fixture
def axes():
    (axes,) = forest(pd.DataFrame(ROWS, columns=COLUMNS)).axes
    return axes


def points(axes):
    return [line for line in axes.lines if line.get_marker() in {marker for _, marker in STYLES.values()}]


def test_effects_stand_on_the_side_where_the_claim_holds(axes):
    # The first claim's largest distance from its threshold is 3, the second's 4, towards lower values.
    assert [line.get_xdata()[0] for line in points(axes)] == pytest.approx([2 / 3, 0.5 / 3, -1.0])


def test_intervals_are_measured_from_the_threshold(axes):
    intervals = [line.get_xdata() for line in axes.lines if len(line.get_xdata()) == 2 and line.get_linewidth() == 0.8]
    expected = [[1 / 3, 1.0], [-1.5 / 3, 2.5 / 3], [-1.0, -1.0]]
    assert [list(ends) for ends in intervals[:3]] == [pytest.approx(ends) for ends in expected]


def test_verdicts_differ_in_colour_and_shape_and_what_our_choices_change_is_hollow(axes):
    assert [line.get_marker() for line in points(axes)] == [STYLES[row[3]][1] for row in ROWS]
    assert [line.get_markerfacecolor() == "white" for line in points(axes)] == [False, True, False]
    assert len(set(STYLES.values())) == len({marker for _, marker in STYLES.values()}) == len(STYLES)


def test_a_claim_has_one_row_with_its_regimes(axes):
    assert [label.get_text() for label in axes.get_yticklabels()] == ["more", "less"]
    assert {"translation, documents", "images", "First", "Second"} <= {text.get_text() for text in axes.texts}
