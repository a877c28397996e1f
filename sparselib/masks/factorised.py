"""The factorised patterns of Sparse Transformers (Child et al. 2019), without the off-by-one errors of later descriptions."""
# All are causal, and exist as two parts A1 and A2, which lead from any position to any earlier one, and as their union.

from collections.abc import Callable, Sequence
from functools import reduce
from operator import or_

from torch import Tensor

from sparselib.checks import integer_at_least, one_of
from sparselib.masks.local import block, causal
from sparselib.masks.pattern import Pattern, intersection, union


def strided(stride: int) -> Pattern:
    """Return the union of :func:`strided_parts`.

    Parameters
    ----------
    stride : as in :func:`strided_parts`

    Examples
    --------
    >>> masks.to_dense(masks.strided(2), 1, 1, 6)[0, 0, 5].int()
    tensor([0, 1, 0, 1, 1, 1], dtype=torch.int32)
    """
    return union(*strided_parts(stride))


def strided_parts(stride: int) -> tuple[Pattern, Pattern]:
    """Return A1 = {max(0, i - l), ..., i}, which has l + 1 keys, and A2 = {j <= i : (i - j) mod l = 0}, which includes i.

    Parameters
    ----------
    stride : int, the paper's l, in positions, at least 1

    Examples
    --------
    >>> [masks.to_dense(part, 1, 1, 6)[0, 0, 5].int().tolist() for part in masks.strided_parts(2)]
    [[0, 0, 0, 1, 1, 1], [0, 1, 0, 1, 0, 1]]
    """
    integer_at_least("stride", stride, 1)

    def recent(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        return q_idx - kv_idx <= stride

    def every_stride(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        return (q_idx - kv_idx) % stride == 0

    return intersection(causal(), recent), intersection(causal(), every_stride)


def fixed(stride: int, summary: int) -> Pattern:
    """Return the union of :func:`fixed_parts`.

    Parameters
    ----------
    stride, summary : as in :func:`fixed_parts`

    Examples
    --------
    >>> masks.to_dense(masks.fixed(3, 1), 1, 1, 6)[0, 0, 4].int()
    tensor([0, 0, 1, 1, 1, 0], dtype=torch.int32)
    """
    return union(*fixed_parts(stride, summary))


def fixed_parts(stride: int, summary: int) -> tuple[Pattern, Pattern]:
    """Return A1 = {j <= i : j div l = i div l}, the query's block, and A2 = {j <= i : j mod l >= l - c}, c columns per block.

    Parameters
    ----------
    stride : int, the paper's l, the size of a block in positions, at least 1
    summary : int, the paper's c, the columns of each block that later blocks attend to, 1 to `stride`

    Raises
    ------
    ValueError

    Examples
    --------
    >>> [masks.to_dense(part, 1, 1, 6)[0, 0, 4].int().tolist() for part in masks.fixed_parts(3, 1)]
    [[0, 0, 0, 1, 1, 0], [0, 0, 1, 0, 0, 0]]
    """
    integer_at_least("stride", stride, 1)
    integer_at_least("summary", summary, 1)
    if summary > stride:
        raise ValueError(f"`summary` must be in 1..{stride}, the stride, got {summary}")

    def summary_columns(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        return kv_idx % stride >= stride - summary

    return intersection(causal(), block(stride)), intersection(causal(), summary_columns)


def combined(parts: Sequence[Pattern], how: str, layer: int = 0) -> Pattern:
    """Return the pattern of one layer's heads, in one of the paper's three ways.

    Parameters
    ----------
    parts : sequence of p patterns, p at least 1
    how : str, one of :data:`HEAD_COMBINATIONS`
        ``"interleaved"`` gives all heads of layer n part n mod p, ``"merged"`` gives every head the union, and ``"per_head"``
        gives head h part h mod p.
    layer : int, at least 0

    Examples
    --------
    >>> masks.to_dense(masks.combined(masks.strided_parts(2), "per_head"), 1, 2, 6)[0, :, 5].int().tolist()
    [[0, 0, 0, 1, 1, 1], [0, 1, 0, 1, 0, 1]]
    """
    one_of("how", how, HEAD_COMBINATIONS)
    integer_at_least("len(parts)", len(parts), 1)
    integer_at_least("layer", layer, 0)
    return HEAD_COMBINATIONS[how](parts, layer)


def _one_per_head(parts: Sequence[Pattern], layer: int) -> Pattern:
    def attends(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        return reduce(or_, ((h % len(parts) == n) & part(b, h, q_idx, kv_idx) for n, part in enumerate(parts)))

    return attends


HEAD_COMBINATIONS: dict[str, Callable[[Sequence[Pattern], int], Pattern]] = {
    "interleaved": lambda parts, layer: parts[layer % len(parts)],
    "merged": lambda parts, layer: union(*parts),
    "per_head": _one_per_head,
}
