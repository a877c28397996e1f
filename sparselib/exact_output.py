"""Attention output without weights: the support kernel on a CPU, Triton on a GPU, and PyTorch's attention for softmax."""

from functools import partial

import torch
from torch import Tensor
from torch.autograd.forward_ad import unpack_dual
from torch.nn.functional import scaled_dot_product_attention

from sparselib.kernels.block_operator import attend
from sparselib.kernels.checks import DTYPES, MOST_DIMENSIONS, autocast
from sparselib.kernels.support_library import obstacle
from sparselib.kernels.threshold import NEAR_SOFTMAX
from sparselib.kernels.tracing import is_traced, is_transformed
from sparselib.normalizers import Entmax, Normalizer, entmax15, sparsemax


def exact_output(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, normalizer: Normalizer, scale: float | None = None
) -> Tensor | None:
    """Return the output ``[B, H, Q, E]`` of dense attention from a kernel that keeps no weights, or None if there is none.

    Parameters
    ----------
    q, k, v, mask, normalizer, scale : as for :func:`sparselib.attention`

    Examples
    --------
    >>> from sparselib import entmax15, topk_softmax
    >>> q = torch.ones(1, 1, 2, 4)
    >>> exact_output(q, q, q, None, topk_softmax) is None
    True
    """
    if not has_kernel(q, k, v, normalizer):
        return None
    q, k, v = autocast(q, k, v)
    if mask is not None:
        mask = mask[(None,) * (4 - mask.ndim)]
        if mask.view(torch.uint8).all():  # On a CPU, ten times faster on bytes than on booleans.
            mask = None
    is_softmax, is_compiled = normalizer.alpha == 1, obstacle(q, normalizer.alpha) is None
    if mask is not None and not (is_compiled or is_softmax):
        return None  # Triton has no masks of pairs
    if not is_softmax or (is_compiled and mask is not None):
        twice = partial(_dense, mask, normalizer)
        return attend(q, k, v, mask=mask, alpha=normalizer.alpha, scale=scale, twice=twice)[0]
    # PyTorch's kernels compute hidden pairs, too, and differ in what an empty row returns.
    if mask is not None and not mask.view(torch.uint8).any(-1).all():
        return None
    return scaled_dot_product_attention(q, k, v, mask, scale=scale)


def has_kernel(q: Tensor, k: Tensor, v: Tensor, normalizer: Normalizer) -> bool:
    """Return whether a kernel computes the output of these tensors under a normaliser, for most masks.

    Parameters
    ----------
    q, k, v, normalizer : as for :func:`sparselib.attention`

    Examples
    --------
    >>> from sparselib import Entmax
    >>> q = torch.ones(1, 1, 2, 4)
    >>> has_kernel(q, q, q, Entmax(1)), has_kernel(q, q, q, Entmax(3))
    (True, False)
    """
    # Other implementations of the same functions are chosen on purpose.
    is_ours = isinstance(normalizer, Entmax) or normalizer in (entmax15, sparsemax)
    if not is_ours or normalizer.alpha > 2 or is_traced(q) or any(map(_is_transformed, (q, k, v))):
        return False
    q, k, v = autocast(q, k, v)
    fits = q.dtype == k.dtype == v.dtype and q.ndim == 4 and q.shape[:2] == k.shape[:2] == v.shape[:2]
    if not (fits and q.dtype in DTYPES and all(1 <= x.shape[-1] <= MOST_DIMENSIONS for x in (q, v))):
        return False
    return normalizer.alpha == 1 or obstacle(q, normalizer.alpha) is None or _runs_on_triton(q, normalizer.alpha)


def _runs_on_triton(q: Tensor, alpha: float) -> bool:
    """Return whether the Triton backend computes the output of these queries, which it does in single precision."""
    return q.is_cuda and q.dtype != torch.float64 and alpha >= NEAR_SOFTMAX


def _is_transformed(x: Tensor) -> bool:
    """Return whether a tensor belongs to a function transformation, or carries a derivative in forward mode."""
    return is_transformed(x) or unpack_dual(x).tangent is not None


def _dense(mask: Tensor | None, normalizer: Normalizer, q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    """Return the output of the form that keeps all weights, which is differentiable twice."""
    scores = q @ k.mT * scale
    if mask is None:
        return normalizer(scores) @ v
    empty = ~mask.any(-1, keepdim=True)
    return normalizer(scores.where(mask, -torch.inf).masked_fill(empty, 0.0)).masked_fill(empty, 0.0) @ v
