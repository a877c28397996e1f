"""Projections of one layer: learned from its stored graphs, and their files."""

from pathlib import Path

from replication.files.storage import read_tensors, write_tensors
from replication.graphs.shards import LayerGraphs
from sparselib.blocks.chunks import TOKENS, Chunks
from sparselib.projections import Projection, fit_projection

KIND = "projection"
#: Sequences a step, Table 5.
BATCH_SIZE = 16


def fit_layer_projection(
    graphs: LayerGraphs, settings: dict[str, object], seed: int, chunks: Chunks = TOKENS
) -> tuple[Projection, list[float]]:
    """:func:`sparselib.projections.fit_projection` on the graphs of a layer; ``settings`` may name a ``batch_size`` too."""
    batches = graphs.batches(settings.get("batch_size", BATCH_SIZE))
    arguments = {name: value for name, value in settings.items() if name != "batch_size"}
    return fit_projection(batches, seed=seed, chunks=chunks, **arguments)


def save(path: str | Path, projection: Projection, **header: object) -> None:
    write_tensors(path, {"weight": projection.weight, "bias": projection.bias}, kind=KIND, **header)


def load(path: str | Path) -> Projection:
    return Projection(**read_tensors(path, kind=KIND))
