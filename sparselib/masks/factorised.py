"""The factorised patterns of Sparse Transformers (Child et al. 2019), with the off-by-ones of later descriptions removed.

Each comes as its two parts A1 and A2, and as their union; :func:`combined` gives the papers' three ways to lay the parts out
over layers and heads. All are causal by definition. Two steps, one in each part, lead from every position to every earlier one
(for :func:`fixed`, the first part's own block is reached in a single step).
"""

from collections.abc import Callable, Sequence
from functools import reduce
from operator import or_

from torch import Tensor

from sparselib.checks import at_least, one_of
from sparselib.masks.local import block, causal
from sparselib.masks.pattern import Pattern, intersection, union


def strided(stride: int) -> Pattern:
    """Both parts of :func:`strided_parts` at once.

    Raises ``ValueError`` if `stride` is below 1.

    >>> masks.to_dense(masks.strided(2), 1, 1, 6)[0, 0, 5].int()
    tensor([0, 1, 0, 1, 1, 1], dtype=torch.int32)
    """
    return union(*strided_parts(stride))


def strided_parts(stride: int) -> tuple[Pattern, Pattern]:
    """A1 = {max(0, i - l), ..., i}: l + 1 keys; A2 = {j <= i : (i - j) mod l = 0}, i itself included.

    Raises ``ValueError`` if `stride` is below 1.

    >>> [masks.to_dense(part, 1, 1, 6)[0, 0, 5].int().tolist() for part in masks.strided_parts(2)]
    [[0, 0, 0, 1, 1, 1], [0, 1, 0, 1, 0, 1]]
    """
    at_least("stride", stride, 1)

    def recent(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        return q_idx - kv_idx <= stride

    def every_stride(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        return (q_idx - kv_idx) % stride == 0

    return intersection(causal(), recent), intersection(causal(), every_stride)


def fixed(stride: int, summary: int) -> Pattern:
    """Both parts of :func:`fixed_parts` at once.

    Raises ``ValueError`` if `stride` is below 1 or `summary` is not in 1 to `stride`.

    >>> masks.to_dense(masks.fixed(3, 1), 1, 1, 6)[0, 0, 4].int()
    tensor([0, 0, 1, 1, 1, 0], dtype=torch.int32)
    """
    return union(*fixed_parts(stride, summary))


def fixed_parts(stride: int, summary: int) -> tuple[Pattern, Pattern]:
    """A1 = {j <= i : j div l = i div l}, i's block; A2 = {j <= i : j mod l >= l - c}: c columns per block.

    Raises ``ValueError`` if `stride` is below 1 or `summary` is not in 1 to `stride`.

    >>> [masks.to_dense(part, 1, 1, 6)[0, 0, 4].int().tolist() for part in masks.fixed_parts(3, 1)]
    [[0, 0, 0, 1, 1, 0], [0, 0, 1, 0, 0, 0]]
    """
    at_least("stride", stride, 1)
    if not 1 <= summary <= stride:
        raise ValueError(f"summary must be in 1..stride ({stride}), got {summary}")

    def summary_columns(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        return kv_idx % stride >= stride - summary

    return intersection(causal(), block(stride)), intersection(causal(), summary_columns)


def combined(parts: Sequence[Pattern], how: str, layer: int = 0) -> Pattern:
    """What the heads of one layer attend to.

    Parameters
    ----------
    parts : sequence of p patterns
    how : str
        ``"interleaved"``: layer n takes part n mod p in all heads; ``"merged"``: every head the union; ``"per_head"``: head h
        part h mod p.
    layer : int

    Raises
    ------
    ValueError
        If `how` is none of these, there is no part, or `layer` is negative.

    >>> masks.to_dense(masks.combined(masks.strided_parts(2), "per_head"), 1, 2, 6)[0, :, 5].int().tolist()
    [[0, 0, 0, 1, 1, 1], [0, 1, 0, 1, 0, 1]]
    """
    one_of("how", how, HEAD_COMBINATIONS)
    at_least("number of parts", len(parts), 1)
    at_least("layer", layer, 0)
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
