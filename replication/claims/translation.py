"""Sparsefinder's claims about machine translation (section 5); tests get the folder of all language pairs.

A claim holds if it holds for every language pair.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from replication.bleu import COUNTS
from replication.claims.band import Band
from replication.claims.curves import BASELINES, GRID, Curves, alike, compares, curves, dominates, leads
from replication.claims.finding import Finding, Test, in_every, registering
from replication.claims.masked_lm import (
    DISTANCE,
    KMEANS,
    ROUTING,
    every_recall_curve,
    more_centroids,
    recall_curves,
    routing_discards,
)
from replication.claims.scores import Units, bleu, correlation, effect, known_mean, over_seeds, plain
from replication.claims.settings import papers_own, single
from replication.files.reading import read_table
from replication.files.verification import listed_files
from replication.points import POINT, over_heads
from replication.results import read_replaced, read_sweep
from replication.settings import read_points

SPARSEFINDER = [DISTANCE, KMEANS]
#: Upper limit of the paper's "lower levels of sparsity".
LOW_SPARSITY = 0.5
#: Share of the full model's BLEU below which a model no longer translates.
STILL_TRANSLATES = 0.5

TESTS: dict[str, Test] = {}
_claim = in_every(TESTS, "*-*")


def _points(folder: Path) -> tuple[pd.DataFrame, np.ndarray, Units | None]:
    """Return a translator's rows under replaced graphs, their BLEU ``[1 + R, rows]``, and the resampled units."""
    table = read_replaced(folder)
    paths = listed_files(folder / "replaced", "sentences_seed*.parquet")
    if not paths:
        return table, table["bleu"].to_numpy()[None], None
    counts = read_points(paths).set_index([*POINT, "sentence"]).sort_index()
    scores = [bleu(counts.loc[tuple(row), COUNTS].to_numpy()) for row in table[POINT].itertuples(index=False)]
    return table, np.stack(scores, axis=1), Units(counts.index.get_level_values("sentence").nunique(), "sentences")


def bleu_curves(folder: Path) -> tuple[Curves, dict[int, np.ndarray]]:
    """Return the BLEU curves, without points that no longer translate, and the full model's BLEU ``[1 + R]`` by seed."""
    table, scores, units = _points(folder)
    full = {row.seed: scores[:, place] for place, row in enumerate(table.itertuples()) if row.method == "full"}
    least = STILL_TRANSLATES * table["seed"].map({seed: score[0] for seed, score in full.items()})
    kept = (~table["method"].isin(["full", "gold graph"]) & (table["bleu"] >= least)).to_numpy()
    kept = kept & table.index.isin(papers_own(table).index)
    gold = table.loc[table["method"] == "full", "gold_sparsity"].mean()
    return curves(table[kept], scores[:, kept], gold, units), full


@_claim("mt-recall-sparsefinder-dominates")
def _(folder: Path, band: Band) -> Finding:
    return dominates(recall_curves(folder), SPARSEFINDER, [ROUTING, *BASELINES], band)


@_claim("mt-recall-sparsefinder-outperforms")
def _(folder: Path, band: Band) -> Finding:
    """Return the weaker reading of the same claim: in the mean over the band."""
    return leads(recall_curves(folder), SPARSEFINDER, [ROUTING, *BASELINES], band)


@_claim("mt-recall-sparsefinder-outperforms-every-variant")
def _(folder: Path, band: Band) -> Finding:
    return leads(every_recall_curve(folder), SPARSEFINDER, [ROUTING, *BASELINES], band)


@_claim("mt-recall-routing-next")
def _(folder: Path, band: Band) -> Finding:
    return leads(recall_curves(folder), [ROUTING], BASELINES, band)


@_claim("mt-recall-window-hard-to-beat")
def _(folder: Path, band: Band) -> Finding:
    return alike(recall_curves(folder), ["longformer", "bigbird", ROUTING, "sparsefinder-quantization"], "window", band)


_claim("mt-more-centroids-recall-more")(more_centroids)
_claim("mt-routing-discards-queries")(routing_discards)


def _pairs_alike(folder: Path, band: Band) -> Finding:
    """Return the rank correlation between two language pairs of the methods' mean recall at equal sparsities.

    Within each pair, methods are compared at those sparsities of the band that all methods reach.
    """
    pairs = [path for path in listed_files(folder, "*-*") if (path / "sweep").is_dir()]
    if len(pairs) < 2:
        return Finding([], missing=["a second language pair"])
    means, ranges = [], []
    for pair in pairs[:2]:
        compared = recall_curves(pair)
        reached = np.all([np.isfinite(front[0]).all(axis=0) for front in compared.fronts.values()], axis=0)
        inside = band.contains(GRID, compared.gold) & reached
        if not compares(GRID[inside]):
            return Finding([], missing=[f"{pair.name}: a sparsity of the band that all methods reach"])
        means.append({name: front[0][:, inside].mean(axis=1) for name, front in compared.fronts.items()})
        ranges.append(f"{GRID[inside][0]:.3f}-{GRID[inside][-1]:.3f} in {pair.name}")
    shared = sorted(set(means[0]) & set(means[1]))
    if len(shared) < 3:
        return Finding([], missing=["three methods of both pairs"])
    of_seeds = zip(*(np.stack([mean[name] for name in shared], axis=1) for mean in means), strict=False)
    correlations = [pd.Series(first).corr(pd.Series(second), method="spearman") for first, second in of_seeds]
    mean = correlation(f"rank correlation of {len(shared)} methods' recall", correlations)
    return Finding([replace(mean, where=f"sparsity {' and '.join(ranges)}")])


