"""Centroids of one layer, by k-means and as in the Routing Transformer, for every cluster count of a grid."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from replication.files.contents import check_tensors
from replication.files.storage import read_tensors, write_tensors
from replication.graphs.grids import Member
from replication.graphs.shards import LayerGraphs
from replication.predictors.predictor_files import predictor_class
from sparselib.blocks.chunks import TOKENS, Chunks
from sparselib.predictors import Predictor, fit_centroids, fit_routing_centroids
from sparselib.projections import Batch, Projection

KIND = "centroids"
#: Sequences read at a time.
BATCH_SIZE = 16
#: How centroids are fitted, by the kind that predictors need.
FITS = {"kmeans": fit_centroids, "routing": fit_routing_centroids}


def fit_layer(
    graphs: LayerGraphs, projection: Projection, counts: Mapping[str, list[int]], points: int, seed: int
) -> dict[str, Tensor]:
    """Fit centroids to the union of projected queries and keys (section 4.5).

    Parameters
    ----------
    counts : mapping
        Numbers of clusters by the kind of centroids, :func:`replication.graphs.grids.cluster_counts`.

    Returns
    -------
    dict of Tensor
        ``{"kmeans-8": [H, 8, R], "routing-8": ...}``.
    """
    sample = sample_points(graphs.batches(BATCH_SIZE), projection, points, seed)
    return {f"{kind}-{count}": FITS[kind](sample, count, seed) for kind in counts for count in counts[kind]}


def fit_block_layer(
    graphs: LayerGraphs, projection: Projection, chunks: Chunks, clusters: list[int], points: int, seed: int
) -> dict[str, Tensor]:
    """Fit k-means centroids to the union of query and key chunks (section 6.1).

    Returns
    -------
    dict of Tensor
        ``{"kmeans-8": [H, 8, R], ...}``, where R is the size of a chunk vector.
    """
    sample = sample_points(graphs.batches(BATCH_SIZE), projection, points, seed, chunks)
    return {f"kmeans-{count}": fit_centroids(sample, count, seed) for count in clusters}


def fit_members(
    members: Sequence[Member], batches: Iterable[Batch], projection: Projection, seed: int
) -> dict[str, Predictor]:
    """Return the members that fit themselves to the gold graphs of one layer, by their :attr:`Member.point`."""
    return {
        member.point: predictor_class(member.predictor).fit(batches, projection, seed, **member.arguments)
        for member in members
        if member.fits
    }


def sample_points(
    batches: Iterable[Batch], projection: Projection, points: int, seed: int, chunks: Chunks = TOKENS
) -> Tensor:
    """Draw at most ``points`` projected queries and keys per head, uniformly from the real chunks: ``[H, N, R]``."""
    parts = []
    for batch in batches:
        real = torch.arange(chunks.count(batch.q.shape[2])) < chunks.count(batch.lengths)[:, None]
        for x in (batch.q, batch.k):
            parts.append(chunks.vectors(projection(x), batch.lengths).transpose(1, 2)[real])  # [chunks, H, R]
    union = torch.cat(parts)
    drawn = torch.randperm(len(union), generator=torch.Generator().manual_seed(seed))[:points]
    return union[drawn].transpose(0, 1).contiguous()


def save(path: str | Path, centroids: dict[str, Tensor], **header: object) -> None:
    """Write centroids and further header fields to a file."""
    write_tensors(path, centroids, kind=KIND, **header)


def load(path: str | Path) -> dict[str, Tensor]:
    """Read the centroids of a file, ``[H, C, R]`` each.

    Raises
    ------
    FormatError
        If they have other shapes.
    """
    centroids = read_tensors(path, kind=KIND)
    check_tensors(path, centroids, dict.fromkeys(centroids, 3))
    return centroids
