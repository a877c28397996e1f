"""Sparsefinder's claims about machine translation (section 5); tests get the folder of all language pairs.

A claim holds if it holds for every language pair.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from replication.claims.comparison import leads, with_perturbed
from replication.claims.curves import BASELINES, Curves
from replication.claims.finding import Finding, Test, in_every, registering
from replication.claims.masked_lm import (
    DISTANCE,
    every_recall_curve,
    more_centroids,
    recall_curves,
)
from replication.claims.scores import correlation, over_seeds
from replication.claims.settings import of_points, single
from replication.claims.unattended import KMEANS, ROUTING, kmeans_leaves, routing_discards
from replication.files.verification import listed_files
from replication.results.measurements import read_sweep
from replication.results.points import over_heads

SPARSEFINDER = [DISTANCE, KMEANS]
#: Numbers of k-means' clusters in the paper's grid for translation.
CLUSTERS = (2, 4, 6, 8, 10, 12)
TESTS: dict[str, Test] = {}
_claim = in_every(TESTS, "*-*")


@_claim("mt-recall-sparsefinder-dominates")
def mt_recall_sparsefinder_dominates(folder: Path, budgets: list[str]) -> Finding:
    return leads(recall_curves(folder), SPARSEFINDER, [ROUTING, *BASELINES], budgets)


@_claim("mt-recall-sparsefinder-dominates-every-variant")
def mt_recall_sparsefinder_dominates_every_variant(folder: Path, budgets: list[str]) -> Finding:
    return leads(every_recall_curve(folder), SPARSEFINDER, [ROUTING, *BASELINES], budgets)


@_claim("mt-recall-routing-next")
def mt_recall_routing_next(folder: Path, budgets: list[str]) -> Finding:
    return leads(recall_curves(folder), [ROUTING], BASELINES, budgets)


@_claim("mt-recall-window-hard-to-beat")
def mt_recall_window_hard_to_beat(folder: Path, budgets: list[str]) -> Finding:
    methods = ["longformer", "bigbird", ROUTING, "sparsefinder-quantization"]
    return leads(recall_curves(folder), methods, ["window"], budgets)


_claim("mt-more-centroids-recall-more")(more_centroids)
_claim("mt-routing-discards-queries")(routing_discards)
_claim("mt-kmeans-avoids-queries-without-keys")(kmeans_leaves)


def _pairs_alike(folder: Path) -> Finding:
    """Return the rank correlation between two language pairs of the methods' mean recall at equal budgets.

    Within each pair, methods are compared at those budgets at which all of them are measured.
    """
    pairs = [path for path in listed_files(folder, "*-*") if (path / "sweep").is_dir()]
    if len(pairs) < 2:
        return Finding([], missing=["a second language pair"])
    return with_perturbed(partial(_alike, [pair.name for pair in pairs]), *map(recall_curves, pairs[:2]))


def _alike(names: list[str], *of_pairs: Curves) -> Finding:
    shared = sorted(set.intersection(*(set(compared.methods) for compared in of_pairs)))
    if len(shared) < 3:
        return Finding([], missing=["three methods of both pairs"])
    budgets = [compared.shared(*shared) for compared in of_pairs]
    if missing := [name for name, of_pair in zip(names, budgets, strict=False) if not of_pair]:
        return Finding([], missing=[f"{name}: a budget at which all methods are measured" for name in missing])
    ranked = [
        np.stack([np.mean([compared.at(name, b)[0] for b in of_pair], axis=0) for name in shared])
        for compared, of_pair in zip(of_pairs, budgets, strict=True)
    ]
    correlations = [rank_correlation(first, second) for first, second in zip(*(one.T for one in ranked), strict=False)]
    mean = correlation(f"rank correlation of {len(shared)} methods' recall", correlations)
    where = [f"{', '.join(b.name for b in of_pair)} in {name}" for of_pair, name in zip(budgets, names, strict=False)]
    return Finding([replace(mean, where=" and ".join(where))])


def rank_correlation(first: np.ndarray, second: np.ndarray) -> float:
    """Return Spearman's rank correlation of two arrays ``[N]``."""
    return pd.Series(first).corr(pd.Series(second), method="spearman")


registering(TESTS)("mt-pairs-alike")(_pairs_alike)


@_claim("mt-reformer-recall-and-sparsity")
def mt_reformer_recall_and_sparsity(folder: Path) -> Finding:
    """Compare Reformer's recall and sparsity to the others, with equal numbers of buckets and no window.

    Quantization is left out, because it merges the buckets of four dimensions, which makes it dense anyway.
    """
    rivals = [KMEANS, ROUTING]
    points = single(over_heads(read_sweep(folder)).query("window == 0"))
    if absent := {"reformer", *rivals} - set(points["method"]):
        return Finding([], missing=[f"no point of {', '.join(sorted(absent))} without a window"])
    mean = 100 * points.groupby(["seed", "method"])[["recall", "sparsity"]].mean().unstack("method")
    return Finding(
        [
            over_seeds(what, sign * (mean[measure]["reformer"] - mean[measure][rival]))
            for rival in rivals
            for measure, sign, what in (
                ("recall", 1, f"recall above {rival}"),
                ("sparsity", -1, f"sparsity below {rival}"),
            )
        ]
    )


@_claim("mt-kmeans-groups-more-pairs")
def mt_kmeans_groups_more_pairs(folder: Path) -> Finding:
    """Return the share of gold edges among k-means' predicted pairs; the other pairs get weight zero (Proposition 1).

    The grid is the paper's numbers of clusters, without a window.
    """
    points = single(over_heads(read_sweep(folder)).query("method == @KMEANS and window == 0"))
    points = points[of_points(points)["clusters"].isin(CLUSTERS)] if len(points) else points
    if points.empty:
        return Finding([], missing=["k-means with 2 to 12 clusters and no window"])
    used = sorted(of_points(points)["clusters"].unique())
    what = f"gold edges among predicted pairs with {', '.join(map(str, used))} clusters"
    return Finding([over_seeds(what, 100 * points.groupby("seed")["precision"].mean())])
