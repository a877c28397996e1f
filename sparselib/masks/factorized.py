"""The factorised patterns of Sparse Transformers (Child et al. 2019), with the off-by-ones of later descriptions removed.

Each comes as its two parts A1 and A2, for heads that take one part each, and as their union. All are causal
by definition. Two steps, one in each part, lead from every position to every earlier one (for `fixed`, the
first part's own block is reached in a single step).
"""

from torch import Tensor

from sparselib.checks import at_least
from sparselib.masks.local import block, causal
from sparselib.masks.pattern import Pattern, intersection, union


def strided(stride: int) -> Pattern:
    """Both parts of `strided_parts` at once."""
    return union(*strided_parts(stride))


def strided_parts(stride: int) -> tuple[Pattern, Pattern]:
    """A1 = {max(0, i - l), ..., i}: l + 1 keys; A2 = {j <= i : (i - j) mod l = 0}, i itself included.

    Raises ValueError if stride < 1.
    """
    at_least("stride", stride, 1)

    def recent(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        return q_idx - kv_idx <= stride

    def every_stride(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        return (q_idx - kv_idx) % stride == 0

    return intersection(causal(), recent), intersection(causal(), every_stride)


def fixed(stride: int, summary: int) -> Pattern:
    """Both parts of `fixed_parts` at once."""
    return union(*fixed_parts(stride, summary))


def fixed_parts(stride: int, summary: int) -> tuple[Pattern, Pattern]:
    """A1 = {j <= i : j div l = i div l}, i's block; A2 = {j <= i : j mod l >= l - c}: c columns per block.

    Raises ValueError if stride < 1 or summary is not in 1..stride.
    """
    at_least("stride", stride, 1)
    if not 1 <= summary <= stride:
        raise ValueError(f"summary must be in 1..stride ({stride}), got {summary}")

    def summary_columns(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        return kv_idx % stride >= stride - summary

    return intersection(causal(), block(stride)), intersection(causal(), summary_columns)
