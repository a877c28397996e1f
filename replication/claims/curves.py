"""Curves of a score by the share of pairs that a method computes, read off at equal budgets."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from replication.claims.scores import Units
from replication.claims.settings import described, saturated
from replication.results.budgets import NEAR, Budget, hull_at, is_measured, pareto_at

#: Factor that counts every point as near a budget.
FAR = 1e9
#: Baselines that the paper compares to Sparsefinder's distance and k-means, besides Routing Transformer.
BASELINES = ["sparsefinder-quantization", "reformer", "bigbird", "longformer", "window"]


@dataclass(frozen=True)
class Points:
    """A method's points under one seed.

    Attributes
    ----------
    shares : array ``[N]``
        Shares of the pairs that the settings compute.
    scores : array ``[1 + R, N]``
        Scores, and their R resamples; higher is better.
    """

    shares: np.ndarray
    scores: np.ndarray

    def halved(self, half: int) -> "Points":
        """Return every second point by its share, from the first one (0) or the second one (1)."""
        kept = np.argsort(self.shares, kind="stable")[half::2]
        return Points(self.shares[kept], self.scores[:, kept])


@dataclass(frozen=True)
class Curves:
    """Points of several methods, and how scores are read off between them.

    Attributes
    ----------
    methods : dict
        By method, the points of each seed.
    gold : float
        Share of the pairs in the gold graph.
    budgets : list of Budget
        Budgets of the run's configuration.
    units : Units, optional
        Units of the R resamples.
    settings : dict
        By method, the measured settings: ``{"top_k": [1, 2]}``.
    saturated : frozenset of str
        Methods that no setting makes sparser.
    read : callable
        Function that reads a score off points at a budget: :func:`~replication.results.budgets.hull_at`.
    near : float
        Factor within which a method needs points on both sides of a budget.
    """

    methods: dict[str, list[Points]]
    gold: float
    budgets: list[Budget]
    units: Units | None = None
    settings: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    saturated: frozenset[str] = frozenset()
    read: Callable[[np.ndarray, np.ndarray, float], np.ndarray] = hull_at
    near: float = NEAR

    def at(self, method: str, budget: Budget) -> np.ndarray:
        """Return the scores at a budget, ``[1 + R, seeds]``."""
        return np.stack([self.read(one.shares, one.scores, budget.share) for one in self.methods[method]], axis=1)

    def difference(self, one: str, other: str, budget: Budget) -> np.ndarray:
        """Return ``one`` minus ``other`` at a budget, ``[1 + R, seeds]``."""
        return self.at(one, budget) - self.at(other, budget)

    def has(self, method: str, budget: Budget) -> bool:
        """Return whether the method is measured at a budget with every seed."""
        return all(is_measured(one.shares, budget.share, self.near) for one in self.methods[method])

    def shared(self, *methods: str) -> list[Budget]:
        """Return the budgets at which all of the methods are measured."""
        return [budget for budget in self.budgets if all(self.has(name, budget) for name in methods)]

    def named(self, name: str) -> Budget | None:
        """Return the budget of this name; None if it is no budget of the run, because it is too large."""
        return next((budget for budget in self.budgets if budget.name == name), None)

    def least(self, method: str) -> float:
        """Return the smallest share that the method reaches with every seed."""
        return max(one.shares.min() for one in self.methods[method])

    def perturbed(self) -> dict[str, "Curves"]:
        """Return the curves under other choices: half of the settings, and the Pareto set in place of the hull.

        A half of a grid has fewer points near a budget, so points farther away count, too.
        """
        halves = {
            f"{part} half of the settings": self.of_points(lambda one, half=half: one.halved(half), near=FAR)
            for half, part in enumerate(("one", "the other"))
        }
        return halves | {"the Pareto set": replace(self, read=pareto_at)}

    def of_points(self, change: Callable[[Points], Points], **changes: object) -> "Curves":
        """Return the curves with other points of every method and seed."""
        methods = {name: [change(one) for one in of_seeds] for name, of_seeds in self.methods.items()}
        return replace(self, methods=methods, **changes)


def curves(
    points: pd.DataFrame,
    scores: np.ndarray,
    gold: float,
    budgets: list[Budget],
    units: Units | None = None,
    tokens: float = np.inf,
) -> Curves:
    """Return the curves of points.

    Parameters
    ----------
    points : DataFrame
        ``seed``, ``method``, ``setting`` and ``sparsity``.
    scores : array ``[1 + R, points]``
        Scores of the points; higher is better.
    gold : float
        Share of the pairs in the gold graph.
    budgets : list of Budget
        Budgets of the run.
    units : Units, optional
        Units of the R resamples.
    tokens : float
        Tokens of a sequence, if all have the same number.
    """
    places = pd.Series(range(len(points)), index=points.index)
    methods = {
        method: [
            Points(1 - of_seed["sparsity"].to_numpy(), scores[:, places[of_seed.index].to_numpy()])
            for _, of_seed in rows.groupby("seed")
        ]
        for method, rows in points.groupby("method", sort=False)
    }
    return Curves(methods, gold, budgets, units, described(points), frozenset(saturated(points, tokens)))


def above(compared: Curves, reference: str, names: list[str]) -> pd.DataFrame:
    """Return each method's mean difference to the reference at some budgets, as computed for the ledger.

    Returns
    -------
    DataFrame
        A row per method, a column per budget; NaN if one of the two is not measured there.
    """
    budgets = [budget for name in names if (budget := compared.named(name))]
    rows = {
        method: {
            str(budget): compared.difference(method, reference, budget)[0].mean()
            if compared.has(method, budget) and compared.has(reference, budget)
            else np.nan
            for budget in budgets
        }
        for method in compared.methods
        if reference in compared.methods and method != reference
    }
    return pd.DataFrame.from_dict(rows, orient="index", columns=[str(budget) for budget in budgets])
