"""Comparison of Pareto fronts of sparsity and a score, in a band around the gold sparsity."""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import pandas as pd

from replication.claims.band import Band
from replication.claims.finding import UNKNOWN, Effect, Finding
from replication.claims.scores import CONFIDENCE, Units, effect, known_mean, population
from replication.claims.scores import interval as interval_of
from replication.claims.settings import described, saturated, sparser

#: Sparsities at which fronts are compared.
GRID = np.linspace(0, 1, 401)
#: Fronts that share a smaller range of sparsities are not compared.
LEAST_RANGE = 0.02
#: Number of sparsities, evenly spaced over the band, at which a dominating curve must lie above the other.
POINTS = 5
#: Baselines that the paper compares to Sparsefinder's distance and k-means, besides Routing Transformer.
BASELINES = ["sparsefinder-quantization", "reformer", "bigbird", "longformer", "window"]


@dataclass(frozen=True)
class Curves:
    """Pareto fronts of several methods.

    Attributes
    ----------
    fronts : dict
        By method, ``[1 + R, seeds, grid]`` on :data:`GRID`; NaN beyond the front's ends.
    gold : float
        Sparsity of the gold graph.
    units : Units, optional
        Units of the R resamples.
    settings : dict
        By method, the measured settings: ``{"top_k": [1, 2]}``.
    saturated : set of str
        Methods that no setting makes sparser.
    """

    fronts: dict[str, np.ndarray]
    gold: float
    units: Units | None = None
    settings: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    saturated: frozenset[str] = frozenset()

    def difference(self, one: str, other: str, band: Band | None) -> tuple[np.ndarray, np.ndarray]:
        """Return ``one`` minus ``other``, ``[1 + R, seeds, points]``, and the sparsities that both reach with every seed."""
        apart = self.fronts[one] - self.fronts[other]
        kept = np.isfinite(apart[0]).all(axis=0)
        if band is not None:
            kept &= band.contains(GRID, self.gold)
        return apart[..., kept], GRID[kept]

    def difference_at_end(self, one: str, other: str, band: Band) -> tuple[np.ndarray, np.ndarray]:
        """Return the difference over the sparsest range that both reach, as wide as the band below the gold sparsity."""
        apart, shared = self.difference(one, other, None)
        kept = shared >= shared.max(initial=0.0) - band.below - 1e-9
        return apart[..., kept], shared[kept]

    def reach(self, method: str) -> float:
        """Return the highest sparsity that the method reaches with every seed."""
        return float(GRID[np.isfinite(self.fronts[method][0]).all(axis=0)].max(initial=0.0))


def curves(points: pd.DataFrame, scores: np.ndarray, gold: float, units: Units | None = None) -> Curves:
    """Return the Pareto fronts of points.

    Parameters
    ----------
    points : DataFrame
        ``seed``, ``method``, ``setting`` and ``sparsity``.
    scores : array ``[1 + R, points]``
        Scores of the points; higher is better.
    gold : float
        Sparsity of the gold graph.
    units : Units, optional
        Units of the R resamples.
    """
    fronts = {}
    places = pd.Series(range(len(points)), index=points.index)
    for method, rows in points.groupby("method", sort=False):
        of_seeds = [
            front(group["sparsity"].to_numpy(), scores[:, places[group.index].to_numpy()])
            for _, group in rows.groupby("seed")
        ]
        fronts[method] = np.stack(of_seeds, axis=1)
    return Curves(fronts, gold, units, described(points), frozenset(saturated(points)))


