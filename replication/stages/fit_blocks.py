"""Students of the efficient, block-based Sparsefinder (section 6.1)."""

from pathlib import Path
from typing import Annotated

import typer

from replication.stages.options import Blocks, BlockSize, Projecting, Seed


def fit_blocks(
    graphs: Annotated[list[Path], typer.Option(help="attention graphs, one per layer, in order")],
    block_size: BlockSize,
    settings: Projecting,
    blocks: Blocks,
    points: Annotated[int, typer.Option(help="at most this many query and key chunks per head")],
    seed: Seed,
    output: Annotated[Path, typer.Option(help="folder for projections/ and centroids/, one file per layer in each")],
) -> None:
    """Learn the projections of chunks of one size, and their centroids for every number of clusters, in all layers."""
    from replication.graphs import centroids, projections
    from replication.graphs.shards import open_graphs
    from sparselib.blocks.chunks import Chunks

    chunks = Chunks(block_size, blocks["pooling"])
    header = {"block_size": block_size, "pooling": chunks.pooling, "seed": seed}
    for path in graphs:
        with open_graphs(path) as layer:
            projection, losses = projections.fit_layer_projection(layer, settings, seed, chunks)
            fitted = centroids.fit_block_layer(layer, projection, chunks, blocks["clusters"], points, seed)
            header |= {"layer": layer.header["layer"]}
        projections.save(output / "projections" / path.name, projection, settings=settings, losses=losses, **header)
        centroids.save(output / "centroids" / path.name, fitted, points=points, **header)
