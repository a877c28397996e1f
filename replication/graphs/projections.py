"""Projections of one layer: training on its stored graphs, and their files."""

from pathlib import Path

from replication.files.contents import check_tensors
from replication.files.storage import FormatError, read_tensors, write_tensors
from replication.graphs.shards import LayerGraphs
from sparselib.blocks.chunks import TOKENS, Chunks
from sparselib.projections import Projection, fit_projection
from sparselib.triplets import Edges

KIND = "projection"
#: Sequences per training step (Table 5).
BATCH_SIZE = 16


def fit_layer_projection(
    graphs: LayerGraphs,
    settings: dict[str, object],
    seed: int,
    chunks: Chunks = TOKENS,
    edges: dict[int, Edges] | None = None,
) -> tuple[Projection, list[float]]:
    """Train a projection on the graphs of a layer.

    Parameters
    ----------
    graphs : LayerGraphs
        Graphs of the layer.
    settings : dict
        Arguments of :func:`sparselib.projections.fit_projection`, and optionally ``batch_size``.
    seed : int
        Seed of the training.
    chunks : Chunks
        Chunks to project; single tokens by default.
    edges : dict, optional
        Gold edges of the batches, which further seeds with the same chunks use again.

    Returns
    -------
    projection : Projection
        The trained projection.
    losses : list of float
        The losses that ``fit_projection`` returns.
    """
    batches = graphs.batches(settings.get("batch_size", BATCH_SIZE))
    arguments = {name: value for name, value in settings.items() if name != "batch_size"}
    return fit_projection(batches, seed=seed, chunks=chunks, edges=edges, **arguments)


def save(path: str | Path, projection: Projection, **header: object) -> None:
    """Write a projection and further header fields to a file."""
    write_tensors(path, {"weight": projection.weight, "bias": projection.bias}, kind=KIND, **header)


def load(path: str | Path) -> Projection:
    """Read the projection of a file.

    Raises
    ------
    FormatError
        If its tensors have other names or shapes.
    """
    tensors = read_tensors(path, kind=KIND)
    check_tensors(path, tensors, {"weight": 3, "bias": 2})
    weight, bias = tensors["weight"], tensors["bias"]
    if bias.shape != (weight.shape[0], weight.shape[2]):
        raise FormatError(f"{path}: bias must fit weight {list(weight.shape)}, got {list(bias.shape)}")
    return Projection(weight, bias)
