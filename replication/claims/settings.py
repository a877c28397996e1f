"""Predictor settings: the papers' variants, and the direction in which each argument makes a graph sparser."""

import numpy as np
import pandas as pd

from replication.results.settings import arguments_of

#: Direction in which each argument makes a graph sparser, and its limit.
DIRECTIONS = {
    "threshold": ("below", 0.0),
    "bins": ("above", None),
    "clusters": ("above", None),
    "buckets": ("above", None),
    "top_k": ("below", 1.0),
    "rounds": ("below", 1.0),
    "global_count": ("below", 1.0),
    "random_keys": ("below", 1.0),
}

#: Share of the pairs that must remain after doubling buckets, bins or clusters, for the doubling to count as no gain.
SATURATED = 0.9


def of_points(points: pd.DataFrame) -> pd.DataFrame:
    """Return the settings of points as columns, with the same index; NaN if a method lacks the argument."""
    return pd.DataFrame([arguments_of(setting) for setting in points["setting"]], index=points.index, dtype=object)


def papers_own(points: pd.DataFrame) -> pd.DataFrame:
    """Return the points of the variants that the papers compare: Reformer with one hashing round, k-means with k = 1 or 2.

    The paper describes one bucket per token and no number of rounds, and its code has four rounds as an option. The paper
    states no k, and its scripts compare 1 and 2.
    """
    settings = of_points(points)
    kept = pd.Series(True, index=points.index)
    for argument, values in (("rounds", [1]), ("top_k", [1, 2])):
        if argument in settings:
            kept &= settings[argument].isna() | settings[argument].isin(values)
    return points[kept]


def single(points: pd.DataFrame) -> pd.DataFrame:
    """Return the points whose methods assign each token to one bucket: one centroid, or one hashing round."""
    settings = of_points(points)
    kept = pd.Series(True, index=points.index)
    for argument in {"top_k", "rounds"} & set(settings):
        kept &= settings[argument].isna() | (settings[argument] == 1)
    return points[kept]


def described(points: pd.DataFrame) -> dict[str, dict[str, list[float]]]:
    """Return the values of each method's arguments, in increasing order."""
    settings = of_points(points)
    return {
        method: {name: sorted(set(rows[name].dropna())) for name in rows if rows[name].notna().any()}
        for method, rows in settings.groupby(points["method"], sort=False)
    }


def saturated(points: pd.DataFrame, tokens: float = np.inf) -> set[str]:
    """Return the methods that no further setting makes much sparser.

    These are the methods with the fewest global or random keys that they can have, one: with none they would be the window. And
    the methods with at least as many buckets, bins or clusters as a sequence has `tokens`, or whose last step in the grid at
    least doubles their number, and leaves more than :data:`SATURATED` of the pairs per doubling. Each value counts with its
    sparsest variant and the smallest window.
    """
    narrow = points[points["window"] == points["window"].min()] if "window" in points else points
    settings = of_points(narrow)
    found = set()
    for argument in {"buckets", "bins", "clusters"} & set(settings):
        known = narrow.assign(value=pd.to_numeric(settings[argument])).dropna(subset="value")
        for method, rows in known.groupby("method"):
            density = 1 - rows.groupby(["value", "seed"])["sparsity"].max().groupby("value").mean()
            doublings = np.log2(density.index[-1] / density.index[-2]) if len(density) > 1 else 0
            levels_off = doublings >= 1 and density.iloc[-1] > density.iloc[-2] * SATURATED**doublings
            if levels_off or density.index[-1] >= tokens:
                found.add(method)
    limits = {name: limit for name, (_, limit) in DIRECTIONS.items() if limit}
    without_window = narrow[narrow["window"] == 0] if "window" in narrow else narrow
    for method, values in described(without_window).items():
        own = values.keys() & DIRECTIONS.keys()
        if own and all(min(values[name]) == limits.get(name) for name in own):
            found.add(method)
    return found


def sparser(settings: dict[str, list[float]]) -> str:
    """Describe settings that give a sparser graph than these: ``bins above 64, smaller windows``.

    >>> sparser({"buckets": [2, 64], "rounds": [1]})
    'buckets above 64, smaller windows'
    """
    ends = []
    for name, (direction, limit) in DIRECTIONS.items():
        if name in settings:
            end = (min if direction == "below" else max)(settings[name])
            if end != limit:
                ends.append(f"{name} {direction} {end:g}")
    return ", ".join([*ends, "smaller windows"])
