"""The forest plot of the ledger: where its points stand, and how they look."""

import pandas as pd
import pytest

from replication.plots.forest import STYLES, forest

COLUMNS = [
    "statement", "paper", "verdict", "stability", "effect", "interval", "relation", "threshold",
]  # fmt: skip
ROWS = [
    ("more", "First", "holds", "stable", 3.0, "2 to 4", ">=", 1.0),
    ("more", "First", "undecided", "changes with one half", 1.5, "-0.5 to 3.5", ">=", 1.0),
    ("less", "Second", "fails", "", 5.0, "", "<=", 1.0),
]


@pytest.fixture
def columns():
    return forest(pd.DataFrame(ROWS, columns=COLUMNS)).axes


def points(columns):
    markers = {marker for _, marker in STYLES.values()}
    return [line for axes in columns for line in axes.lines if line.get_marker() in markers]


def test_effects_stand_on_the_side_where_the_claim_holds(columns):
    # The first claim's largest distance from its threshold is 3, the second's 4, towards lower values.
    assert [line.get_xdata()[0] for line in points(columns)] == pytest.approx([2 / 3, 0.5 / 3, -1.0])


def test_intervals_are_measured_from_the_threshold(columns):
    lines = [
        line for axes in columns for line in axes.lines if line.get_linewidth() == 0.8 and line.get_color() != "black"
    ]
    expected = [[1 / 3, 1.0], [-1.5 / 3, 2.5 / 3], [-1.0, -1.0]]
    assert [list(line.get_xdata()) for line in lines] == [pytest.approx(ends) for ends in expected]


def test_verdicts_differ_in_colour_and_shape_and_what_our_choices_change_is_hollow(columns):
    assert [line.get_marker() for line in points(columns)] == [STYLES[row[2]][1] for row in ROWS]
    assert [line.get_markerfacecolor() == "white" for line in points(columns)] == [False, True, False]
    assert len(set(STYLES.values())) == len({marker for _, marker in STYLES.values()}) == len(STYLES)


def test_a_claim_has_one_line_below_the_name_of_its_paper(columns):
    assert [[label.get_text() for label in axes.get_yticklabels()] for axes in columns] == [["more"], ["less"]]
    assert [[text.get_text() for text in axes.texts] for axes in columns] == [["First"], ["Second"]]


def test_papers_fill_both_columns_evenly_and_are_not_divided():
    rows = [
        (f"{paper}{number}", paper, *ROWS[0][2:])
        for paper, count in (("A", 5), ("B", 3), ("C", 1))
        for number in range(count)
    ]
    columns = forest(pd.DataFrame(rows, columns=COLUMNS)).axes
    assert [[text.get_text() for text in axes.texts] for axes in columns] == [["A"], ["B", "C"]]
    assert [len(axes.get_yticklabels()) for axes in columns] == [5, 4]
