"""What every predictor checks before it looks at queries, keys, centroids or points."""

from typing import NamedTuple

import torch
from torch import Tensor

from sparselib.checks import Lengths
from sparselib.kernels.checks import first_not_finite
from sparselib.masks.visible import real_positions


class Tokens(NamedTuple):
    """Queries, or keys, of a batch: `vectors` ``[B, H, N, R]``, zero at padding; `real` ``Bool[B, 1, N, 1]``."""

    vectors: Tensor
    real: Tensor


def checked_inputs(q: Tensor, k: Tensor, lengths: Lengths) -> tuple[Tokens, Tokens]:
    """Queries and keys to compute with: finite, at least float32, rid of whatever the padding held.

    Raises ValueError if q and k are not 4-D with the same batch, heads and dimension, hold NaN or infinite
    values at real positions, differ in length although `lengths` is given, or if a length is not in 0..n. Under
    torch.compile, numbers are not looked at.
    """
    if q.ndim != 4 or k.ndim != 4:
        raise ValueError(f"q and k must be [B, H, N, D], got {tuple(q.shape)} and {tuple(k.shape)}")
    if q.shape[:2] != k.shape[:2] or q.shape[-1] != k.shape[-1]:
        raise ValueError(f"q and k must share B, H and D, got {tuple(q.shape)} and {tuple(k.shape)}")
    if lengths is not None and q.shape != k.shape:
        raise ValueError(f"lengths needs as many queries as keys, got {q.shape[2]} and {k.shape[2]}")
    queries, keys = _tokens(q, lengths), _tokens(k, lengths)
    if not torch.compiler.is_compiling():
        name = first_not_finite(q=queries.vectors, k=keys.vectors)
        if name is not None:
            raise ValueError(f"{name} holds NaN or infinite values")
    return queries, keys


def _tokens(x: Tensor, lengths: Lengths) -> Tokens:
    real = real_positions(x.shape[0], x.shape[2], lengths, x.device)[:, None, :, None]
    vectors = x.detach().to(torch.promote_types(x.dtype, torch.float32))
    return Tokens(vectors if lengths is None else vectors.masked_fill(~real, 0.0), real)


def matching_centroids(centroids: Tensor, tokens: Tokens) -> Tensor:
    """Centroids ``[H, C, R]`` in the tokens' dtype, on their device; ValueError unless H and R are theirs."""
    _, heads, _, dimension = tokens.vectors.shape
    if centroids.shape[0] != heads or centroids.shape[-1] != dimension:
        raise ValueError(
            f"centroids {tuple(centroids.shape)} do not fit inputs of {heads} heads, {dimension} dimensions"
        )
    return centroids.to(tokens.vectors)


def check_centroids(centroids: Tensor) -> None:
    """Raise ValueError unless `centroids` is a finite ``[H, C, R]`` with at least one centroid."""
    if centroids.ndim != 3 or centroids.shape[1] < 1:
        raise ValueError(f"centroids must be [H, C, R] with C >= 1, got {tuple(centroids.shape)}")
    if not centroids.isfinite().all():
        raise ValueError("centroids hold NaN or infinite values")


def check_points(points: Tensor, clusters: int) -> None:
    """Raise ValueError unless `points` ``[..., N, R]`` are finite and enough for 1 or more clusters."""
    if clusters < 1:
        raise ValueError(f"clusters must be at least 1, got {clusters}")
    if points.shape[-2] < clusters:
        raise ValueError(f"points: {points.shape[-2]} are too few for {clusters} clusters")
    if not points.isfinite().all():
        raise ValueError("points hold NaN or infinite values")
