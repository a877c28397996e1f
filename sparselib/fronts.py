"""Pareto fronts of sparsity and a score."""

from collections.abc import Iterable
from math import isfinite


def pareto_front(sparsity: Iterable[float], score: Iterable[float]) -> list[int]:
    """Return the indices of the points that no other point dominates, by rising sparsity.

    A point is dominated if another has at least its sparsity and score, and more of one. Of equal points, all stay.

    Parameters
    ----------
    sparsity, score : list, array or Tensor ``[N]`` of finite numbers, of which higher ones are better

    Examples
    --------
    >>> pareto_front([0.2, 0.5, 0.4], [0.9, 0.8, 0.7])
    [0, 1]
    """
    points = _points(sparsity, score)
    best, kept = None, []
    # From the sparsest point down, best score first: a point stays if it scores more than all sparser ones.
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
        raise ValueError(
            f"`sparsity` and `score` must be numbers [N] of one length, got lengths {len(x)} and {len(y)}"
        ) from error
    if wrong := [point for point in points if not all(map(isfinite, point))]:
        raise ValueError(f"`sparsity` and `score` must be finite, got {wrong[0]}; leave out missing measurements")
    return points
