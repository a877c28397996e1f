"""Local patterns: the causal half, the sliding window, its dilated form, and blocks."""

from torch import Tensor

from sparselib.checks import at_least
from sparselib.masks.pattern import Pattern


def causal() -> Pattern:
    """Return the pattern of all keys up to and including the query's own position.

    Examples
    --------
    >>> masks.to_dense(masks.causal(), 1, 1, 4)[0, 0, 1].int()
    tensor([1, 1, 0, 0], dtype=torch.int32)
    """

    def attends(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        return kv_idx <= q_idx

    return attends


def sliding_window(width: int) -> Pattern:
    """Return the pattern of the keys around the query.

    Offsets j - i run over [-ceil(w/2) + 1, floor(w/2)], as in Sparsefinder's evaluation. Odd widths are symmetric, even widths
    look one position further ahead, width 1 is the diagonal and width 0 is empty. Rows at the edges are cut, not shifted.
    Intersected with :func:`causal`, width 11 is the query and its 5 predecessors.

    Parameters
    ----------
    width : int
        Number of keys w, including the query's own position; at least 0.

    Raises
    ------
    ValueError
        If `width` is negative.

    Examples
    --------
    >>> masks.to_dense(masks.sliding_window(4), 1, 1, 6)[0, 0, 2].int()
    tensor([0, 1, 1, 1, 1, 0], dtype=torch.int32)
    """
    at_least("width", width, 0)
    return _window(width, dilation=1)


def dilated(width: int, dilation: int) -> Pattern:
    """Return the pattern of every `dilation`-th key around the query (Extremely Sparse Transformer, §4).

    Offsets are those of :func:`sliding_window` times `dilation`, so ``dilated(width, 1)`` is ``sliding_window(width)``.

    Parameters
    ----------
    width : int
        Number of keys, including the query's own position; at least 0.
    dilation : int
        Distance between neighbouring keys, at least 1. The paper leaves it open; 2 is usual.

    Raises
    ------
    ValueError
        If `width` is negative or `dilation` is below 1.

    Examples
    --------
    >>> masks.to_dense(masks.dilated(3, 2), 1, 1, 6)[0, 0, 2].int()
    tensor([1, 0, 1, 0, 1, 0], dtype=torch.int32)
    """
    at_least("width", width, 0)
    at_least("dilation", dilation, 1)
    return _window(width, dilation)


def _window(width: int, dilation: int) -> Pattern:
    """Return the window's pattern for checked arguments."""
    behind = (1 - (width + 1) // 2) * dilation
    ahead = (width // 2) * dilation

    def attends(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        offset = kv_idx - q_idx
        return (offset >= behind) & (offset <= ahead) & (offset % dilation == 0)

    return attends


def block(size: int) -> Pattern:
    """Return the pattern of the keys in the query's own block (Extremely Sparse Transformer, §4).

    Parameters
    ----------
    size : int
        Consecutive positions per block, at least 1.

    Raises
    ------
    ValueError
        If `size` is below 1.

    Examples
    --------
    >>> masks.to_dense(masks.block(2), 1, 1, 6)[0, 0, 2].int()
    tensor([0, 0, 1, 1, 0, 0], dtype=torch.int32)
    """
    at_least("size", size, 1)

    def attends(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        return q_idx // size == kv_idx // size

    return attends
