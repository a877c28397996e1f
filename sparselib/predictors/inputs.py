"""Checks of queries, keys, centroids and points that all predictors share."""

from typing import NamedTuple

import torch
from torch import Tensor

from sparselib.checks import Lengths, integer_at_least
from sparselib.kernels.checks import first_not_finite
from sparselib.masks.visible import real_positions


class Tokens(NamedTuple):
    """A batch of queries or keys: `vectors` ``[B, H, N, R]``, zero in padding, and `real` ``Bool[B, 1, N, 1]``."""

    vectors: Tensor
    real: Tensor


def checked_inputs(q: Tensor, k: Tensor, lengths: Lengths) -> tuple[Tokens, Tokens]:
    """Return checked queries and keys in float32 or better, zero in padding; torch.compile skips the check of values."""
    if q.ndim != 4 or k.ndim != 4:
        raise ValueError(f"`q` and `k` must be [B, H, N, D], got {tuple(q.shape)} and {tuple(k.shape)}")
    if q.shape[:2] != k.shape[:2] or q.shape[-1] != k.shape[-1]:
        raise ValueError(f"`q` and `k` must share B, H and D, got {tuple(q.shape)} and {tuple(k.shape)}")
    if lengths is not None and q.shape != k.shape:
        raise ValueError(f"`lengths` needs as many queries as keys, got {q.shape[2]} and {k.shape[2]}")
    queries, keys = _tokens(q, lengths), _tokens(k, lengths)
    if not torch.compiler.is_compiling():
        name = first_not_finite(q=queries.vectors, k=keys.vectors)
        if name is not None:
            raise ValueError(f"`{name}` must be finite at real positions, got NaN or infinite values")
    return queries, keys


def _tokens(x: Tensor, lengths: Lengths) -> Tokens:
    real = real_positions(x.shape[0], x.shape[2], lengths, x.device)[:, None, :, None]
    vectors = x.detach().to(torch.promote_types(x.dtype, torch.float32))
    return Tokens(vectors if lengths is None else vectors.masked_fill(~real, 0.0), real)


def matching_centroids(centroids: Tensor, tokens: Tokens) -> Tensor:
    _, heads, _, dimension = tokens.vectors.shape
    if centroids.shape[0] != heads or centroids.shape[-1] != dimension:
        raise ValueError(
            f"`centroids` must be [{heads}, C, {dimension}] for inputs of {heads} heads and {dimension} dimensions, "
            f"got {tuple(centroids.shape)}"
        )
    return centroids.to(tokens.vectors)


def check_centroids(centroids: Tensor) -> None:
    if centroids.ndim != 3 or centroids.shape[1] < 1:
        raise ValueError(f"`centroids` must be [H, C, R] with C >= 1, got {tuple(centroids.shape)}")
    if not centroids.isfinite().all():
        raise ValueError("`centroids` must be finite, got NaN or infinite values")


def check_points(points: Tensor, clusters: int) -> None:
    integer_at_least("clusters", clusters, 1)
    if points.shape[-2] < clusters:
        raise ValueError(
            f"`points` must hold at least one point for each of {clusters} clusters, got {points.shape[-2]}"
        )
    if not points.isfinite().all():
        raise ValueError("`points` must be finite, got NaN or infinite values")
