"""What every layer can attend to under predicted blocks, from what fit-blocks has written."""

from pathlib import Path


def variants_of(network, text, chunks, blocks: dict, projection: list[Path], centroids: list[Path], seed: int):
    from replication.graphs import projections
    from replication.graphs.centroids import load
    from replication.masked_lm.blocks import variants

    return variants(
        network,
        text.inputs.shape[1],
        chunks,
        blocks["counts"],
        blocks["clusters"],
        blocks["metric"],
        [projections.load(path) for path in projection],
        [load(path) for path in centroids],
        # Each layer draws its own random blocks, and no two seeds share a draw.
        seed * 1000,
    )
