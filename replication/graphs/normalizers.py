"""Normalisers in headers of files: an alpha, an alpha per head, or the k of top-k softmax."""

from functools import partial

import torch
from torch import Tensor

from sparselib.normalizers import Entmax, Normalizer, entmax, entmax15, topk_softmax


def description(normalizer: Normalizer) -> dict[str, object]:
    """Return what a normaliser is, as plain JSON.

    Raises
    ------
    ValueError
        If the normaliser has neither an ``alpha`` nor is a partial :func:`~sparselib.normalizers.topk_softmax`.

    Examples
    --------
    >>> description(entmax15), description(partial(topk_softmax, k=8))
    ({'alpha': 1.5}, {'k': 8})
    """
    if isinstance(normalizer, partial) and normalizer.func is topk_softmax:
        return {"k": normalizer.keywords["k"]}
    alpha = getattr(normalizer, "alpha", None)
    if isinstance(alpha, Tensor):
        return {"alpha": alpha.detach().double().flatten().tolist()}
    if not isinstance(alpha, int | float):
        raise ValueError(f"`normalizer` must have an alpha, or be topk_softmax with its k, got {normalizer}")
    return {"alpha": float(alpha)}


def described_normalizer(described: dict[str, object]) -> Normalizer:
    """Return the normaliser of a :func:`description`.

    Examples
    --------
    >>> described_normalizer({"alpha": 1.25})
    Entmax(alpha=1.25)
    """
    if "k" in described:
        return partial(topk_softmax, k=described["k"])
    alpha = described["alpha"]
    if isinstance(alpha, list):
        return partial(entmax, alpha=torch.tensor(alpha)[:, None, None])
    return entmax15 if alpha == 1.5 else Entmax(alpha)
