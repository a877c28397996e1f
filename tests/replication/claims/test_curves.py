"""Fronts compared in a band around the gold sparsity, on points small enough to do by hand."""

import numpy as np
import pandas as pd
import pytest

from replication.claims.band import Band
from replication.claims.curves import GRID, above, alike, curves, dominates, front, in_words, leads
from replication.claims.finding import FAILS, HOLDS, UNDECIDED, Rule

BAND = Band(0.4)
GOLD = 0.8
RULE = Rule(">=", 0.0)


def made(methods, seeds=(0, 1), gold=GOLD, settings=None):
    """``{method: [(sparsity, score), ...]}``, a hundredth higher with each seed."""
    rows = [
        (seed, name, (settings or {}).get(name, ""), s, score + 0.01 * seed)
        for seed in seeds
        for name, points in methods.items()
        for s, score in points
    ]
    table = pd.DataFrame(rows, columns=["seed", "method", "setting", "sparsity", "score"])
    return curves(table, table["score"].to_numpy()[None], gold)


def at(sparsity):
    return int(np.abs(GRID - sparsity).argmin())


def test_a_front_is_interpolated_between_points_that_nothing_dominates():
    found = front(np.array([0.2, 0.6, 0.5]), np.array([[1.0, 0.5, 0.4]]))[0]
    assert found[at(0.2)] == pytest.approx(1.0)
    assert found[at(0.4)] == pytest.approx(0.75)  # the point at 0.5 is dominated
    assert found[at(0.6)] == pytest.approx(0.5)
    assert np.isnan(found[[at(0.19), at(0.61)]]).all()


@pytest.mark.parametrize("order", [[0, 1, 2], [1, 0, 2], [2, 1, 0]])
def test_of_points_with_equal_sparsity_the_best_is_on_the_front(order):
    sparsity, scores = np.array([0.5, 0.5, 0.8]), np.array([[1.0, 3.0, 0.5]])
    assert front(sparsity[order], scores[:, order])[0, at(0.5)] == 3.0


def test_the_difference_is_the_mean_over_the_part_of_the_band_that_both_reach():
    compared = made({"a": [(0.2, 10.0), (0.8, 4.0)], "b": [(0.5, 7.0), (1.0, 2.0)]})
    (found,) = leads(compared, ["a"], ["b"], BAND).effects
    assert found.value == pytest.approx(0.0)  # a falls from 7 to 4 where b falls from 7 to 4
    assert (found.what, found.where) == ("a - b", "sparsity 0.500-0.800")
    assert found.n == "this model: 2 student seeds"


def test_a_leader_outside_the_band_that_is_behind_in_it_is_behind():
    ahead = {"a": [(0.0, 30.0), (0.4, 9.0), (1.0, 0.0)], "b": [(0.0, 10.0), (0.4, 10.0 - 1e-6), (1.0, 1.0)]}
    finding = leads(made(ahead), ["a"], ["b"], BAND)
    assert finding.effects[0].value == pytest.approx(-1.0, abs=0.01)
    (note,) = finding.notes
    assert note.startswith("a - b over sparsity 0.000-1.000: ")
    assert float(note.split(": ")[1].split(" ")[0]) > 3


def test_a_front_that_is_longer_gains_nothing_by_it():
    """Which the area under the front rewards."""
    long, short = [(0.0, 10.0), (1.0, 0.0)], [(0.4, 6.5), (0.6, 4.5)]
    (found,) = leads(made({"long": long, "short": short}), ["short"], ["long"], BAND).effects
    assert found.value == pytest.approx(0.5)


def crossing(below):
    """A leader that is 2 ahead in the mean of the band, and so much below its rival at the gold sparsity."""
    return {
        "a": [(0.4, 14.0), (0.6, 11.0), (0.8, 7.0 - below), (0.9, 6.0 - below)],
        "b": [(0.4, 10.0), (0.9, 6.25 - 1e-6)],
    }


def test_dominance_fails_at_one_sparsity_where_the_mean_is_ahead():
    compared = made(crossing(1.0), seeds=range(5))
    assert RULE.verdict(leads(compared, ["a"], ["b"], BAND).effects[0]) == HOLDS
    (found,) = dominates(compared, ["a"], ["b"], BAND).effects
    assert RULE.verdict(found) == FAILS
    assert found.value < 0
    assert "decided at 0.9" in found.what
    assert found.n.endswith("simultaneous at 5 sparsities")
    (everywhere,) = dominates(made(crossing(-3.0), seeds=range(5)), ["a"], ["b"], BAND).effects
    assert RULE.verdict(everywhere) == HOLDS


def test_simultaneous_intervals_are_wider():
    points = {0: 1.0, 1: 1.3, 2: 0.8}
    rows = [
        (seed, name, "", s, shift * (name == "a") - 10 * s)
        for seed, shift in points.items()
        for name in "ab"
        for s in (0.3, 0.9)
    ]
    table = pd.DataFrame(rows, columns=["seed", "method", "setting", "sparsity", "score"])
    compared = curves(table, table["score"].to_numpy()[None], GOLD)
    (mean,), (least,) = (compare(compared, ["a"], ["b"], BAND).effects for compare in (leads, dominates))
    assert mean.value == pytest.approx(least.value)
    assert least.interval[0] < mean.interval[0]
    assert [RULE.verdict(effect) for effect in (mean, least)] == [HOLDS, UNDECIDED]


