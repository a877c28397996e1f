"""What every layer can attend to under predicted blocks, from what fit-blocks has written."""

from pathlib import Path


def folder_of(students: Path, size: int, seed: int) -> Path:
    """The folder of projections and centroids for blocks of this size, learned from this seed."""
    return students / f"size{size}" / f"seed{seed}"


def variants_of(network, text, chunks, blocks: dict, students: Path, seed: int):
    from replication.graphs import projections
    from replication.graphs.centroids import load
    from replication.masked_lm.blocks import variants

    folder = folder_of(students, chunks.size, seed)
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: no such folder; it is written by fit-blocks")
    return variants(
        network,
        text.inputs.shape[1],
        chunks,
        blocks["counts"],
        blocks["clusters"],
        blocks["metric"],
        [projections.load(path) for path in sorted((folder / "projections").glob("*.safetensors"))],
        [load(path) for path in sorted((folder / "centroids").glob("*.safetensors"))],
        # Each layer draws its own random blocks, and no two seeds share a draw.
        seed * 1000,
    )
