"""The files of every layer: graphs, measured one layer after the other, and what was learned from them."""

from collections.abc import Callable, Iterator
from pathlib import Path


def by_layer(graphs: list[Path], **students: list[Path]) -> Iterator[tuple[Path, ...]]:
    """The files of one layer after the other. Raises ``ValueError`` if an option has more or fewer files than layers."""
    for name, files in students.items():
        if len(files) != len(graphs):
            raise ValueError(f"--{name}: {len(files)} files for the graphs of {len(graphs)} layers")
    return zip(graphs, *students.values(), strict=True)


def tables(measure: Callable, files: Iterator[tuple[Path, ...]]):
    """What is measured on each layer's graphs, with its other files, one table below the other; first column: the layer."""
    import pandas as pd

    from replication.graphs.shards import open_graphs

    tables = []
    for path, *students in files:
        with open_graphs(path) as layer:
            table = measure(layer, *students)
            table.insert(0, "layer", layer.header["layer"])
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def students_of(projections: Path, centroids: Path, seeds: list[int]):
    """What ``project`` and ``cluster`` have left, in all layers, by the seed.

    Raises ``ValueError`` if there is nothing of a seed, and ``FileNotFoundError`` if one of both has a layer less.
    """
    from replication.graphs import centroids as found
    from replication.graphs import projections as learned
    from replication.graphs.replaced import Students

    students = {}
    for seed in seeds:
        folders = projections / f"seed{seed}", centroids / f"seed{seed}"
        names = sorted({path.name for folder in folders for path in folder.glob("layer*.safetensors")})
        if not names:
            raise ValueError(f"{folders[0]}: no layer is there")
        students[seed] = Students(
            [learned.load(folders[0] / name) for name in names], [found.load(folders[1] / name) for name in names]
        )
    return students