def front(sparsity: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return the Pareto front of points ``[N]`` with scores ``[1 + R, N]``, interpolated linearly: ``[1 + R, grid]``."""
    order = np.argsort(-sparsity, kind="stable")
    # Of the points with equal sparsity, only the best can be on the front.
    negated, starts = np.unique(-sparsity[order], return_index=True)
    sparsity, scores = -negated, np.maximum.reduceat(scores[:, order], starts, axis=1)
    best_of_sparser = np.maximum.accumulate(scores, axis=1)
    on_front = np.ones(scores.shape, bool)
    on_front[:, 1:] = scores[:, 1:] > best_of_sparser[:, :-1]
    return np.stack(
        [
            np.interp(GRID, sparsity[kept][::-1], score[kept][::-1], left=np.nan, right=np.nan)
            for kept, score in zip(on_front, scores, strict=True)
        ]
    )


def compares(sparsities: np.ndarray) -> bool:
    """Return whether the sparsities that two fronts share are enough to compare them."""
    return len(sparsities) > 1 and sparsities[-1] - sparsities[0] >= LEAST_RANGE - 1e-9


def leads(compared: Curves, leaders: list[str], rivals: list[str], band: Band | None) -> Finding:
    """Return each leader's mean difference to each rival in the band; a note gives the mean over all shared sparsities.

    Without a band, the effect is the mean over all shared sparsities.
    """
    return _against(compared, leaders, rivals, band, _mean, _mean)


def dominates(compared: Curves, leaders: list[str], rivals: list[str], band: Band) -> Finding:
    """Return each pair's difference at the sparsity that decides whether the leader is above the rival everywhere.

    Intervals at :data:`POINTS` sparsities are simultaneous, by Bonferroni's correction.
    """
    return _against(compared, leaders, rivals, band, _least, _mean)


def alike(compared: Curves, methods: list[str], reference: str, band: Band) -> Finding:
    """Return each method's mean absolute difference to the reference in the band."""
    return _against(compared, methods, [reference], band, _distance, _distance)


def above(compared: Curves, reference: str, band: Band) -> pd.DataFrame:
    """Return each method's mean difference to the reference in the band, as computed for the ledger.

    Returns
    -------
    DataFrame
        By method: ``mean`` and standard deviation ``std`` over seeds, and the compared sparsities ``from`` and ``to``. Methods
        that reach too little of the band are left out.
    """
    rows = {}
    for method in compared.fronts:
        apart, sparsities = compared.difference(method, reference, band)
        if method != reference and compares(sparsities):
            means = apart[0].mean(axis=-1)
            rows[method] = {"mean": means.mean(), "std": means.std(ddof=1) if len(means) > 1 else np.nan}
            rows[method] |= {"from": sparsities[0], "to": sparsities[-1]}
    return pd.DataFrame.from_dict(rows, orient="index", columns=["mean", "std", "from", "to"])


#: Function from a comparison's name, difference ``[1 + R, seeds, points]``, sparsities and units to an effect.
Measure = Callable[[str, np.ndarray, np.ndarray, Units | None], Effect]


def _mean(what: str, apart: np.ndarray, sparsities: np.ndarray, units: Units | None) -> Effect:
    return effect(what, known_mean(apart, axis=-1), "student seed", units, where=_range(sparsities))


def _distance(what: str, apart: np.ndarray, sparsities: np.ndarray, units: Units | None) -> Effect:
    return _mean(what, np.abs(apart), sparsities, units)


def _least(what: str, apart: np.ndarray, sparsities: np.ndarray, units: Units | None) -> Effect:
    """Return the effect at a point whose interval lies below zero, or else at the point whose interval reaches lowest."""
    places = np.unique(np.linspace(0, len(sparsities) - 1, POINTS).round().astype(int))
    confidence = 1 - (1 - CONFIDENCE) / len(places)
    intervals = [interval_of(apart[..., place], units, confidence) for place in places]
    highest_below = min(range(len(places)), key=lambda number: intervals[number][1])
    lowest = min(range(len(places)), key=lambda number: intervals[number][0])
    number = highest_below if intervals[highest_below][1] < 0 else lowest
    place = places[number]
    n = f"{population(apart.shape[1], 'student seed', units)}, simultaneous at {len(places)} sparsities"
    words = f"{what}, decided at {sparsities[place]:.3f}"
    return Effect(
        words, float(apart[0, :, place].mean()), intervals[number], n, _range(sparsities), draws=apart.shape[1]
    )


def _range(sparsities: np.ndarray) -> str:
    return f"sparsity {sparsities[0]:.3f}-{sparsities[-1]:.3f}"


def _against(
    compared: Curves, methods: list[str], rivals: list[str], band: Band | None, measure: Measure, everywhere: Measure
) -> Finding:
    """Measure each method against each rival in the band, and ``everywhere`` over all shared sparsities as a note."""
    found = Finding([])
    known = compared.fronts
    if absent := [name for name in [*methods, *rivals] if name not in known]:
        found.missing.append(f"no point of {', '.join(absent)}")
    for method, rival in product((m for m in methods if m in known), (r for r in rivals if r in known)):
        what = f"{method} - {rival}"
        apart, sparsities = compared.difference(method, rival, band)
        if band is not None and not compares(sparsities) and compared.saturated & {method, rival}:
            apart, sparsities = compared.difference_at_end(method, rival, band)
            what += f", as sparse as {' and '.join(sorted(compared.saturated & {method, rival}))} gets"
        if compares(sparsities):
            found.effects.append(measure(what, apart, sparsities, compared.units))
        else:
            found.missing.append(_out_of_reach(compared, method, rival, band))
        apart, sparsities = compared.difference(method, rival, None)
        if band is not None and compares(sparsities):
            over_all = everywhere(f"{method} - {rival}", apart, sparsities, compared.units)
            found.notes.append(f"{over_all.what} over {over_all.where}: {in_words(over_all)}")
    used = {name: compared.settings[name] for name in [*methods, *rivals] if name in compared.settings}
    if words := variants(used):
        found.notes.append(words)
    return found


def _out_of_reach(compared: Curves, method: str, rival: str, band: Band | None) -> str:
    """Describe which method does not reach the band, and which settings would."""
    if band is None:
        return f"{method} and {rival} share no range"
    least = min((method, rival), key=compared.reach)
    reach = compared.reach(least)
    if not reach:
        return f"{method} - {rival}: {least} has no two points at which every seed has a score"
    return (
        f"{method} - {rival}: {least} reaches a sparsity of {reach:.3f}, too little of the band, which begins at"
        f" {compared.gold - band.below:.3f}; settings that would reach it: {sparser(compared.settings.get(least, {}))}"
    )


def variants(used: dict[str, dict[str, list[float]]]) -> str:
    """Describe the compared variants of k-means and Reformer, which change a curve and not only its length."""
    words = []
    for name, settings in used.items():
        for argument, one, more in (
            ("top_k", "centroid per point", "centroids per point"),
            ("rounds", "round", "rounds"),
        ):
            if argument in settings:
                values = " or ".join(f"{value:g}" for value in settings[argument])
                words.append(f"{name}: {values} {one if values == '1' else more}")
    return "; ".join(words)


def in_words(found: Effect) -> str:
    """Return an effect with its interval: ``2.46 (1.61 to 3.31)``."""
    low, high = found.interval or UNKNOWN
    return f"{found.value:.3g} ({low:.3g} to {high:.3g})" if np.isfinite(low) else f"{found.value:.3g}"
