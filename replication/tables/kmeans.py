"""Comparison of k-means and distance with other projections, more clusters and more centroids per point."""

import pandas as pd

from replication.claims.band import Band
from replication.claims.curves import GRID, Curves, curves, leads
from replication.claims.masked_lm import DISTANCE, KMEANS, ROUTING
from replication.claims.settings import single
from replication.files.paths import ROOT
from replication.settings import read_points
from replication.tables.markers import markdown

FOLDER = ROOT / "reported" / "brown-512" / "kmeans"
#: The ledger's band near the gold sparsity.
BAND = Band.parse("gold - 0.10")
#: Sparsity at which recall is read off the fronts.
SPARSITY = 0.9
#: k-means with one centroid per point, as in the paper's figures, and with any number.
ONE, ANY = "k-means, k = 1", "k-means, any k"
LOSSES = {"triplet": "triplet, Eq. 7", "set": "set, the authors' code"}


def compared(points: pd.DataFrame) -> Curves:
    """Return the recall curves, with k-means once with one centroid per point and once with any number."""
    rivals = points[points["method"].isin([DISTANCE, ROUTING])]
    kmeans = points[points["method"] == KMEANS]
    rows = pd.concat([rivals, single(kmeans).assign(method=ONE), kmeans.assign(method=ANY)], ignore_index=True)
    return curves(rows, 100 * rows["recall"].to_numpy()[None], points["gold_sparsity"].mean())


def projections() -> str:
    """Return a row per loss and dimension: recall at a sparsity of 0.9, and distance's lead over k-means."""
    rows = []
    for path in sorted(
        FOLDER.glob("*.csv"), key=lambda path: (path.stem.split("-")[0] == "set", _dimension(path.stem))
    ):
        of_way = compared(read_points([path]))
        recall = [_at(of_way, method) for method in (DISTANCE, ONE, ANY, ROUTING)]
        ahead = [leads(of_way, [DISTANCE], [method], BAND).effects for method in (ONE, ANY)]
        loss = LOSSES[path.stem.split("-")[0]]
        rows.append([loss, str(_dimension(path.stem)), *recall, *(_interval(*effects) for effects in ahead)])
    header = ["loss", "r", *(f"{method}: recall at {SPARSITY}" for method in ("distance", ONE, ANY, "routing"))]
    return markdown([*header, *(f"distance above {method}, near gold" for method in (ONE, ANY))], rows)


def _dimension(way: str) -> int:
    return int(way.split("-")[1])


def _at(of_way: Curves, method: str) -> str:
    value = of_way.fronts[method][0, :, abs(GRID - SPARSITY).argmin()].mean()
    return f"{value:.1f}"


def _interval(effect) -> str:
    low, high = effect.interval
    return f"{effect.value:.1f} ({low:.1f} to {high:.1f})"
