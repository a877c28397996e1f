"""Patterns of nearness: the causal half, the sliding window, its dilated form, and blocks."""

from torch import Tensor

from sparselib.checks import at_least
from sparselib.masks.pattern import Pattern


def causal() -> Pattern:
    """Keys up to and including the query's own position.

    >>> masks.to_dense(masks.causal(), 1, 1, 4)[0, 0, 1].int()
    tensor([1, 1, 0, 0], dtype=torch.int32)
    """

    def attends(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        return kv_idx <= q_idx

    return attends


def sliding_window(width: int) -> Pattern:
    """Keys around the query; `width` counts all of them, the query's own position included.

    Offsets j - i run over [-ceil(w/2) + 1, floor(w/2)] (as in Sparsefinder's evaluation): odd widths are symmetric, even ones
    look one step further ahead, width 1 is the diagonal and width 0 nothing. Rows at the edges are cut, not shifted.
    Intersected with :func:`causal`, width 11 is the query and its 5 predecessors.

    Raises ``ValueError`` if `width` is negative.

    >>> masks.to_dense(masks.sliding_window(4), 1, 1, 6)[0, 0, 2].int()
    tensor([0, 1, 1, 1, 1, 0], dtype=torch.int32)
    """
    at_least("width", width, 0)
    return _window(width, dilation=1)


def dilated(width: int, dilation: int) -> Pattern:
    """`width` keys at every `dilation`-th position around the query: the window's offsets times `dilation`.

    ``dilated(width, 1)`` is ``sliding_window(width)``. Source: Extremely Sparse Transformer, §4 (which leaves the step open; 2
    is usual).

    Raises ``ValueError`` if `width` is negative or `dilation` below 1.

    >>> masks.to_dense(masks.dilated(3, 2), 1, 1, 6)[0, 0, 2].int()
    tensor([1, 0, 1, 0, 1, 0], dtype=torch.int32)
    """
    at_least("width", width, 0)
    at_least("dilation", dilation, 1)
    return _window(width, dilation)


def _window(width: int, dilation: int) -> Pattern:
    behind = (1 - (width + 1) // 2) * dilation
    ahead = (width // 2) * dilation

    def attends(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        offset = kv_idx - q_idx
        return (offset >= behind) & (offset <= ahead) & (offset % dilation == 0)

    return attends


def block(size: int) -> Pattern:
    """Keys in the query's own block of `size` consecutive positions.

    Source: Extremely Sparse Transformer, §4.

    Raises ``ValueError`` if `size` is below 1.

    >>> masks.to_dense(masks.block(2), 1, 1, 6)[0, 0, 2].int()
    tensor([0, 0, 1, 1, 0, 0], dtype=torch.int32)
    """
    at_least("size", size, 1)

    def attends(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        return q_idx // size == kv_idx // size

    return attends
