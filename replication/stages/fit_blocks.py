"""Students of the efficient, block-based Sparsefinder (section 6.1)."""

from pathlib import Path
from typing import Annotated

import typer

from replication.stages.block_variants import folder_of
from replication.stages.options import Blocks, BlockSizes, Graphs, Projecting, Seeds


def fit_blocks(
    graphs: Graphs,
    block_size: BlockSizes,
    settings: Projecting,
    blocks: Blocks,
    points: Annotated[int, typer.Option(help="at most this many query and key chunks per head")],
    seed: Seeds,
    output: Annotated[
        Path, typer.Option(help="folder for size<z>/seed<n>/projections and /centroids, a file per layer")
    ],
) -> None:
    """Learn projections of chunks of every size, and their centroids for every number of clusters, in all layers."""
    from itertools import product

    from replication.graphs import centroids, projections
    from replication.graphs.shards import open_graphs
    from sparselib.blocks.chunks import Chunks

    for path in graphs:
        with open_graphs(path) as layer:
            for size, one in product(block_size, seed):
                chunks, folder = Chunks(size, blocks["pooling"]), folder_of(output, size, one)
                projection, losses = projections.fit_layer_projection(layer, settings, one, chunks)
                fitted = centroids.fit_block_layer(layer, projection, chunks, blocks["clusters"], points, one)
                header = {"block_size": size, "pooling": chunks.pooling, "seed": one, "layer": layer.header["layer"]}
                projections.save(
                    folder / "projections" / path.name, projection, settings=settings, losses=losses, **header
                )
                centroids.save(folder / "centroids" / path.name, fitted, points=points, **header)
