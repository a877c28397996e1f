"""The normalisers as nodes of autograd: eager, traced into one graph, under ``torch.func``, in forward mode, and twice.

An eager call runs row-wise kernels in chunks, which branch on the data. A compiler, ``torch.export`` and tensors without data
see one operator instead. The Jacobian of each normaliser is ``diag(w) - w w^T / sum(w)`` with a slope w that depends on its
probabilities p (Peters et al. 2019, Prop. 2), so gradients of gradients follow from the gradient written in terms of p.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from sparselib.kernels.registration import registered
from sparselib.kernels.tracing import is_traced, is_transformed
from sparselib.normalizer_rows import (
    alpha_rows,
    alpha_rows_backward,
    by_chunks,
    entmax15_rows,
    entmax15_rows_backward,
    softmax_rows_backward,
    sparsemax_rows,
    sparsemax_rows_backward,
    topk_rows,
)


class _Kind(NamedTuple):
    """A normaliser's kernels for rows, and its slope w as a differentiable function of p."""

    rows: Callable[..., None]
    backward_rows: Callable[..., None]
    slope: Callable[[Tensor], Tensor]


def _root(p: Tensor) -> Tensor:
    """Return ``sqrt(p)``, with a gradient of 0 where p is 0."""
    support = p > 0
    return torch.where(support, torch.where(support, p, 1.0).sqrt(), 0.0)


_KINDS = {
    "entmax15": _Kind(entmax15_rows, entmax15_rows_backward, _root),
    "sparsemax": _Kind(sparsemax_rows, sparsemax_rows_backward, lambda p: (p > 0).to(p.dtype)),
    "topk": _Kind(topk_rows, softmax_rows_backward, lambda p: p),
}


def normalized(scores: Tensor, kind: str, k: int = 0) -> Tensor:
    """Return the probabilities of scores along the last axis.

    Parameters
    ----------
    scores : Tensor ``[..., K]``
    kind : str, ``entmax15``, ``sparsemax`` or ``topk``
    k : int, for ``topk``
    """
    return _operator(scores, kind, k) if is_traced(scores) else _RowWise.apply(scores, kind, k)


def alpha_normalized(scores: Tensor, excess: Tensor) -> Tensor:
    """Return the alpha-entmax of ``scores [..., K]`` along the last axis, for ``excess [..., 1] = alpha - 1`` of at most 1."""
    return _alpha_operator(scores, excess) if is_traced(scores) else _Entmax.apply(scores, excess)


def _gradient(grad: Tensor, slope: Tensor) -> Tensor:
    """Return the Jacobian-vector product ``w * (g - <w, g> / sum(w))``."""
    return slope * (grad - (slope * grad).sum(-1, keepdim=True) / slope.sum(-1, keepdim=True))


def _must_be_differentiable(grad: Tensor) -> bool:
    """Return whether a backward pass is differentiated, transformed or batched, which kernels with ``out=`` do not support."""
    return torch.is_grad_enabled() or is_transformed(grad)


def _rows_first(x: Tensor, dim: int | None, size: int) -> Tensor:
    """Move vmap's axis to the front, or add it."""
    return x.expand(size, *x.shape) if dim is None else x.movedim(dim, 0)


class _RowWise(torch.autograd.Function):
    @staticmethod
    def forward(scores: Tensor, kind: str, k: int) -> Tensor:
        rows = _KINDS[kind].rows
        return by_chunks(partial(rows, k=k) if kind == "topk" else rows, scores)

    @staticmethod
    def setup_context(ctx, inputs: tuple, output: Tensor) -> None:
        ctx.kind = inputs[1]
        ctx.save_for_backward(output)
        ctx.save_for_forward(output)

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None, None]:
        (probabilities,) = ctx.saved_tensors
        kind = _KINDS[ctx.kind]
        if _must_be_differentiable(grad):
            return _gradient(grad, kind.slope(probabilities)), None, None
        return by_chunks(kind.backward_rows, probabilities, grad), None, None

    @staticmethod
    def jvp(ctx, tangent: Tensor, *_) -> Tensor:
        (probabilities,) = ctx.saved_tensors
        return _gradient(tangent, _KINDS[ctx.kind].slope(probabilities))  # the Jacobian is symmetric

    @staticmethod
    def vmap(info, in_dims: tuple, scores: Tensor, kind: str, k: int) -> tuple[Tensor, int]:
        return _RowWise.apply(_rows_first(scores, in_dims[0], info.batch_size), kind, k), 0


