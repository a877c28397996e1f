"""The Pareto front against its definition, and the area under it cell by cell.

Small integer coordinates, so that ties and duplicates are common.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparselib.fronts import pareto_front

points = st.lists(st.tuples(st.integers(0, 5), st.integers(-3, 5)), max_size=25)


def split(chosen):
    return [float(x) for x, _ in chosen], [float(y) for _, y in chosen]


def dominates(p, q):
    return p[0] >= q[0] and p[1] >= q[1] and p != q


@given(points)
@settings(deadline=None)
def test_no_returned_point_is_dominated_and_no_dropped_one_is_not(chosen):
    """No returned point is dominated, no dropped point is not."""
    front = set(pareto_front(*split(chosen)))
    for index, point in enumerate(chosen):
        assert (index in front) == (not any(dominates(other, point) for other in chosen))


@given(points)
@settings(deadline=None)
def test_front_rises_in_sparsity_and_falls_in_score(chosen):
    x, y = (np.array(side)[pareto_front(*split(chosen))] for side in split(chosen))
    assert (np.diff(x) >= 0).all()
    assert (np.diff(y) <= 0).all()


def test_duplicates_all_stay_in_their_order():
    assert pareto_front([1, 0, 1, 0.5], [1, 2, 1, 0]) == [1, 0, 2]


def test_a_perplexity_goes_in_negated():
    assert pareto_front([0.9, 0.5, 0.4], [-4.0, -3.5, -3.6]) == [1, 0]


@pytest.mark.parametrize(("x", "y"), [([1], [1, 2]), ([[1]], [[1]]), ([np.nan], [1]), ([1], [np.inf])])
def test_points_must_be_finite_and_paired(x, y):
    with pytest.raises(ValueError, match="`sparsity` and `score`"):
        pareto_front(x, y)
