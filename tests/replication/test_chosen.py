"""Settings chosen at budgets, against a search by hand."""

import pandas as pd
import pytest

from replication.results.budgets import Budget, is_measured
from replication.results.chosen import chosen


def points(**methods):
    rows = [
        {"method": name, "setting": f"x={i}", "window": 0, "recall": recall, "sparsity": 1 - share}
        for name, of_method in methods.items()
        for i, (share, recall) in enumerate(of_method)
    ]
    return pd.DataFrame(rows)


def shares(found, table):
    keys = ["method", "setting", "window"]
    return sorted(1 - table.set_index(keys).loc[list(found), "sparsity"])


def test_the_best_setting_on_each_side_is_chosen():
    """Points whose share would be on the other side, or too far, after a rise of a tenth are left out."""
    table = points(
        a=[(0.079, 0.8), (0.085, 0.7), (0.09, 0.6), (0.098, 0.9), (0.102, 0.7), (0.11, 0.8), (0.118, 0.9), (0.2, 1.0)]
    )
    assert shares(chosen(table, [Budget(0.1, "10 %")]), table) == pytest.approx([0.085, 0.11])


@pytest.mark.parametrize("above", [0.101, 0.124])
def test_close_settings_are_chosen_if_there_are_no_others(above):
    table = points(a=[(0.099, 0.5), (above, 0.8), (0.3, 0.9)])
    found = shares(chosen(table, [Budget(0.1, "10 %")]), table)
    assert found == pytest.approx([0.099, above])
    assert is_measured(pd.Series(found).to_numpy(), 0.1)


def test_a_method_that_is_not_measured_on_both_sides_is_left_out():
    assert not chosen(points(a=[(0.05, 0.5), (0.11, 0.8)]), [Budget(0.1, "10 %")])


def test_a_method_that_starts_above_a_budget_has_its_sparsest_setting():
    table = points(a=[(0.3, 0.9), (0.15, 0.5)], b=[(0.09, 0.4), (0.11, 0.6)])
    found = chosen(table, [Budget(0.1, "10 %")])
    assert ("a", "x=1", 0) in found
    assert len(found) == 3
