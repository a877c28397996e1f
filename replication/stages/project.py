"""Projections, learned from the attention graphs of any task."""

from replication.stages.options import Graphs, OfSeeds, Projecting, Seeds


def project(
    graphs: Graphs,
    settings: Projecting,
    seed: Seeds,
    output: OfSeeds,
) -> None:
    """Learn the projections of every layer, from every seed."""
    from replication.graphs import projections
    from replication.graphs.shards import open_graphs

    for path in graphs:
        with open_graphs(path) as layer:
            for one in seed:
                projection, losses = projections.fit_layer_projection(layer, settings, one)
                header = {"settings": settings, "seed": one, "losses": losses, "layer": layer.header["layer"]}
                projections.save(output / f"seed{one}" / path.name, projection, **header)