registering(TESTS)("mt-pairs-alike")(_pairs_alike)


@_claim("mt-reformer-recall-and-sparsity")
def _(folder: Path) -> Finding:
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


@_claim("mt-bleu-sparsefinder-dominates")
def _(folder: Path, band: Band) -> Finding:
    return dominates(bleu_curves(folder)[0], SPARSEFINDER, [ROUTING, *BASELINES], band)


@_claim("mt-bleu-sparsefinder-outperforms")
def _(folder: Path, band: Band) -> Finding:
    """Return the weaker reading of the same claim: in the mean over the band."""
    return leads(bleu_curves(folder)[0], SPARSEFINDER, [ROUTING, *BASELINES], band)


@_claim("mt-bleu-low-sparsity-close-to-full")
def _(folder: Path) -> Finding:
    """Compare each method's best point of low sparsity to the full model."""
    table, scores, units = _points(folder)
    effects, without = [], []
    for method in table["method"].unique():
        if method in ("full", "gold graph"):
            continue
        lost = []
        for _, of_seed in table.groupby("seed"):
            (full,) = of_seed.index[of_seed["method"] == "full"]
            near = of_seed.index[(of_seed["method"] == method) & (of_seed["sparsity"] <= LOW_SPARSITY)]
            if len(near):
                lost.append(scores[:, full] - scores[:, near].max(axis=1))
        if lost:
            effects.append(effect(f"{method}, BLEU lost", np.stack(lost, axis=1), "student seed", units))
        else:
            without.append(f"{method} has no point at sparsity <= {LOW_SPARSITY}")
    return Finding(effects, without) if effects else Finding([], missing=without)


@_claim("mt-bleu-on-par-at-gold-sparsity")
def _(folder: Path, band: Band) -> Finding:
    """Return the BLEU that distance and k-means lose, averaged over sparsities close to the gold sparsity."""
    compared, full = bleu_curves(folder)
    full_bleu = np.stack(list(full.values()), axis=1)
    found = Finding([])
    for method in SPARSEFINDER:
        if method not in compared.fronts:
            found.missing.append(f"no point of {method}")
            continue
        inside = band.contains(GRID, compared.gold) & np.isfinite(compared.fronts[method][0]).all(axis=0)
        if not inside.any() or GRID[inside][-1] < compared.gold - GRID[1]:
            reach = compared.reach(method)
            found.missing.append(
                f"{method} reaches a sparsity of {reach:.3f}, below the gold graph's {compared.gold:.3f}"
            )
            continue
        lost = full_bleu - known_mean(compared.fronts[method][..., inside], axis=-1)
        where = f"sparsity {GRID[inside][0]:.3f}-{GRID[inside][-1]:.3f}"
        found.effects.append(effect(f"{method}, BLEU lost", lost, "student seed", compared.units, where=where))
    return found


@_claim("mt-recall-and-bleu-agree")
def _(folder: Path) -> Finding:
    """Rank-correlate recall and BLEU over the sparser half of all points."""
    points = read_replaced(folder).query("method not in ['full', 'gold graph']")
    sparse = points[points["sparsity"] >= points["sparsity"].median()]
    ranks = sparse.groupby("seed")[["recall", "bleu"]].rank()
    if sparse.groupby("seed").size().min() < 3:
        return Finding([], missing=["too few points to rank"])
    correlations = [group["recall"].corr(group["bleu"]) for _, group in ranks.groupby(sparse["seed"])]
    return Finding([correlation("rank correlation", correlations)])


@_claim("mt-sparse-consistency")
def _(folder: Path) -> Finding:
    scores = read_replaced(folder).pivot_table(index="seed", columns="method", values="bleu")
    gap = (scores["gold graph"] - scores["full"]).abs()
    return Finding([plain("gold graph - full", gap.max(), f"{len(gap)} evaluations")])


@_claim("mt-kmeans-groups-more-pairs")
def _(folder: Path) -> Finding:
    """Return the share of gold edges among k-means' predicted pairs; the other pairs get weight zero (Proposition 1)."""
    points = single(over_heads(read_sweep(folder)).query("method == @KMEANS"))
    return Finding([over_seeds("gold edges among predicted pairs", 100 * points.groupby("seed")["precision"].mean())])


#: The paper's BLEU for the full entmax transformer on IWSLT17.
PRINTED = {"en-de": 34.47, "en-fr": 42.65}


def _printed_bleu(pair: str, value: float) -> Test:
    def tested(folder: Path) -> Finding:
        row = read_table(folder / pair / "bleu.csv").iloc[0]
        words = f"measured {row['bleu']:.2f} on {row['sentences']} sentences"
        return Finding([plain(words, abs(row["bleu"] - value), "1 model")])

    return tested


for _pair, _value in PRINTED.items():
    registering(TESTS)(f"mt-bleu-{_pair}")(_printed_bleu(_pair, _value))
