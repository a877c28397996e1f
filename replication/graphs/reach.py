"""Reach of attention patterns: the positions from which information flows to a query over several layers."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from sparselib import masks

if TYPE_CHECKING:
    from pandas import DataFrame

#: Lengths at which the factorised patterns are measured; the stride is their square root.
SIZES = (16, 64, 256, 1024)
#: Parts of a factorised pattern (the paper's p), and heads, so that each part gets its own head if heads have one part each.
PARTS = 2


def two_steps(second: Tensor, first: Tensor) -> Tensor:
    """Return the boolean product second · first, ``Bool[..., n, n]``, where ``first`` belongs to the earlier layer.

    An entry is True if the query attends under ``second`` to some position that attends under ``first`` to the key.
    """
    return second.float() @ first.float() > 0


def factorised_reach(sizes: tuple[int, ...] = SIZES) -> DataFrame:
    """Measure the reach of Sparse Transformers' factorised patterns over successive layers with residual connections.

    Parameters
    ----------
    sizes : tuple of int
        Sequence lengths.

    Returns
    -------
    DataFrame
        A row per pattern, assignment of parts to heads (``heads``) and length ``n``. ``keys`` is the mean number of keys per
        query and head in the first two layers. ``reached`` is the share of earlier positions that two layers reach. ``path``
        is the number of positions on the longest path needed to reach every earlier position, one more than its layers.
    """
    import pandas as pd

    rows = []
    for n in sizes:
        stride = round(n**0.5)
        parts = {"strided": masks.strided_parts(stride), "fixed": masks.fixed_parts(stride, 1)}
        for (pattern, pattern_parts), heads in itertools.product(parts.items(), masks.HEAD_COMBINATIONS):
            layers = [
                masks.to_dense(masks.combined(pattern_parts, heads, layer), 1, PARTS, n)[0] for layer in range(PARTS)
            ]
            keys = sum(layer.sum().item() for layer in layers) / (PARTS * PARTS * n)
            path, reached = _path(layers)
            rows.append({"pattern": pattern, "heads": heads, "n": n, "keys": keys, "reached": reached, "path": path})
    return pd.DataFrame(rows)


def _path(layers: list[Tensor]) -> tuple[int, float]:
    """Return the positions on the longest path, and the share of earlier positions reached after one pass over `layers`.

    Layers ``Bool[H, n, n]`` repeat until every earlier position is reached. Each layer's heads read from all heads below.

    Raises
    ------
    ValueError
        If the layers never reach every earlier position.
    """
    n = layers[0].shape[-1]
    identity = torch.eye(n, dtype=torch.bool)
    earlier, reached, shares = torch.ones_like(identity).tril(), identity, []
    while not torch.equal(reached, earlier):
        if len(shares) > n * len(layers):
            raise ValueError(f"`layers` never reach every earlier position of {n}, even when repeated {n} times")
        reached = two_steps(layers[len(shares) % len(layers)].any(0) | identity, reached)
        shares.append((reached.sum() / earlier.sum()).item())
    return len(shares) + 1, shares[: len(layers)][-1]
