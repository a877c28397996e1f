"""Centroids, found in the projected attention graphs of any task."""

from typing import Annotated

import typer

from replication.stages.options import Graphs, Methods, OfSeeds, ProjectionsOfSeeds, Seeds


def cluster(
    graphs: Graphs,
    projections: ProjectionsOfSeeds,
    methods: Methods,
    points: Annotated[int, typer.Option(help="at most this many projected queries and keys per head")],
    seed: Seeds,
    output: OfSeeds,
) -> None:
    """Find the centroids of every layer, for every number of clusters in the grid, from every seed."""
    from replication.graphs.centroids import fit_layer, save
    from replication.graphs.projections import load
    from replication.graphs.shards import open_graphs

    for path in graphs:
        with open_graphs(path) as layer:
            for one in seed:
                fitted = fit_layer(layer, load(projections / f"seed{one}" / path.name), methods, points, one)
                save(output / f"seed{one}" / path.name, fitted, points=points, seed=one)
