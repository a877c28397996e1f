"""From masks and normalisers of dense attention to the arguments of the block-sparse kernel."""

from functools import partial

import torch
from torch import Tensor

from sparselib.normalizers import entmax, entmax15, sparsemax


def alpha_of(normalizer: object) -> float:
    """The alpha whose alpha-entmax a normaliser is: 1.5 for ``entmax15``, 1 for ``partial(torch.softmax, dim=-1)``.

    Raises
    ------
    ValueError
        If it is none of ``entmax15``, ``sparsemax``, ``partial(entmax, alpha=number)`` and softmax.
    """
    if normalizer in (entmax15, sparsemax):
        return 1.5 if normalizer is entmax15 else 2.0
    if isinstance(normalizer, partial) and normalizer.func is torch.softmax:
        return 1.0
    if isinstance(normalizer, partial) and normalizer.func is entmax:
        alpha = normalizer.args[0] if normalizer.args else normalizer.keywords.get("alpha")
        if isinstance(alpha, int | float):
            return float(alpha)
    raise ValueError(f"normalizer: {normalizer} is no alpha-entmax of one alpha, which block-sparse attention needs")


def token_rules(visible: Tensor | None) -> tuple[bool, Tensor | None]:
    """What a mask of tokens ``Bool[B, 1, n, n]`` says as ``causal`` and ``lengths [B]``; padded queries are not looked at.

    Raises
    ------
    ValueError
        If it says anything else, as with padding on the left or a cache of earlier keys.
    """
    if visible is None:
        return False, None
    queries, keys = visible.shape[-2:]
    if queries != keys or visible.shape[1] != 1:
        raise ValueError(
            f"mask: {tuple(visible.shape)}; block-sparse attention needs as many queries as keys, and one mask for all heads"
        )
    lengths = visible.any(dim=2).sum(-1).flatten()  # keys that some query sees
    real = torch.arange(keys, device=visible.device) < lengths[:, None]  # [B, n]
    hidden_query, keys_only = ~real[:, None, :, None], real[:, None, None, :]
    for causal, expected in ((False, keys_only), (True, keys_only & torch.ones_like(visible[:1]).tril())):
        if ((visible == expected) | hidden_query).all():
            return causal, None if real.all() else lengths
    raise ValueError(
        "mask: block-sparse attention knows padding on the right and causality; this mask says something else"
    )
