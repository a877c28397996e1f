"""Local patterns: the causal half, the sliding window, its dilated form, and blocks."""

from torch import Tensor

from sparselib.checks import integer_at_least
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
    """Return the pattern of the keys around the query, cut at the edges: offsets j - i in [-ceil(w/2) + 1, floor(w/2)].

    Odd widths are symmetric, even widths look one position further ahead, as in Sparsefinder's evaluation.

    Parameters
    ----------
    width : int, the number w of keys, including the query's own position, at least 0

    Examples
    --------
    >>> masks.to_dense(masks.sliding_window(4), 1, 1, 6)[0, 0, 2].int()
    tensor([0, 1, 1, 1, 1, 0], dtype=torch.int32)
    """
    integer_at_least("width", width, 0)
    return _window(width, dilation=1)


def dilated(width: int, dilation: int) -> Pattern:
    """Return the pattern of every `dilation`-th key around the query (Extremely Sparse Transformer, §4).

    Parameters
    ----------
    width : int, as in :func:`sliding_window`, whose offsets are multiplied by `dilation`
    dilation : int, at least 1 (the paper leaves it open; 2 is usual)

    Examples
    --------
    >>> masks.to_dense(masks.dilated(3, 2), 1, 1, 6)[0, 0, 2].int()
    tensor([1, 0, 1, 0, 1, 0], dtype=torch.int32)
    """
    integer_at_least("width", width, 0)
    integer_at_least("dilation", dilation, 1)
    return _window(width, dilation)


def _window(width: int, dilation: int) -> Pattern:
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
    size : int, the consecutive positions per block, at least 1

    Examples
    --------
    >>> masks.to_dense(masks.block(2), 1, 1, 6)[0, 0, 2].int()
    tensor([0, 0, 1, 1, 0, 0], dtype=torch.int32)
    """
    integer_at_least("size", size, 1)

    def attends(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        return q_idx // size == kv_idx // size

    return attends
