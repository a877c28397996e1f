"""Projections, learned from the attention graphs of any task."""

from replication.stages.options import Folder, Graphs, Projecting, Seed


def project(
    graphs: Graphs,
    settings: Projecting,
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
