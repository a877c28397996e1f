"""Patterns, their unions and intersections, and their boolean tensors."""

from collections.abc import Callable
from functools import reduce
from operator import and_, or_

import torch
from torch import Tensor

from sparselib.checks import integer_at_least

Pattern = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
"""``(b, h, q_idx, kv_idx) -> Bool``, elementwise on integer tensors that broadcast; True = may attend."""


def nothing() -> Pattern:
    """Return the empty pattern, the neutral element of :func:`union`.

    Examples
    --------
    >>> masks.to_dense(masks.nothing(), 1, 1, 4).any()
    tensor(False)
    """

    def attends(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        return (q_idx < 0) & (kv_idx < 0)  # positions are never negative

    return attends


def union(*patterns: Pattern) -> Pattern:
    """Return the pattern of the pairs that any pattern allows.

    Parameters
    ----------
    *patterns : callables, whose union is empty if there are none

    Examples
    --------
    >>> masks.to_dense(masks.union(lambda b, h, i, j: i == j, lambda b, h, i, j: j == 0), 1, 1, 4)[0, 0, 2].int()
    tensor([1, 0, 1, 0], dtype=torch.int32)
    """

    def attends(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        return reduce(or_, (pattern(b, h, q_idx, kv_idx) for pattern in (nothing(), *patterns)))

    return attends


def intersection(first: Pattern, *others: Pattern) -> Pattern:
    """Return the pattern of the pairs that all patterns allow.

    Parameters
    ----------
    first, *others : callables

    Examples
    --------
    >>> masks.to_dense(masks.intersection(lambda b, h, i, j: j <= i, lambda b, h, i, j: j > 0), 1, 1, 4)[0, 0, 2].int()
    tensor([0, 1, 1, 0], dtype=torch.int32)
    """

    def attends(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        return reduce(and_, (pattern(b, h, q_idx, kv_idx) for pattern in (first, *others)))

    return attends


def entries(table: Tensor, b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
    """Return ``table[b, h, q_idx, kv_idx]``, three times faster where whole rows are read, as in :func:`to_dense`.

    >>> entries(torch.eye(3, dtype=torch.bool)[None, None], *torch.tensor([0, 0, 1, 1]))
    tensor(True)
    """
    if kv_idx.ndim and kv_idx.numel() == kv_idx.shape[-1] and all(x.shape[-1:] == (1,) for x in (b, h, q_idx)):
        return table[b[..., 0], h[..., 0], q_idx[..., 0]][..., kv_idx.flatten()]
    return table[b, h, q_idx, kv_idx]


def looked_up(table: Tensor) -> Pattern:
    """Return ``(b, h, q_idx, kv_idx) -> entry`` for a tensor that broadcasts to ``[B, H, Q, K]``: a mask, or a bias.

    >>> looked_up(torch.eye(3, dtype=torch.bool))(*torch.tensor([0, 0, 1, 1]))
    tensor(True)
    """
    table = table[(None,) * (4 - table.ndim)]

    def entry(*place: Tensor) -> Tensor:
        return table[tuple(0 if size == 1 else index for size, index in zip(table.shape, place, strict=True))]

    return entry


def to_dense(
    pattern: Pattern, batch: int, heads: int, queries: int, keys: int | None = None, device: torch.device | str = "cpu"
) -> Tensor:
    """Write a pattern out as ``Bool[B, H, Q, K]``.

    Parameters
    ----------
    pattern : callable
    batch, heads, queries, keys : int, at least 1, where K is Q by default
    device : torch.device or str, of the pattern's own tensors (lengths, random draws), if it has any

    Examples
    --------
    >>> masks.to_dense(lambda b, h, i, j: j <= i, 1, 1, 2, 3)[0, 0].int().tolist()
    [[1, 0, 0], [1, 1, 0]]
    """
    keys = queries if keys is None else keys
    shape = (batch, heads, queries, keys)
    for name, size in zip(("batch", "heads", "queries", "keys"), shape, strict=True):
        integer_at_least(name, size, 1)
    b, h, q_idx, kv_idx = (
        torch.arange(size, device=device).view([-1 if axis == own else 1 for axis in range(4)])
        for own, size in enumerate(shape)
    )
    return pattern(b, h, q_idx, kv_idx).expand(shape).contiguous()
