"""The recall sweep over the attention graphs of any task."""

from typing import Annotated

import typer

from replication.stages.layers import by_layer, tables
from replication.stages.options import Centroids, Graphs, Methods, Projections, Seed, Table, Windows


def sweep(
    graphs: Graphs,
    projection: Projections,
    centroids: Centroids,
    methods: Methods,
    window: Windows,
    global_tokens: Annotated[str, typer.Option(help="none, first or first_last")],
    seed: Seed,
    output: Table,
) -> None:
    """Recall and sparsity of every member of the grid with every window, on every layer."""
    from replication.graphs import projections
    from replication.graphs.centroids import load
    from replication.graphs.grids import expand
    from replication.graphs.sweep import sweep_layer
    from replication.storage import write_table

    members = expand(methods)

    def measure(layer, projected, clustered):
        # Random patterns draw anew for every layer and sentence, and never share a draw between seeds.
        first_seed = (seed * 1000 + layer.header["layer"]) * 100_000
        return sweep_layer(
            layer, projections.load(projected), load(clustered), members, window, global_tokens, first_seed
        )

    table = tables(measure, by_layer(graphs, projection=projection, centroids=centroids))
    table.insert(0, "seed", seed)
    write_table(output, table.assign(global_tokens=global_tokens))
