"""What clusters hold: parts of speech."""

from typing import Annotated

import typer

from replication.stages.layers import by_layer, tables
from replication.stages.options import Centroids, Graphs, GraphTokens, Projections, Table


def tags(
    graphs: Graphs,
    tokens: GraphTokens,
    projection: Projections,
    centroids: Centroids,
    clusters: Annotated[int, typer.Option(help="which k-means of the grid")],
    output: Table,
) -> None:
    """How the parts of speech spread over the k-means clusters of each head."""
    from replication.corpora.blocks import KIND
    from replication.files.storage import read_header, read_tensors, write_table
    from replication.graphs import projections
    from replication.graphs.analysis import tags_over_clusters
    from replication.graphs.centroids import load

    header, tagged = read_header(tokens, kind=KIND), read_tensors(tokens, kind=KIND)["tags"]

    def measure(layer, projected, clustered):
        kmeans = load(clustered)[f"kmeans-{clusters}"]
        return tags_over_clusters(layer, projections.load(projected), kmeans, tagged, header["tag_names"])

    table = tables(measure, by_layer(graphs, projection=projection, centroids=centroids))
    write_table(output, table.assign(tags=header["tag_source"]))
