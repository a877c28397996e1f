"""Axes of the share of pairs that a method computes, and a method's curve with a band over seeds."""

from collections.abc import Callable

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from replication.predictors.methods import Method
from replication.results.budgets import hull_at
from sparselib import pareto_front

#: Ticks of a share axis.
TICKS = (0.0001, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
#: Points at which a curve is drawn.
POINTS = 24


def share_axis(axes: Axes, smallest: float, largest: float = 1.0, labelled: tuple[float, ...] = TICKS) -> None:
    """Set up a logarithmic axis of the share of pairs computed, in per cent.

    Parameters
    ----------
    smallest, largest : float
        Ends of the axis.
    labelled : tuple of float
        Ticks with a label; narrow panels have room for few.
    """
    axes.set_xscale("log")
    ticks = [tick for tick in TICKS if 0.99 * smallest <= tick <= 1.01 * largest]
    axes.set_xticks(ticks, [f"{100 * tick:g}" if tick in labelled else "" for tick in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set(xlabel="share of pairs computed, %", xlim=(0.9 * smallest, 1.1 * largest))


def hulls(points: pd.DataFrame, score: str, places: int | None = None) -> pd.DataFrame:
    """Return a method's concave hull for each seed, at the same shares.

    Parameters
    ----------
    points : DataFrame
        ``sparsity`` and the score, which has to be higher if better, of one method; ``seed``, unless there is one.
    places : int, optional
        Number of shares, for small panels. By default there are many, those of the points among them.

    Returns
    -------
    DataFrame
        By share, a column per seed; NaN below the sparsest point of a seed.
    """
    shares = 1 - points["sparsity"]
    grid = np.geomspace(max(shares.min(), 1e-4), max(shares.max(), 2e-4), places or POINTS)
    grid = grid if places else np.unique([*grid, *shares[shares > 0]])
    # Of many points, few are on the hull.
    grid = grid if len(grid) <= 2 * POINTS else np.geomspace(grid[0], grid[-1], 2 * POINTS)
    seeds = points.groupby("seed") if "seed" in points else [(0, points)]
    curves = {}
    for seed, rows in seeds:
        kept = rows.iloc[pareto_front(rows["sparsity"].to_numpy(), rows[score].to_numpy())]
        own, scores = 1 - kept["sparsity"].to_numpy(), kept[score].to_numpy()[None]
        curves[seed] = [hull_at(own, scores, share)[0] for share in grid]
    return pd.DataFrame(curves, index=grid)


def draw_curve(
    axes: Axes,
    points: pd.DataFrame,
    score: str,
    method: Method,
    shown: Callable[[np.ndarray], np.ndarray] = np.asarray,
    places: int | None = None,
    **drawn: object,
) -> None:
    """Draw a method's hull: the mean over seeds as a line, and the range of the seeds as a band.

    Parameters
    ----------
    points, score, places
        As for :func:`hulls`.
    shown : callable
        Function from the score to the drawn quantity.
    drawn
        Arguments of the line.
    """
    curves = hulls(points, score, places)
    values = shown(curves.to_numpy())
    places = curves.index.to_numpy()
    line = {"markersize": 3.5, "markevery": 0.12} | method.style | drawn
    axes.plot(places, values.mean(axis=1), label=method.label, **line)
    if values.shape[1] > 1:
        axes.fill_between(places, values.min(axis=1), values.max(axis=1), color=method.color, alpha=0.2, linewidth=0)


def mark_gold(axes: Axes, gold_share: float, label: str = "gold graph's share") -> None:
    """Draw the gold graph's share of the pairs as a dashed line."""
    # The label has no number, because several panels may share one legend.
    axes.axvline(gold_share, color="black", linestyle="--", linewidth=0.8, label=label)
