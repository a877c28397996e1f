"""What rules learn from a model's own queries and keys: projections, centroids of tokens and of chunks, and gates."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from torch import Tensor

from replication.graphs.centroids import sample_points
from replication.retrofit.rivals import Gate, fit_gate
from sparselib.blocks.chunks import Chunks
from sparselib.huggingface.layers import NeededEdges
from sparselib.normalizers import Normalizer
from sparselib.predictors import fit_centroids
from sparselib.projections import Projection, fit_projection


@dataclass
class Students:
    """What one layer has learned from one seed. ``chunked`` and ``of_chunks`` are for blocks of tokens (section 6.1)."""

    projection: Projection
    centroids: dict[int, Tensor]
    chunked: Projection
    of_chunks: dict[int, Tensor]
    gate: Gate
    #: How long each of them took to learn.
    seconds: dict[str, float] = field(default_factory=dict)


def fit_students(
    batches: list[NeededEdges],
    normalizer: Normalizer,
    *,
    clusters: Iterable[int],
    block_clusters: Iterable[int],
    block: int,
    dimension: int,
    gate_dimension: int,
    epochs: int,
    gate_epochs: int,
    learning_rate: float,
    points: int,
    seed: int,
) -> Students:
    """Learn all of it on the same batches of one layer; ``points`` queries and keys per head are clustered."""
    clock, seconds = time.perf_counter(), {}

    def lap(name: str) -> None:
        nonlocal clock
        seconds[name], clock = time.perf_counter() - clock, time.perf_counter()

    learning = {"dimension": dimension, "epochs": epochs, "learning_rate": learning_rate, "seed": seed}
    projection, _ = fit_projection(batches, **learning)
    lap("projection")
    tokens = sample_points(batches, projection, points, seed)
    centroids = {count: fit_centroids(tokens, count, seed) for count in clusters}
    lap("centroids")
    chunks = Chunks(block)
    chunked, _ = fit_projection(batches, chunks=chunks, **learning)
    pooled = sample_points(batches, chunked, points, seed, chunks)
    of_chunks = {count: fit_centroids(pooled, count, seed) for count in block_clusters}
    lap("blocks")
    gate = fit_gate(
        batches, normalizer, block=block, count=1, dimension=gate_dimension, epochs=gate_epochs,
        learning_rate=learning_rate, seed=seed,
    )  # fmt: skip
    lap("gate")
    return Students(projection, centroids, chunked, of_chunks, gate, seconds)