class _Entmax(torch.autograd.Function):
    @staticmethod
    def forward(scores: Tensor, excess: Tensor) -> Tensor:
        return by_chunks(alpha_rows, scores, excess)

    @staticmethod
    def setup_context(ctx, inputs: tuple, output: Tensor) -> None:
        ctx.set_materialize_grads(False)  # in forward mode, an alpha without a tangent must not get zeros
        ctx.save_for_backward(output, inputs[1])
        ctx.save_for_forward(output, inputs[1])

    @staticmethod
    def backward(ctx, grad: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
        if grad is None:
            return None, None
        probabilities, excess = ctx.saved_tensors
        if not ctx.needs_input_grad[1]:
            if _must_be_differentiable(grad):
                return _gradient(grad, _power(probabilities, 1 - excess)), None
            return by_chunks(alpha_rows_backward, probabilities, excess, grad), None
        if torch.is_grad_enabled():
            raise NotImplementedError(
                "`alpha` of entmax has no second derivatives; detach it, or call autograd without create_graph=True"
            )
        grad_excess = torch.zeros(excess.shape, dtype=excess.dtype, device=excess.device)
        return by_chunks(alpha_rows_backward, probabilities, excess, grad, grad_excess), grad_excess

    @staticmethod
    def jvp(ctx, tangent: Tensor, excess_tangent: Tensor | None) -> Tensor:
        if excess_tangent is not None:
            raise NotImplementedError(
                "`alpha` of entmax has no derivative in forward mode; detach it, or differentiate in reverse mode"
            )
        probabilities, excess = ctx.saved_tensors
        return _gradient(tangent, _power(probabilities, 1 - excess))

    @staticmethod
    def vmap(info, in_dims: tuple, scores: Tensor, excess: Tensor) -> tuple[Tensor, int]:
        inputs = (_rows_first(x, dim, info.batch_size) for x, dim in zip((scores, excess), in_dims, strict=True))
        return _Entmax.apply(*inputs), 0


def _power(p: Tensor, exponent: Tensor) -> Tensor:
    """Return ``p ** exponent``, but 0 where p is 0, with a gradient of 0 there."""
    support = p > 0
    return torch.where(support, torch.where(support, p, 1.0) ** exponent, 0.0)


def _forward(scores: Tensor, kind: str, k: int) -> Tensor:
    return _RowWise.forward(scores, kind, k)


def _save(ctx, inputs: tuple, output: Tensor) -> None:
    _RowWise.setup_context(ctx, inputs, output)


def _differentiate(ctx, grad: Tensor) -> tuple[Tensor, None, None]:
    (probabilities,) = ctx.saved_tensors
    return _gradient(grad, _KINDS[ctx.kind].slope(probabilities)), None, None


def _alpha_forward(scores: Tensor, excess: Tensor) -> Tensor:
    return _Entmax.forward(scores, excess)


def _alpha_save(ctx, inputs: tuple, output: Tensor) -> None:
    _Entmax.setup_context(ctx, inputs, output)


def _alpha_differentiate(ctx, grad: Tensor) -> tuple[Tensor, None]:
    probabilities, excess = ctx.saved_tensors
    if ctx.needs_input_grad[1]:
        raise NotImplementedError(
            "`alpha` of entmax has no gradient under torch.compile; detach it, or call it uncompiled"
        )
    return _gradient(grad, _power(probabilities, 1 - excess)), None


def _like(scores: Tensor, *_) -> Tensor:
    return torch.empty_like(scores)


_operator = registered("normalize", _forward, _like, _differentiate, _save)
_alpha_operator = registered("normalize_alpha", _alpha_forward, _like, _alpha_differentiate, _alpha_save)
