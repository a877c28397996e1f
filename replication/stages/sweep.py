"""The recall sweep over the attention graphs of any task."""

from pathlib import Path
from typing import Annotated

import typer

from replication.stages.layers import tables
from replication.stages.options import CentroidsOfSeeds, Graphs, Methods, ProjectionsOfSeeds, Seeds, Windows


def sweep(
    graphs: Graphs,
    projections: ProjectionsOfSeeds,
    centroids: CentroidsOfSeeds,
    methods: Methods,
    window: Windows,
    global_tokens: Annotated[str, typer.Option(help="none, first or first_last")],
    seed: Seeds,
    output: Annotated[Path, typer.Option(help="folder for seed<n>.parquet, of all layers")],
) -> None:
    """Recall and sparsity of every member of the grid with every window, on every layer and from every seed."""
    from replication.files.storage import write_table
    from replication.graphs import projections as learned
    from replication.graphs.centroids import load
    from replication.graphs.grids import expand
    from replication.graphs.sweep import sweep_layer

    members = expand(methods)

    def measure(layer, name):
        students = {
            one: (learned.load(projections / f"seed{one}" / name), load(centroids / f"seed{one}" / name))
            for one in seed
        }
        return sweep_layer(layer, students, members, window, global_tokens)

    table = tables(measure, ((path, path.name) for path in graphs))
    table.insert(0, "seed", table.pop("seed"))
    table["global_tokens"] = global_tokens
    for one in seed:
        write_table(output / f"seed{one}.parquet", table[table["seed"] == one])
