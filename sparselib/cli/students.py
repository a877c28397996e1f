"""Stages that learn from one layer's attention graphs and measure on them; the same for every task."""

from pathlib import Path
from typing import Annotated

import typer

from sparselib.cli.options import json_object, stage

Graphs = Annotated[Path, typer.Option(help="attention graphs of one layer")]
ProjectionFile = Annotated[Path, typer.Option("--projection", help="projection of that layer")]
CentroidsFile = Annotated[Path, typer.Option("--centroids", help="centroids of that layer")]
Methods = Annotated[dict, typer.Option(parser=json_object, help="the grid: {method: {predictor, arguments}}")]
Seed = Annotated[int, typer.Option()]


def register(app: typer.Typer) -> None:
    for function in (project, cluster, sweep, coreference, tags):
        app.command()(stage(function))


def project(
    graphs: Graphs,
    settings: Annotated[dict, typer.Option(parser=json_object, help="arguments of fit_projection")],
    seed: Seed,
    output: Annotated[Path, typer.Option()],
) -> None:
    """Learn the projections of one layer."""
    from sparselib.graphs import open_graphs
    from sparselib.projections import fit_projection

    with open_graphs(graphs) as layer:
        projection, losses = fit_projection(layer, seed=seed, **settings)
        projection.save(output, settings=settings, seed=seed, losses=losses, layer=layer.header["layer"])


def cluster(
    graphs: Graphs,
    projection: ProjectionFile,
    methods: Methods,
    points: Annotated[int, typer.Option(help="at most this many projected queries and keys per head")],
    seed: Seed,
    output: Annotated[Path, typer.Option()],
) -> None:
    """Find the centroids of one layer, for every number of clusters in the grid."""
    from sparselib.centroids import fit_layer, save
    from sparselib.graphs import open_graphs
    from sparselib.projections import Projection

    with open_graphs(graphs) as layer:
        save(output, fit_layer(layer, Projection.load(projection), methods, points, seed), points=points, seed=seed)


def sweep(
    graphs: Graphs,
    projection: ProjectionFile,
    centroids: CentroidsFile,
    methods: Methods,
    window: Annotated[list[int], typer.Option(help="repeat for every window width; 0 is none")],
    global_tokens: Annotated[str, typer.Option(help="none, first or first_last")],
    seed: Seed,
    output: Annotated[Path, typer.Option()],
) -> None:
    """Recall and sparsity of every member of the grid with every window, on one layer."""
    from sparselib.centroids import load
    from sparselib.graphs import open_graphs
    from sparselib.grids import expand
    from sparselib.projections import Projection
    from sparselib.storage import write_table
    from sparselib.sweep import sweep_layer

    with open_graphs(graphs) as layer:
        number = layer.header["layer"]
        # Random patterns draw anew for every layer and sentence, and never share a draw between seeds.
        first_seed = (seed * 1000 + number) * 100_000
        table = sweep_layer(
            layer, Projection.load(projection), load(centroids), expand(methods), window, global_tokens, first_seed
        )
    table.insert(0, "layer", number)
    table.insert(0, "seed", seed)
    write_table(output, table.assign(global_tokens=global_tokens))


def coreference(
    graphs: Graphs,
    tokens: Annotated[Path, typer.Option(help="sequences of the same split")],
    output: Annotated[Path, typer.Option()],
) -> None:
    """How much attention each head gives to coreferent tokens."""
    from sparselib.analysis import coreference_by_head
    from sparselib.corpora.blocks import KIND
    from sparselib.graphs import open_graphs
    from sparselib.storage import read_header, read_tensors, write_table

    source = read_header(tokens, kind=KIND)["chain_source"]
    with open_graphs(graphs) as layer:
        table = coreference_by_head(layer, read_tensors(tokens, kind=KIND)["chains"])
        table.insert(0, "layer", layer.header["layer"])
    write_table(output, table.assign(chains=source))


def tags(
    graphs: Graphs,
    tokens: Annotated[Path, typer.Option(help="sequences of the same split")],
    projection: ProjectionFile,
    centroids: CentroidsFile,
    clusters: Annotated[int, typer.Option(help="which k-means of the grid")],
    output: Annotated[Path, typer.Option()],
) -> None:
    """How the parts of speech spread over the k-means clusters of each head."""
    from sparselib.analysis import tags_over_clusters
    from sparselib.centroids import load
    from sparselib.corpora.blocks import KIND
    from sparselib.graphs import open_graphs
    from sparselib.projections import Projection
    from sparselib.storage import read_header, read_tensors, write_table

    header = read_header(tokens, kind=KIND)
    with open_graphs(graphs) as layer:
        table = tags_over_clusters(
            layer,
            Projection.load(projection),
            load(centroids)[f"kmeans-{clusters}"],
            read_tensors(tokens, kind=KIND)["tags"],
            header["tag_names"],
        )
        table.insert(0, "layer", layer.header["layer"])
    write_table(output, table.assign(tags=header["tag_source"]))
