"""Which positions a pattern reaches through others, as information flows from layer to layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from sparselib import masks

if TYPE_CHECKING:
    from pandas import DataFrame

#: Lengths at which the factorised patterns are measured; the stride is their square root.
SIZES = (16, 64, 256, 1024)
#: Parts of a factorised pattern, the paper's p; and as many heads, so that each part has one where heads take one each.
PARTS = 2


def two_steps(second: Tensor, first: Tensor) -> Tensor:
    """``Bool[..., n, n]``: the query attends by ``second`` to some position that attends by ``first`` to the key.

    The boolean product second · first; ``first`` belongs to the earlier layer.
    """
    return second.float() @ first.float() > 0


def factorised_reach(sizes: tuple[int, ...] = SIZES) -> DataFrame:
    """The factorised patterns of Sparse Transformers over successive layers with residual connections.

    Returns
    -------
    A row per pattern, way to lay its parts out over heads (``heads``) and length ``n``: ``keys`` that a head attends to per
    query, mean over the first two layers; ``reached``, the share of all earlier positions that two layers bring information
    from; and ``path``, the positions on the longest path that information has to take, one more than the layers it needs.
    """
    import pandas as pd

    rows = []
    for n in sizes:
        stride = round(n**0.5)
        parts = {"strided": masks.strided_parts(stride), "fixed": masks.fixed_parts(stride, 1)}
        for (pattern, of_pattern), heads in ((item, way) for item in parts.items() for way in masks.HEAD_COMBINATIONS):
            layers = [
                masks.to_dense(masks.combined(of_pattern, heads, layer), 1, PARTS, n)[0] for layer in range(PARTS)
            ]
            keys = sum(layer.sum().item() for layer in layers) / (PARTS * PARTS * n)
            path, reached = _path(layers)
            rows.append({"pattern": pattern, "heads": heads, "n": n, "keys": keys, "reached": reached, "path": path})
    return pd.DataFrame(rows)


def _path(layers: list[Tensor]) -> tuple[int, float]:
    """Positions on the longest path through as many layers as it takes, and the share reached after those given.

    Layers ``Bool[H, n, n]`` follow each other again and again; what one head brings, the next layer's heads all see.

    Raises
    ------
    ValueError
        If they never reach every earlier position.
    """
    n = layers[0].shape[-1]
    itself = torch.eye(n, dtype=torch.bool)
    everything, found, shares = torch.ones_like(itself).tril(), itself, []
    while not torch.equal(found, everything):
        if len(shares) > n * len(layers):
            raise ValueError("these layers never reach every earlier position")
        found = two_steps(layers[len(shares) % len(layers)].any(0) | itself, found)
        shares.append((found.sum() / everything.sum()).item())
    return len(shares) + 1, shares[: len(layers)][-1]