def test_a_grid_that_ends_before_the_band_is_named_with_the_settings_that_would_reach_it():
    settings = {"b": "buckets=64, rounds=1"}
    finding = leads(
        made({"a": [(0.1, 1.0), (0.9, 0.5)], "b": [(0.0, 1.0), (0.4126, 0.5)]}, settings=settings), ["a"], ["b"], BAND
    )
    assert finding.effects == []
    (missing,) = finding.missing
    assert missing.startswith("a - b: b reaches a sparsity of 0.413, too little of the band, which begins at 0.400; ")
    assert missing.endswith("settings that would reach it: buckets above 64, smaller windows")
    assert finding.notes[0].startswith("a - b over sparsity 0.100-0.413")


@pytest.mark.parametrize(("last", "compared_at"), [(0.502, "sparsity 0.100-0.500"), (0.6, None)])
def test_a_method_that_cannot_get_sparser_is_compared_where_it_ends(last, compared_at):
    """b's graph with 32 buckets has a sparsity of 0.5, and with 64 one of `last`; the band begins at 0.75."""
    rows = [(seed, "a", "", 0, s, score) for seed in (0, 1) for s, score in ((0.0, 1.0), (0.9, 0.5))]
    rows += [
        (seed, "b", f"buckets={buckets}, rounds=1", window, sparsity, 1 - sparsity)
        for seed in (0, 1)
        for buckets, window, sparsity in ((32, 0, 0.5), (64, 0, last), (64, 99, 0.1))
    ]
    table = pd.DataFrame(rows, columns=["seed", "method", "setting", "window", "sparsity", "score"])
    compared = curves(table, table["score"].to_numpy()[None], gold=1.15)
    finding = leads(compared, ["a"], ["b"], BAND)
    if compared_at is None:
        assert finding.effects == []
        assert len(finding.missing) == 1
    else:
        (effect,) = finding.effects
        assert effect.where == compared_at
        assert effect.what == "a - b, as sparse as b gets"


def test_methods_without_a_point_or_with_one_alone_are_missing():
    finding = leads(made({"a": [(0.5, 1.0), (0.9, 0.5)], "b": [(0.601, 1.0)]}), ["a"], ["b", "c"], BAND)
    assert finding.effects == []
    assert finding.missing == ["no point of c", "a - b: b has no two points at which every seed has a score"]


def test_variants_of_kmeans_and_reformer_are_named():
    rows = [(0, "sparsefinder-kmeans", f"clusters=4, top_k={k}", s, 1 - s) for k in (1, 2) for s in (0.4, 0.9)] + [
        (0, "reformer", "buckets=4, rounds=1", s, 1 - s) for s in (0.4, 0.9)
    ]
    table = pd.DataFrame(rows, columns=["seed", "method", "setting", "sparsity", "score"])
    compared = curves(table, table["score"].to_numpy()[None], GOLD)
    notes = leads(compared, ["sparsefinder-kmeans"], ["reformer"], BAND).notes
    assert notes[-1] == "sparsefinder-kmeans: 1 or 2 centroids per point; reformer: 1 round"


def test_alike_does_not_cancel_what_is_above_with_what_is_below():
    window = [(0.4, 10.0), (1.0, 10.0 - 1e-9)]
    crossing = [(0.4, 12.0), (1.0, 8.0)]
    compared = made({"window": window, "x": crossing}, gold=0.8)
    assert leads(compared, ["x"], ["window"], BAND).effects[0].value == pytest.approx(0.0, abs=0.02)
    finding = alike(compared, ["x"], "window", BAND)
    assert finding.effects[0].value == pytest.approx(1.0, abs=0.02)
    assert finding.notes[0].startswith("x - window over sparsity 0.400-1.000: 1")


def test_the_range_is_what_every_seed_reaches():
    rows = [(0, "a", "", 0.1, 2.0), (0, "a", "", 0.9, 1.0), (1, "a", "", 0.5, 2.0), (1, "a", "", 0.9, 1.0)]
    rows += [(seed, "b", "", s, score) for seed in (0, 1) for s, score in ((0.0, 1.0), (1.0, 0.0))]
    table = pd.DataFrame(rows, columns=["seed", "method", "setting", "sparsity", "score"])
    compared = curves(table, table["score"].to_numpy()[None], 0.6)
    (found,) = leads(compared, ["a"], ["b"], BAND).effects
    assert found.where == "sparsity 0.500-0.900"


def test_tables_show_what_the_ledger_compares():
    methods = {"window": [(0.3, 5.0), (0.95, 1.0)], "a": [(0.3, 8.0), (0.9, 2.0)], "short": [(0.0, 9.0), (0.35, 7.0)]}
    compared = made(methods, seeds=range(3))
    table = above(compared, "window", BAND)
    assert table.index.tolist() == ["a"]
    (effect,) = leads(compared, ["a"], ["window"], BAND).effects
    assert table.loc["a", "mean"] == pytest.approx(effect.value)
    assert effect.where == f"sparsity {table.loc['a', 'from']:.3f}-{table.loc['a', 'to']:.3f}"


def test_an_effect_without_an_interval_is_told_by_its_number():
    (found,) = leads(
        made({"a": [(0.3, 8.0), (0.9, 2.0)], "b": [(0.3, 7.0), (0.9, 1.0)]}, seeds=[0]), ["a"], ["b"], BAND
    ).effects
    assert in_words(found) == "1"


def test_every_resample_has_its_own_front():
    scores = np.array([[1.0, 0.5], [1.0, 1.2], [3.0, 0.5]])
    found = front(np.array([0.2, 0.6]), scores)
    assert found[0, at(0.4)] == pytest.approx(0.75)
    assert np.isnan(found[1, at(0.4)])  # the sparser point dominates there
    assert found[2, at(0.4)] == pytest.approx(1.75)
