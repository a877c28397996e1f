"""Claims about curves: fronts of sparsity and a score, compared where both methods reach."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd

from replication.claims.finding import Finding
from replication.claims.scores import effect

#: Sparsities at which fronts are compared.
GRID = np.linspace(0, 1, 401)
#: Two fronts that share less of the sparsities than this are not compared.
LEAST_RANGE = 0.05
#: What the paper compares with Sparsefinder's distance and k-means, beside Routing Transformer.
BASELINES = ["sparsefinder-quantization", "reformer", "bigbird", "longformer", "window"]


@dataclass(frozen=True)
class Curves:
    """Fronts on :data:`GRID`, ``[1 + R, seeds, grid]`` for each method, NaN beyond the front's ends.

    ``units`` are what the R resamples are of, as :func:`replication.claims.scores.effect` has it.
    """

    fronts: dict[str, np.ndarray]
    units: str = ""

    def difference(self, one: str, other: str) -> tuple[np.ndarray, str] | None:
        """``one`` less ``other``, ``[1 + R, seeds, grid]``, and the range that both reach with every seed, in words.

        None if they share too little of it.
        """
        apart = self.fronts[one] - self.fronts[other]
        reached = np.isfinite(apart[0]).all(axis=0)
        shared = GRID[reached]
        if not len(shared) or shared[-1] - shared[0] < LEAST_RANGE:
            return None
        return apart[..., reached], f"sparsity {shared[0]:.2f}-{shared[-1]:.2f}"


def curves(points: pd.DataFrame, scores: np.ndarray, units: str = "") -> Curves:
    """The fronts of points, ``seed, method, sparsity``, whose scores ``[1 + R, points]`` are the better the higher."""
    fronts = {}
    places = pd.Series(range(len(points)), index=points.index)
    for method, rows in points.groupby("method", sort=False):
        of_seeds = [
            front(group["sparsity"].to_numpy(), scores[:, places[group.index].to_numpy()])
            for _, group in rows.groupby("seed")
        ]
        fronts[method] = np.stack(of_seeds, axis=1)
    return Curves(fronts, units)


def front(sparsity: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """The Pareto front of points ``[N]`` with scores ``[1 + R, N]``, interpolated linearly on the grid: ``[1 + R, grid]``."""
    order = np.argsort(-sparsity, kind="stable")
    sparsity, scores = sparsity[order], scores[:, order]
    best_of_sparser = np.maximum.accumulate(scores, axis=1)
    on_front = np.ones(scores.shape, bool)
    on_front[:, 1:] = scores[:, 1:] > best_of_sparser[:, :-1]
    return np.stack(
        [
            np.interp(GRID, sparsity[kept][::-1], score[kept][::-1], left=np.nan, right=np.nan)
            for kept, score in zip(on_front, scores, strict=True)
        ]
    )


def leads(compared: Curves, leaders: list[str], rivals: list[str]) -> Finding:
    """The mean by which each leader is above each rival, over the sparsities that both reach."""
    return _against(compared, leaders, rivals, lambda apart: np.nanmean(apart, axis=-1))


def alike(compared: Curves, methods: list[str], reference: str) -> Finding:
    """The mean distance of each method's curve from the reference's: above at one sparsity and below at another adds up."""
    return _against(compared, methods, [reference], lambda apart: np.nanmean(np.abs(apart), axis=-1))


def _against(
    compared: Curves, methods: list[str], rivals: list[str], measure: Callable[[np.ndarray], np.ndarray]
) -> Finding:
    effects, notes = [], []
    known = compared.fronts
    if missing := [name for name in [*methods, *rivals] if name not in known]:
        notes.append(f"no point of {', '.join(missing)}")
    for method, rival in product((m for m in methods if m in known), (r for r in rivals if r in known)):
        found = compared.difference(method, rival)
        if found is None:
            notes.append(f"{method} and {rival} share no range")
        else:
            difference, where = found
            effects.append(effect(f"{method} - {rival}, {where}", measure(difference), "student seed", compared.units))
    return Finding(effects, notes)
