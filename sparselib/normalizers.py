"""Sparse normalisers: exact, fast and differentiable maps from scores to distributions over one axis.

All of them take scores of any shape, of which some, but not all, along that axis may be ``-inf`` (masked), and return
probabilities of the same shape and dtype. Signatures are those of the ``entmax`` package. Rows without any finite score are
the business of :func:`sparselib.attention`; here they raise no error and give NaN.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from sparselib.checks import at_least
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

__all__ = ["Entmax", "alpha_of", "entmax", "entmax15", "sparsemax", "topk_softmax"]

#: From scores ``[..., K]`` to probabilities of the same shape.
Normalizer = Callable[[Tensor], Tensor]


def entmax15(scores: Tensor, dim: int = -1) -> Tensor:
    """1.5-entmax, exactly: ``p = (scores / 2 - tau)_+ ** 2`` with ``tau`` such that ``p`` sums to one.

    Instead of sorting (Peters et al. 2019, Alg. 2), Newton's iteration approaches ``tau`` from below: ``||(x - tau)_+||`` is
    convex, falls, and is straight while the support does not change. The closed form on the support that it has found ends
    it, and counts only if that support is its own fixed point; otherwise the row is solved by sorting. So the support
    equals the one that sorting finds.

    Half precision is computed in float32. `dim` is the axis that sums to one.

    >>> entmax15(torch.tensor([1.0, 0.5, -2.0]))
    tensor([0.6740, 0.3260, 0.0000])
    """
    return _along(dim, lambda x: _RowWise.apply(x, entmax15_rows, entmax15_rows_backward), scores)


def sparsemax(scores: Tensor, dim: int = -1) -> Tensor:
    """Sparsemax (Martins & Astudillo 2016), the Euclidean projection of ``scores`` onto the simplex, exactly.

    Newton's iteration on the piecewise linear equation from below reaches ``tau`` in a finite number of steps.

    >>> sparsemax(torch.tensor([1.0, 0.5, -2.0]))
    tensor([0.7500, 0.2500, 0.0000])
    """
    return _along(dim, lambda x: _RowWise.apply(x, sparsemax_rows, sparsemax_rows_backward), scores)


def entmax(scores: Tensor, alpha: float | Tensor, dim: int = -1) -> Tensor:
    """alpha-entmax (Peters et al. 2019, Eq. 2 of the Sparsefinder paper) for ``alpha >= 1``.

    Parameters
    ----------
    scores : Tensor
    alpha : float or Tensor
        1 is softmax; 1.5 and 2 take their exact algorithms. Others, and tensors (one alpha per head, say, of a shape that
        broadcasts to that of `scores` with size 1 at `dim`), are solved by Newton's iteration up to 2, with a gradient for
        ``alpha`` too, and beyond it, where the equation is not convex, by the ``entmax`` package's bisection.
    dim : int
        The axis that sums to one.

    Raises
    ------
    ValueError
        If an alpha is below 1, or one of a tensor is 1.
    ImportError
        If an alpha is above 2 and the ``entmax`` package is missing: ``pip install sparselib[entmax]``.

    >>> entmax(torch.tensor([1.0, 0.5, -2.0]), 1.75)
    tensor([0.7082, 0.2918, 0.0000])
    """
    if not isinstance(alpha, Tensor):
        at_least("alpha", alpha, 1)
        if alpha == 1:
            return scores.softmax(dim)
        if alpha in (1.5, 2):
            return entmax15(scores, dim) if alpha == 1.5 else sparsemax(scores, dim)
        return _along(dim, lambda x: _entmax_of_tensor(x, torch.as_tensor(alpha, dtype=torch.float64)), scores)
    if (alpha.detach() <= 1).any():
        raise ValueError("alpha: a tensor of alphas must be above 1 everywhere; for learned ones use 1 + sigmoid(x)")
    if alpha.ndim:
        alpha = alpha.expand([1 if axis == dim % scores.ndim else size for axis, size in enumerate(scores.shape)])
        alpha = alpha.movedim(dim, -1)
    return _along(dim, lambda x: _entmax_of_tensor(x, alpha), scores)


def _entmax_of_tensor(scores: Tensor, alpha: Tensor) -> Tensor:
    # In float32 or better, and away from large scores, where steps towards the threshold would be lost.
    x = scores.float() if scores.dtype in (torch.float16, torch.bfloat16) else scores
    x = x - x.detach().amax(-1, keepdim=True)
    alpha = alpha.to(dtype=x.dtype, device=x.device)
    if (alpha.detach() < 2).all():
        probabilities = _Entmax.apply(x, alpha.expand(*x.shape[:-1], 1))
    else:
        from entmax import entmax_bisect

        probabilities = entmax_bisect(x, alpha, dim=-1)
    return probabilities.to(scores.dtype)


def topk_softmax(scores: Tensor, k: int, dim: int = -1) -> Tensor:
    """Softmax over the k largest scores along `dim` (Explicit Sparse Transformer, Eq. 3-4).

    Ties with the k-th largest score are kept, and the threshold is a constant for the gradient. A ``k`` beyond the row keeps
    every finite score.

    Raises ``ValueError`` if ``k`` is below 1.

    >>> topk_softmax(torch.tensor([1.0, 0.5, -2.0]), 2)
    tensor([0.6225, 0.3775, 0.0000])
    """
    at_least("k", k, 1)
    if k >= scores.shape[dim]:
        return scores.softmax(dim)
    return _along(dim, lambda x: _RowWise.apply(x, partial(topk_rows, k=k), softmax_rows_backward), scores)


@dataclass(frozen=True)
class Entmax:
    """alpha-entmax of one alpha, which it knows: what the block-sparse kernel is told.

    Raises ``ValueError`` if alpha is below 1.

    >>> Entmax(1.5)(torch.tensor([1.0, 0.5, -2.0]))
    tensor([0.6740, 0.3260, 0.0000])
    """

    alpha: float

    def __post_init__(self) -> None:
        at_least("alpha", self.alpha, 1)

    def __call__(self, scores: Tensor, dim: int = -1) -> Tensor:
        return entmax(scores, self.alpha, dim)


# They know their alphas too.
entmax15.alpha, sparsemax.alpha = 1.5, 2.0


def alpha_of(normalizer: Normalizer) -> float:
    """The alpha whose alpha-entmax a normaliser is, by its attribute ``alpha``.

    Raises ``ValueError`` if it has none, or not one number for all rows.

    >>> alpha_of(entmax15), alpha_of(Entmax(1.3))
    (1.5, 1.3)
    """
    alpha = getattr(normalizer, "alpha", None)
    if not isinstance(alpha, int | float):
        raise ValueError(
            f"normalizer: {normalizer} is no alpha-entmax of one alpha, which block-sparse attention needs"
        )
    return float(alpha)


def _along(dim: int, function: Callable[[Tensor], Tensor], scores: Tensor) -> Tensor:
    """A function of the last axis, applied to another."""
    if dim % scores.ndim == scores.ndim - 1:
        return function(scores)
    return function(scores.movedim(dim, -1)).movedim(-1, dim)


class _Entmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores: Tensor, alpha: Tensor) -> Tensor:
        probabilities = by_chunks(alpha_rows, scores, alpha)
        ctx.save_for_backward(probabilities, alpha)
        return probabilities

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, Tensor]:
        probabilities, alpha = ctx.saved_tensors
        grad_alpha = torch.empty(alpha.shape, dtype=alpha.dtype, device=alpha.device)
        return by_chunks(alpha_rows_backward, probabilities, alpha, grad, grad_alpha), grad_alpha


class _RowWise(torch.autograd.Function):
    """A normaliser whose gradient follows from its probabilities alone."""

    @staticmethod
    def forward(ctx, scores: Tensor, rows: Callable[..., None], backward_rows: Callable[..., None]) -> Tensor:
        probabilities = by_chunks(rows, scores)
        ctx.save_for_backward(probabilities)
        ctx.backward_rows = backward_rows
        return probabilities

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None, None]:
        (probabilities,) = ctx.saved_tensors
        return by_chunks(ctx.backward_rows, probabilities, grad), None, None
