"""Stages that learn from the attention graphs of every layer and measure on them; the same for every task."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from replication.stages.options import json_object, stage

Graphs = Annotated[list[Path], typer.Option(help="attention graphs, one file per layer, in order")]
Projections = Annotated[list[Path], typer.Option("--projection", help="one per layer, in order")]
Centroids = Annotated[list[Path], typer.Option("--centroids", help="one per layer, in order")]
Methods = Annotated[dict, typer.Option(parser=json_object, help="the grid: {method: {predictor, arguments}}")]
Tokens = Annotated[Path, typer.Option(help="sequences of the same split")]
Seed = Annotated[int, typer.Option()]
Folder = Annotated[Path, typer.Option(help="folder for one file per layer, named as its graphs")]
Table = Annotated[Path, typer.Option(help="table of all layers")]


def register(app: typer.Typer) -> None:
    for function in (project, cluster, sweep, coreference, tags):
        app.command()(stage(function))


def project(
    graphs: Graphs,
    settings: Annotated[dict, typer.Option(parser=json_object, help="arguments of fit_projection")],
    seed: Seed,
    output: Folder,
) -> None:
    """Learn the projections of every layer."""
    from replication.graphs import projections
    from replication.graphs.shards import open_graphs

    for path in graphs:
        with open_graphs(path) as layer:
            projection, losses = projections.fit_layer_projection(layer, settings, seed)
            header = {"settings": settings, "seed": seed, "losses": losses, "layer": layer.header["layer"]}
        projections.save(output / path.name, projection, **header)


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

    for path, projected in _by_layer(graphs, projection=projection):
        with open_graphs(path) as layer:
            fitted = fit_layer(layer, projections.load(projected), methods, points, seed)
        save(output / path.name, fitted, points=points, seed=seed)


def sweep(
    graphs: Graphs,
    projection: Projections,
    centroids: Centroids,
    methods: Methods,
    window: Annotated[list[int], typer.Option(help="repeat for every window width; 0 is none")],
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

    table = _tables(measure, _by_layer(graphs, projection=projection, centroids=centroids))
    table.insert(0, "seed", seed)
    write_table(output, table.assign(global_tokens=global_tokens))


def coreference(graphs: Graphs, tokens: Tokens, output: Table) -> None:
    """How much attention each head gives to coreferent tokens."""
    from replication.corpora.blocks import KIND
    from replication.graphs.analysis import coreference_by_head
    from replication.storage import read_header, read_tensors, write_table

    chains, source = read_tensors(tokens, kind=KIND)["chains"], read_header(tokens, kind=KIND)["chain_source"]
    table = _tables(lambda layer: coreference_by_head(layer, chains), _by_layer(graphs))
    write_table(output, table.assign(chains=source))


def tags(
    graphs: Graphs,
    tokens: Tokens,
    projection: Projections,
    centroids: Centroids,
    clusters: Annotated[int, typer.Option(help="which k-means of the grid")],
    output: Table,
) -> None:
    """How the parts of speech spread over the k-means clusters of each head."""
    from replication.corpora.blocks import KIND
    from replication.graphs import projections
    from replication.graphs.analysis import tags_over_clusters
    from replication.graphs.centroids import load
    from replication.storage import read_header, read_tensors, write_table

    header, tagged = read_header(tokens, kind=KIND), read_tensors(tokens, kind=KIND)["tags"]

    def measure(layer, projected, clustered):
        kmeans = load(clustered)[f"kmeans-{clusters}"]
        return tags_over_clusters(layer, projections.load(projected), kmeans, tagged, header["tag_names"])

    table = _tables(measure, _by_layer(graphs, projection=projection, centroids=centroids))
    write_table(output, table.assign(tags=header["tag_source"]))


def _by_layer(graphs: list[Path], **students: list[Path]) -> Iterator[tuple[Path, ...]]:
    """The files of one layer after the other. Raises ``ValueError`` if an option has more or fewer files than layers."""
    for name, files in students.items():
        if len(files) != len(graphs):
            raise ValueError(f"--{name}: {len(files)} files for the graphs of {len(graphs)} layers")
    return zip(graphs, *students.values(), strict=True)


def _tables(measure: Callable, files: Iterator[tuple[Path, ...]]):
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
