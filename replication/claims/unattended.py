"""Queries to which a predicted graph gives no key (section 4.5, footnote 3)."""

from pathlib import Path

import pandas as pd

from replication.claims.finding import Finding
from replication.claims.scores import over_seeds
from replication.claims.settings import of_points, single
from replication.results.measurements import read_sweep
from replication.results.points import over_heads

KMEANS, ROUTING = "sparsefinder-kmeans", "routing"


def _keyless(folder: Path) -> pd.DataFrame:
    """Return the queries without any key in predicted graphs, in percent: rows are method and clusters, columns seeds.

    Windows and global tokens, which give every query a key, are left out. K-means has one centroid per point.
    """
    points = single(over_heads(read_sweep(folder)).query("method in [@ROUTING, @KMEANS]"))
    settings = of_points(points)
    if not {"keyless", "clusters"} <= {*points, *settings}:
        return pd.DataFrame()
    return 100 * points.assign(clusters=settings["clusters"]).pivot_table("keyless", ["method", "clusters"], "seed")


def routing_discards(folder: Path) -> Finding:
    """Return how many more queries have no key under Routing Transformer than under k-means, at each number of clusters."""
    keyless = _keyless(folder)
    both = [set(keyless.loc[name].index) if name in keyless.index else set() for name in (ROUTING, KMEANS)]
    if not (shared := sorted(set.intersection(*both))):
        return Finding([], missing=["queries without a key of routing and k-means with as many clusters"])
    difference = keyless.loc[ROUTING] - keyless.loc[KMEANS]
    return Finding([over_seeds(f"{count} clusters, routing - k-means", difference.loc[count]) for count in shared])


def kmeans_leaves(folder: Path) -> Finding:
    """Return how many queries have no key under k-means, at each number of clusters."""
    keyless = _keyless(folder)
    if KMEANS not in keyless.index:
        return Finding([], missing=["queries without a key of k-means"])
    return Finding([over_seeds(f"{count} clusters", of_seeds) for count, of_seeds in keyless.loc[KMEANS].iterrows()])
