"""The files of every layer, read and measured one layer after the other."""

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
