"""Sparsity at a recall: on fronts by hand, and resampled with their sequences."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replication.claims.retrofit import points_of, sparsities_at, sparsity_at
from sparselib import pareto_front


def test_between_two_points_it_is_interpolated():
    assert sparsity_at(np.array([1.0, 0.9]), np.array([0.4, 0.8]), 0.95) == pytest.approx(0.6)


def test_a_point_that_another_dominates_changes_nothing():
    recall, sparsity = np.array([1.0, 0.95, 0.9]), np.array([0.4, 0.3, 0.8])
    assert sparsity_at(recall, sparsity, 0.95) == pytest.approx(0.6)


@pytest.mark.parametrize("target", [0.85, 1.0])
def test_beyond_the_front_nothing_is_said(target):
    assert np.isnan(sparsity_at(np.array([0.99, 0.9]), np.array([0.4, 0.8]), target))


@given(st.lists(st.tuples(*[st.integers(0, 50)] * 2), min_size=2, max_size=12, unique_by=lambda point: point[0]))
def test_every_point_of_the_front_is_on_it(points):
    recall, sparsity = np.array(points, float).T / 50
    for place in pareto_front(sparsity, recall):
        assert sparsity_at(recall, sparsity, recall[place]) == pytest.approx(sparsity[place])


def test_sequences_are_drawn_together_for_all_points():
    """Of two sequences, resamples have the first, the second or both; recall moves with sparsity."""
    rows = [
        {"seed": -1, "method": "one", "setting": setting, "sequence": sequence, "layer": 0, "head": 0, "drift": 0.0}
        | {"recall": recall, "sparsity": sparsity + 0.2 * sequence}
        for setting, recall, sparsity in (("a", 1.0, 0.2), ("b", 0.9, 0.4))
        for sequence in (0, 1)
    ]
    points = points_of(pd.DataFrame(rows))
    assert str(points.units) == "2 sequences"
    found = sparsities_at(points, "one", 0.95)
    assert found[0] == pytest.approx(40.0)
    assert set(found[1:, 0].round(6)) == {30.0, 40.0, 50.0}


def test_tuned_to_what_a_resample_found():
    rows = [
        {"seed": seed, "method": "one", "setting": setting, "sequence": 0, "layer": 0, "head": 0, "drift": 0.0}
        | {"recall": recall, "sparsity": sparsity + 0.1 * seed}
        for setting, recall, sparsity in (("a", 1.0, 0.2), ("b", 0.9, 0.4))
        for seed in (0, 1)
    ]
    points = points_of(pd.DataFrame(rows))
    targets = np.where(np.arange(len(points.measures["recall"])) == 0, 0.9, 1.0)
    found = sparsities_at(points, "one", targets)
    assert found[0].tolist() == pytest.approx([40.0, 50.0])
    assert found[1].tolist() == pytest.approx([20.0, 30.0])
