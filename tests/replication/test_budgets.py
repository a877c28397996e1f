"""Budgets, and what a method reaches with them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replication.config.budgets import Budgets
from replication.results.budgets import budgets_of, deciding, hull_at, is_measured, pareto_at


def test_a_run_has_the_multiples_of_its_gold_share_and_the_shares_up_to_half_of_the_pairs():
    assert [(b.name, round(b.share, 3)) for b in budgets_of(0.099, Budgets())] == [
        ("5 %", 0.05), ("1 x gold", 0.099), ("10 %", 0.1), ("1.5 x gold", 0.149), ("2 x gold", 0.198), ("20 %", 0.2),
        ("3 x gold", 0.297), ("30 %", 0.3), ("5 x gold", 0.495), ("50 %", 0.5),
    ]  # fmt: skip
    assert [budget.name for budget in budgets_of(float("nan"), Budgets(shares=[0.2]))] == ["20 %"]


@pytest.mark.parametrize("text", ["", "gold", "1, 2", "1 x gold, 2 x gold", "gold - 0.10", "1,2 x gold"])
def test_a_text_that_names_no_budgets_is_an_error_that_shows_it(text):
    with pytest.raises(ValueError, match=r"`budgets` must be like '1, 2, 5 x gold' or '20, 50 %', got"):
        deciding(text)


@pytest.mark.parametrize(
    ("shares", "is_near"),
    [([0.08, 0.125], True), ([0.1], True), ([0.079, 0.125], False), ([0.08, 0.126], False), ([0.09, 0.095], False)],
)
def test_a_budget_needs_points_on_both_sides_within_a_quarter(shares, is_near):
    assert is_measured(np.array(shares), 0.1) == is_near


def test_the_hull_mixes_the_two_settings_that_are_best_together():
    shares, scores = np.array([0.1, 0.2, 0.4]), np.array([[0.0, 1.0, 6.0], [0.0, 5.0, 6.0]])
    assert hull_at(shares, scores, 0.2).tolist() == pytest.approx([2.0, 5.0])
    assert pareto_at(shares, scores, 0.2).tolist() == pytest.approx([1.0, 5.0])
    assert np.isnan(hull_at(shares, scores, 0.05)).all()
    assert np.isnan(pareto_at(shares, scores, 0.05)).all()


def test_a_budget_need_not_be_spent():
    shares, scores = np.array([0.1, 0.3]), np.array([[5.0, 1.0]])
    assert hull_at(shares, scores, 0.3) == pareto_at(shares, scores, 0.2) == 5.0


points = st.lists(st.tuples(st.floats(0.01, 1), st.floats(-9, 9)), min_size=1, max_size=9, unique_by=lambda p: p[0])


@given(points, st.floats(0.02, 1))
def test_the_hull_is_the_lowest_concave_rising_curve_above_the_points(found, budget):
    """No point is above it, it is concave and rising, and no removed point raises it."""
    shares, scores = (np.array(column) for column in zip(*found, strict=True))
    value = hull_at(shares, scores[None], budget)[0]
    within = shares <= budget
    assert np.isnan(value) == (not within.any())
    if within.any():
        assert value >= scores[within].max()
        assert value >= pareto_at(shares, scores[None], budget)[0] - 1e-9
        assert value <= scores.max() + 1e-9
        higher = budget * 1.1
        middle = hull_at(shares, scores[None], (budget + higher) / 2)[0]
        assert middle >= (value + hull_at(shares, scores[None], higher)[0]) / 2 - 1e-6
        for removed in range(len(shares)):
            rest = np.delete(np.arange(len(shares)), removed)
            fewer = hull_at(shares[rest], scores[None, rest], budget)[0]
            assert np.isnan(fewer) or fewer <= value + 1e-9
