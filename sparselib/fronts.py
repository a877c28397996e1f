"""Pareto fronts of sparsity and a score."""

from collections.abc import Iterable
from math import isfinite


def pareto_front(sparsity: Iterable[float], score: Iterable[float]) -> list[int]:
    """Indices of the points that no other point dominates, by rising sparsity.

    A point is dominated if another has at least its sparsity and at least its score, and more of one. Equal points do not
    dominate each other: all of them stay, in their given order. Higher is better for both, so a perplexity goes in negated.

    Parameters
    ----------
    sparsity, score : ``[N]``, ``[N]``
        Lists, arrays or tensors of numbers.

    Returns
    -------
    list of int

    Raises
    ------
    ValueError
        Unless both are finite, one-dimensional and of one length.

    >>> pareto_front([0.2, 0.5, 0.4], [0.9, 0.8, 0.7])
    [0, 1]
    """
    points = _points(sparsity, score)
    best, kept = None, []
    # From the sparsest down, the best score first: a point stays if it scores more than all sparser ones.
    for index in sorted(range(len(points)), key=lambda i: (-points[i][0], -points[i][1], i)):
        if best is None or points[index][1] > points[best][1] or points[index] == points[best]:
            best = index
            kept.append(index)
    return sorted(kept, key=lambda i: (points[i][0], i))


def _points(sparsity: Iterable[float], score: Iterable[float]) -> list[tuple[float, float]]:
    x, y = ([*values] for values in (sparsity, score))
    try:
        points = [(float(a), float(b)) for a, b in zip(x, y, strict=True)]
    except (TypeError, ValueError) as error:
        raise ValueError(f"sparsity and score must be numbers [N] of one length, got {len(x)} and {len(y)}") from error
    if not all(isfinite(number) for point in points for number in point):
        raise ValueError("sparsity and score must be finite")
    return points
