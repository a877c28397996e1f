"""What a pattern is, how patterns combine, and how one becomes a boolean tensor."""

from collections.abc import Callable
from functools import reduce
from operator import and_, or_

import torch
from torch import Tensor

from sparselib.checks import at_least

Pattern = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
"""``(b, h, q_idx, kv_idx) -> Bool``, elementwise on integer tensors that broadcast; True = may attend."""


def nothing() -> Pattern:
    """The pattern without any pair: the neutral element of :func:`union`.

    >>> masks.to_dense(masks.nothing(), 1, 1, 4).any()
    tensor(False)
    """

    def attends(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        return (q_idx < 0) & (kv_idx < 0)  # positions are never negative

    return attends


def union(*patterns: Pattern) -> Pattern:
    """Pairs that any of the patterns allows; of no patterns: no pair.

    >>> masks.to_dense(masks.union(lambda b, h, i, j: i == j, lambda b, h, i, j: j == 0), 1, 1, 4)[0, 0, 2].int()
    tensor([1, 0, 1, 0], dtype=torch.int32)
    """

    def attends(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        return reduce(or_, (pattern(b, h, q_idx, kv_idx) for pattern in (nothing(), *patterns)))

    return attends


def intersection(first: Pattern, *others: Pattern) -> Pattern:
    """Pairs that all of the patterns allow.

    >>> masks.to_dense(masks.intersection(lambda b, h, i, j: j <= i, lambda b, h, i, j: j > 0), 1, 1, 4)[0, 0, 2].int()
    tensor([0, 1, 1, 0], dtype=torch.int32)
    """

    def attends(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        return reduce(and_, (pattern(b, h, q_idx, kv_idx) for pattern in (first, *others)))

    return attends


def to_dense(
    pattern: Pattern,
    batch: int,
    heads: int,
    queries: int,
    keys: int | None = None,
    device: torch.device | str = "cpu",
) -> Tensor:
    """Write a pattern out as ``Bool[B, H, Q, K]``.

    Parameters
    ----------
    batch, heads, queries : int
    keys : int, optional
        As many as queries by default.
    device : torch.device or str
        The one that the pattern's own tensors (lengths, random draws) live on, if it has any.

    Raises
    ------
    ValueError
        If a size is below 1.

    >>> masks.to_dense(lambda b, h, i, j: j <= i, 1, 1, 2, 3).int()
    tensor([[[[1, 0, 0],
              [1, 1, 0]]]], dtype=torch.int32)
    """
    keys = queries if keys is None else keys
    shape = (batch, heads, queries, keys)
    for name, size in zip(("batch", "heads", "queries", "keys"), shape, strict=True):
        at_least(name, size, 1)
    b, h, q_idx, kv_idx = (
        torch.arange(size, device=device).view([-1 if axis == own else 1 for axis in range(4)])
        for own, size in enumerate(shape)
    )
    return pattern(b, h, q_idx, kv_idx).expand(shape).contiguous()
