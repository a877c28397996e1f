"""Sparse normalisers: exact, differentiable maps from scores to probabilities of the same shape and dtype along one axis.

A score of ``-inf`` masks its key. A row without finite scores gives NaN, but zeros in :func:`sparselib.attention`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from sparselib.checks import at_least, integer_at_least
from sparselib.normalizer_gradients import alpha_normalized, normalized

__all__ = ["Entmax", "alpha_of", "entmax", "entmax15", "sparsemax", "topk_softmax"]

#: From scores ``[..., K]`` to probabilities of the same shape.
Normalizer = Callable[[Tensor], Tensor]


def entmax15(scores: Tensor, dim: int = -1) -> Tensor:
    """Return the exact 1.5-entmax of `scores`: ``p = (scores / 2 - tau)_+ ** 2`` with `tau` such that `p` sums to one.

    Newton's iteration approaches `tau` from below, where the equation is convex. If the closed form on the resulting support
    changes the support, the row is sorted (Peters et al. 2019, Alg. 2). So the support always equals that of sorting.

    Parameters
    ----------
    scores : Tensor, computed in float32 if in half precision
    dim : int, the axis that sums to one

    Examples
    --------
    >>> entmax15(torch.tensor([1.0, 0.5, -2.0]))
    tensor([0.6740, 0.3260, 0.0000])
    """
    return _along(dim, lambda x: normalized(x, "entmax15"), scores)


def sparsemax(scores: Tensor, dim: int = -1) -> Tensor:
    """Return the exact sparsemax of `scores`, their Euclidean projection onto the simplex (Martins & Astudillo 2016).

    Parameters
    ----------
    scores, dim : as in :func:`entmax15`

    Examples
    --------
    >>> sparsemax(torch.tensor([1.0, 0.5, -2.0]))
    tensor([0.7500, 0.2500, 0.0000])
    """
    return _along(dim, lambda x: normalized(x, "sparsemax"), scores)


def entmax(scores: Tensor, alpha: float | Tensor, dim: int = -1) -> Tensor:
    """Return the alpha-entmax of `scores` (Peters et al. 2019; Eq. 2 of the Sparsefinder paper).

    Parameters
    ----------
    scores, dim : as in :func:`entmax15`
    alpha : float or Tensor
        A number of at least 1: 1 is softmax, 1.5 and 2 use their exact algorithms. A tensor of at least 1 everywhere gives an
        alpha per row, for example per head; it has size 1 at `dim`, broadcasts to the shape of `scores` and gets a gradient.

    Raises
    ------
    ValueError
    ImportError
        If an alpha is above 2, where the ``entmax`` package bisects, and it is missing: ``pip install sparselib[entmax]``.

    Examples
    --------
    >>> entmax(torch.tensor([1.0, 0.5, -2.0]), 1.75)
    tensor([0.7082, 0.2918, 0.0000])
    """
    if not isinstance(alpha, Tensor):
        at_least("alpha", alpha, 1)
        if alpha == 1:
            return scores.softmax(dim)
        if alpha in (1.5, 2):
            return entmax15(scores, dim) if alpha == 1.5 else sparsemax(scores, dim)
        # Alpha - 1 in double precision: near 1, rounding alpha first would lose its digits.
        excess = torch.as_tensor(alpha - 1, dtype=torch.float64)
        return _along(dim, lambda x: _entmax_of_tensor(x, excess, alpha > 2), scores)
    if not (alpha.detach() >= 1).all():
        lowest = alpha.detach().min().item()
        raise ValueError(f"`alpha` must be at least 1 everywhere, got {lowest}; learn it as 1 + sigmoid(x)")
    excess = alpha - 1
    if alpha.ndim:
        last = _axis(scores, dim)
        rows = [1 if axis == last else size for axis, size in enumerate(scores.shape)]
        try:
            excess = excess.expand(rows).movedim(dim, -1)
        except RuntimeError as error:
            raise ValueError(
                f"`alpha` must broadcast to {tuple(rows)}, an alpha per row, got shape {tuple(alpha.shape)}"
            ) from error
    above_two = bool(scores.numel() and (excess.detach() > 1).any())
    return _along(dim, lambda x: _entmax_of_tensor(x, excess, above_two), scores)


def _entmax_of_tensor(scores: Tensor, excess: Tensor, above_two: bool) -> Tensor:
    """Return the alpha-entmax along the last axis, for ``excess = alpha - 1``; `above_two` tells whether any is above 1."""
    x = scores.float() if scores.dtype in (torch.float16, torch.bfloat16) else scores
    excess = excess.to(dtype=x.dtype, device=x.device)
    probabilities = alpha_normalized(x, excess.clamp(max=1).expand(*x.shape[:-1], 1))
    if above_two and scores.numel():
        from entmax import entmax_bisect

        # Shifted to a maximum of 0: steps towards the threshold would vanish beside large scores.
        x = x - x.detach().amax(-1, keepdim=True)
        probabilities = torch.where(excess > 1, entmax_bisect(x, excess.clamp(min=1) + 1, dim=-1), probabilities)
    return probabilities.to(scores.dtype)


def topk_softmax(scores: Tensor, k: int, dim: int = -1) -> Tensor:
    """Return the softmax over the `k` largest scores along `dim` (Explicit Sparse Transformer, Eq. 3-4).

    Parameters
    ----------
    scores, dim : as in :func:`entmax15`
    k : int, at least 1
        Ties with the k-th largest score are kept. The gradient treats the threshold as a constant.

    Examples
    --------
    >>> topk_softmax(torch.tensor([1.0, 0.5, -2.0]), 2)
    tensor([0.6225, 0.3775, 0.0000])
    """
    integer_at_least("k", k, 1)

    def along_last(x: Tensor) -> Tensor:
        if k >= x.shape[-1]:
            return x.softmax(-1)
        return normalized(x, "topk", k)

    return _along(dim, along_last, scores)


@dataclass(frozen=True)
class Entmax:
    """The alpha-entmax with a fixed alpha, as a function ``(scores, dim=-1)``.

    Parameters
    ----------
    alpha : float, at least 1

    Examples
    --------
    >>> Entmax(1.5)(torch.tensor([1.0, 0.5, -2.0]))
    tensor([0.6740, 0.3260, 0.0000])
    """

    alpha: float

    def __post_init__(self) -> None:
        at_least("alpha", self.alpha, 1)

    def __call__(self, scores: Tensor, dim: int = -1) -> Tensor:
        return entmax(scores, self.alpha, dim)


# The attribute that `alpha_of` reads.
entmax15.alpha, sparsemax.alpha = 1.5, 2.0


def alpha_of(normalizer: Normalizer) -> float:
    """Return the alpha of an alpha-entmax, read from the normaliser's attribute ``alpha``.

    Parameters
    ----------
    normalizer : callable with a single number for all rows as its ``alpha``

    Raises
    ------
    ValueError

    Examples
    --------
    >>> alpha_of(entmax15), alpha_of(Entmax(1.3))
    (1.5, 1.3)
    """
    alpha = getattr(normalizer, "alpha", None)
    if not isinstance(alpha, int | float):
        raise ValueError(
            f"`normalizer` must be an alpha-entmax with one alpha for block-sparse attention, got {normalizer}; "
            "use entmax15, sparsemax or Entmax(alpha)"
        )
    return float(alpha)


def _along(dim: int, function: Callable[[Tensor], Tensor], scores: Tensor) -> Tensor:
    """Apply a function of the last axis along `dim`."""
    if not scores.is_floating_point():
        raise ValueError(f"`scores` must be floating point, got {scores.dtype}; convert them with scores.float()")
    axis = _axis(scores, dim)
    if scores.ndim == 0:
        return function(scores[None])[0]
    if axis == scores.ndim - 1:
        return function(scores)
    return function(scores.movedim(axis, -1)).movedim(-1, axis)


def _axis(scores: Tensor, dim: int) -> int:
    """Return `dim` counted from 0; if `scores` has no such axis, raise the error of ``torch.softmax``."""
    scores.movedim(dim, -1)
    return dim % max(scores.ndim, 1)
