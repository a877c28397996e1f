"""Claims about curves, which are compared by the area under their Pareto fronts."""

from pathlib import Path

import pandas as pd

from replication.claims.finding import Finding
from replication.results import hypervolumes, over_heads, read_replaced, read_sweep, spread

#: Two areas under Pareto fronts "yield a similar curve" if they differ by less than this share of the window's.
SIMILAR = 0.05
#: What the paper compares with Sparsefinder's distance and k-means, beside Routing Transformer.
BASELINES = ["sparsefinder-quantization", "reformer", "bigbird", "longformer", "window"]


def areas(folder: Path, score: str) -> pd.DataFrame:
    """Areas under the Pareto fronts of sparsity and ``recall``, ``bleu`` or ``nats``: a row per seed, a column per method."""
    if score == "recall":
        points = over_heads(read_sweep(folder))
    else:
        points = read_replaced(folder).query("method not in ['full', 'gold graph']")
        if score == "nats":
            points = points.assign(nats=-points["nats"])  # more is better in every front
    return hypervolumes(points, score).pivot(index="seed", columns="method", values="hypervolume")


def leads(area: pd.DataFrame, leader: str, rivals: list[str]) -> Finding:
    """The leader's area is larger than every rival's, for every seed."""
    best = area[rivals].mean().idxmax()
    margin = area[leader] - area[rivals].max(axis=1)
    numbers = f"{leader} {spread(area[leader])}, next {best} {spread(area[best])}"
    return Finding(bool((margin > 0).all()), margin.tolist(), numbers)


def like_the_window(area: pd.DataFrame, methods: list[str]) -> Finding:
    """The areas of these methods differ little from the window's, for every seed."""
    difference = area[methods].sub(area["window"], axis=0).div(area["window"], axis=0)
    largest = difference.abs().max(axis=1)
    numbers = ", ".join(f"{name} {difference[name].mean():+.1%}" for name in methods) + " of the window's area"
    return Finding(bool((largest < SIMILAR).all()), largest.tolist(), numbers)
