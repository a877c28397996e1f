"""How good a set of trade-offs between sparsity and a score is."""

import numpy as np
from numpy.typing import ArrayLike


def pareto_front(sparsity: ArrayLike, score: ArrayLike) -> np.ndarray:
    """Indices of the points that no other point dominates, by rising sparsity: `[N]`, `[N]` -> int `[M]`.

    A point is dominated if another has at least its sparsity and at least its score, and more of one. Equal
    points do not dominate each other: all of them stay, in their given order. Higher
    is better for both, so a perplexity goes in negated.

    Raises ValueError unless both are finite, one-dimensional and of one length.
    """
    points = _points(sparsity, score)
    distinct, which = np.unique(points, axis=0, return_inverse=True)  # by rising sparsity, then score
    best_from_here = np.maximum.accumulate(distinct[::-1, 1])[::-1]
    kept = (distinct[:, 1] > np.append(best_from_here[1:], -np.inf))[which.reshape(-1)]
    return np.flatnonzero(kept)[np.argsort(points[kept, 0], kind="stable")]


def hypervolume(sparsity: ArrayLike, score: ArrayLike, reference: tuple[float, float] = (0.0, 0.0)) -> float:
    """Area above `reference` (sparsity, score) that the points dominate: `[N]`, `[N]` -> a number.

    A point below the reference in either adds nothing. Raises ValueError as `pareto_front` does.
    """
    points = _points(sparsity, score)
    width, height = np.maximum(points[pareto_front(*points.T)] - reference, 0).T
    return float(np.sum(np.diff(width, prepend=0) * height))


def _points(sparsity: ArrayLike, score: ArrayLike) -> np.ndarray:
    x, y = np.asarray(sparsity, dtype=np.float64), np.asarray(score, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape:
        raise ValueError(f"sparsity and score must be [N] of one length, got {x.shape} and {y.shape}")
    points = np.stack([x, y], axis=1)
    if not np.isfinite(points).all():
        raise ValueError("sparsity and score must be finite")
    return points
