"""Students of one layer, trained on a model's queries and keys: projections, token and chunk centroids, and gates."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from torch import Tensor

from replication.graphs.centroids import FITS, sample_points
from replication.retrofit.rivals import Gate, fit_gate
from sparselib.blocks.chunks import Chunks
from sparselib.huggingface.layers import NeededEdges
from sparselib.normalizers import Normalizer
from sparselib.predictors import fit_centroids
from sparselib.projections import Projection, fit_projection


@dataclass
class LayerStudents:
    """Students of one layer and seed.

    Attributes
    ----------
    projection : Projection
        Projection of tokens.
    centroids : dict of Tensor
        Centroids of projected tokens, by kind and cluster count: ``"kmeans-8"``.
    chunk_projection : Projection
        Projection of tokens for block selection (section 6.1).
    chunk_centroids : dict of Tensor
        Centroids of projected chunks, by cluster count.
    gate : Gate
        Gate over blocks.
    seconds : dict of float
        Training time of each student.
    """

    projection: Projection
    centroids: dict[str, Tensor]
    chunk_projection: Projection
    chunk_centroids: dict[int, Tensor]
    gate: Gate
    seconds: dict[str, float] = field(default_factory=dict)


def fit_students(
    batches: list[NeededEdges],
    normalizer: Normalizer,
    *,
    clusters: Mapping[str, list[int]],
    block_clusters: Iterable[int],
    block: int,
    dimension: int,
    gate_dimension: int,
    epochs: int,
    gate_epochs: int,
    learning_rate: float,
    points: int,
    seed: int,
) -> LayerStudents:
    """Train all students of one layer on the same batches.

    Parameters
    ----------
    batches : list of NeededEdges
        Queries and keys of the layer, with the edges to predict.
    normalizer : Normalizer
        The model's normaliser, whose weights the gate learns.
    clusters : mapping
        Cluster counts of tokens by the kind of centroids, such as ``"kmeans"``.
    block_clusters : iterable of int
        Cluster counts of chunks.
    block : int
        Tokens per block.
    dimension, gate_dimension : int
        Output size of the projections and the gate.
    epochs, gate_epochs : int
        Training epochs of the projections and the gate.
    learning_rate : float
        Learning rate of all students.
    points : int
        Queries and keys per head to cluster.
    seed : int
        Seed of all students.

    Returns
    -------
    LayerStudents
        The students, with their training times.
    """
    clock, seconds = time.perf_counter(), {}

    def lap(name: str) -> None:
        nonlocal clock
        seconds[name], clock = time.perf_counter() - clock, time.perf_counter()

    training = {"dimension": dimension, "epochs": epochs, "learning_rate": learning_rate, "seed": seed}
    projection, _ = fit_projection(batches, **training)
    lap("projection")
    tokens = sample_points(batches, projection, points, seed)
    centroids = {f"{kind}-{count}": FITS[kind](tokens, count, seed) for kind in clusters for count in clusters[kind]}
    lap("centroids")
    chunks = Chunks(block)
    chunk_projection, _ = fit_projection(batches, chunks=chunks, **training)
    chunk_points = sample_points(batches, chunk_projection, points, seed, chunks)
    chunk_centroids = {count: fit_centroids(chunk_points, count, seed) for count in block_clusters}
    lap("blocks")
    gate = fit_gate(
        batches, normalizer, block=block, count=1, dimension=gate_dimension, epochs=gate_epochs,
        learning_rate=learning_rate, seed=seed,
    )  # fmt: skip
    lap("gate")
    return LayerStudents(projection, centroids, chunk_projection, chunk_centroids, gate, seconds)
