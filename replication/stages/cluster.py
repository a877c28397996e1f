"""Centroids, found in the projected attention graphs of any task."""

from typing import Annotated

import typer

from replication.stages.layers import by_layer
from replication.stages.options import Folder, Graphs, Methods, Projections, Seed


def cluster(
    graphs: Graphs,
    projection: Projections,
    methods: Methods,
    points: Annotated[int, typer.Option(help="at most this many projected queries and keys per head")],
    seed: Seed,
    output: Folder,
) -> None:
    """Find the centroids of every layer, for every number of clusters in the grid."""
    from replication.graphs import projections
    from replication.graphs.centroids import fit_layer, save
    from replication.graphs.shards import open_graphs

    for path, projected in by_layer(graphs, projection=projection):
        with open_graphs(path) as layer:
            fitted = fit_layer(layer, projections.load(projected), methods, points, seed)
        save(output / path.name, fitted, points=points, seed=seed)
