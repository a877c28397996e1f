"""Comparison of k-means and distance with other projections, more clusters and more centroids per point."""

import pandas as pd

from replication.claims.comparison import leads
from replication.claims.curves import Curves, curves
from replication.claims.masked_lm import DISTANCE, KMEANS, ROUTING
from replication.claims.settings import single
from replication.config.budgets import Budgets
from replication.files.paths import ROOT
from replication.results.budgets import budgets_of, deciding
from replication.results.settings import read_points
from replication.tables.markers import markdown

FOLDER = ROOT / "reported" / "brown-512" / "kmeans"
#: Budget at which recall is read off the curves, and methods are compared.
BUDGET = "10 %"
#: k-means with one centroid per point, as in the paper's figures, and with any number.
ONE, ANY = "k-means, k = 1", "k-means, any k"
LOSSES = {"triplet": "triplet, Eq. 7", "set": "set, the authors' code"}


def compared(points: pd.DataFrame) -> Curves:
    """Return the recall curves, with k-means once with one centroid per point and once with any number."""
    rivals = points[points["method"].isin([DISTANCE, ROUTING])]
    kmeans = points[points["method"] == KMEANS]
    rows = pd.concat([rivals, single(kmeans).assign(method=ONE), kmeans.assign(method=ANY)], ignore_index=True)
    gold = 1 - points["gold_sparsity"].mean()
    return curves(rows, 100 * rows["recall"].to_numpy()[None], gold, budgets_of(gold, Budgets()))


def projections() -> str:
    """Return a row per loss and dimension: recall with 10 % of the pairs, and distance's lead over k-means there."""
    rows = []
    for path in sorted(
        FOLDER.glob("*.csv"), key=lambda path: (path.stem.split("-")[0] == "set", _dimension(path.stem))
    ):
        of_way = compared(read_points([path]))
        recall = [_at(of_way, method) for method in (DISTANCE, ONE, ANY, ROUTING)]
        ahead = [leads(of_way, [DISTANCE], [method], deciding(BUDGET)).every_effect() for method in (ONE, ANY)]
        loss = LOSSES[path.stem.split("-")[0]]
        rows.append([loss, str(_dimension(path.stem)), *recall, *(_interval(*effects) for effects in ahead)])
    header = [
        "loss",
        "r",
        *(f"{method}: recall with {BUDGET} of the pairs" for method in ("distance", ONE, ANY, "routing")),
    ]
    return markdown([*header, *(f"distance above {method}, there" for method in (ONE, ANY))], rows)


def _dimension(way: str) -> int:
    return int(way.split("-")[1])


def _at(of_way: Curves, method: str) -> str:
    budget = of_way.named(BUDGET)
    return f"{of_way.at(method, budget)[0].mean():.1f}" if of_way.has(method, budget) else "not measured"


def _interval(effect=None) -> str:
    if effect is None:
        return "not measured"
    low, high = effect.interval
    return f"{effect.value:.1f} ({low:.1f} to {high:.1f})"
