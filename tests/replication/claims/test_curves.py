"""Fronts compared where both reach, on points small enough to do by hand."""

import numpy as np
import pandas as pd
import pytest

from replication.claims.curves import GRID, alike, curves, front, leads


def made(methods, seeds=(0,)):
    """``{method: [(sparsity, score), ...]}``, the same for every seed."""
    rows = [(seed, name, s, score) for seed in seeds for name, points in methods.items() for s, score in points]
    table = pd.DataFrame(rows, columns=["seed", "method", "sparsity", "score"])
    return curves(table, table["score"].to_numpy()[None])


def at(sparsity):
    return int(np.abs(GRID - sparsity).argmin())


def test_a_front_is_interpolated_between_points_that_nothing_dominates():
    found = front(np.array([0.2, 0.6, 0.5]), np.array([[1.0, 0.5, 0.4]]))[0]
    assert found[at(0.2)] == pytest.approx(1.0)
    assert found[at(0.4)] == pytest.approx(0.75)  # the point at 0.5 is dominated
    assert found[at(0.6)] == pytest.approx(0.5)
    assert np.isnan(found[[at(0.19), at(0.61)]]).all()


def test_the_difference_is_the_mean_over_the_range_that_both_reach():
    compared = made({"a": [(0.2, 10.0), (0.8, 4.0)], "b": [(0.4, 7.0), (1.0, 1.0)]})
    (found,) = leads(compared, ["a"], ["b"]).effects
    assert found.value == pytest.approx(1.0)  # a falls from 8 to 4 where b falls from 7 to 3
    assert found.what == "a - b, sparsity 0.40-0.80"


def test_a_front_that_is_longer_gains_nothing_by_it():
    """Which the area under the front rewards."""
    long, short = [(0.0, 10.0), (1.0, 0.0)], [(0.4, 6.5), (0.6, 4.5)]
    (found,) = leads(made({"long": long, "short": short}), ["short"], ["long"]).effects
    assert found.value == pytest.approx(0.5)


def test_methods_that_share_no_range_or_were_not_measured_are_named():
    finding = leads(made({"a": [(0.1, 1.0), (0.3, 0.5)], "b": [(0.28, 1.0), (0.9, 0.5)]}), ["a"], ["b", "c"])
    assert finding.effects == []
    assert finding.notes == ["no point of c", "a and b share no range"]


def test_alike_does_not_cancel_what_is_above_with_what_is_below():
    window = [(0.0, 10.0), (1.0, 10.0 - 1e-9)]
    crossing = [(0.0, 12.0), (1.0, 8.0)]
    compared = made({"window": window, "x": crossing})
    assert leads(compared, ["x"], ["window"]).effects[0].value == pytest.approx(0.0, abs=0.02)
    assert alike(compared, ["x"], "window").effects[0].value == pytest.approx(1.0, abs=0.02)


def test_the_range_is_what_every_seed_reaches():
    rows = [(0, "a", 0.1, 2.0), (0, "a", 0.9, 1.0), (1, "a", 0.5, 2.0), (1, "a", 0.9, 1.0)]
    rows += [(seed, "b", s, score) for seed in (0, 1) for s, score in ((0.0, 1.0), (1.0, 0.0))]
    table = pd.DataFrame(rows, columns=["seed", "method", "sparsity", "score"])
    (found,) = leads(curves(table, table["score"].to_numpy()[None]), ["a"], ["b"]).effects
    assert found.what.endswith("sparsity 0.50-0.90")
    assert found.n == "2 student seeds"


def test_every_resample_has_its_own_front():
    scores = np.array([[1.0, 0.5], [1.0, 1.2], [3.0, 0.5]])
    found = front(np.array([0.2, 0.6]), scores)
    assert found[0, at(0.4)] == pytest.approx(0.75)
    assert np.isnan(found[1, at(0.4)])  # the sparser point dominates there
    assert found[2, at(0.4)] == pytest.approx(1.75)
