"""What the Sparsefinder paper claims about machine translation (section 5); a test gets the folder of all language pairs.

A claim holds if it holds for every language pair.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from replication.bleu import COUNTS
from replication.claims.curves import BASELINES, GRID, Curves, alike, curves, leads
from replication.claims.finding import Finding, Test, in_every, registering
from replication.claims.masked_lm import DISTANCE, KMEANS, ROUTING, more_centroids, recall_curves, simplest
from replication.claims.scores import bleu, effect, over_seeds, plain
from replication.reading import read_table
from replication.results import POINT, over_heads, read_replaced, read_sweep

SPARSEFINDER = [DISTANCE, KMEANS]
#: "Lower levels of sparsity": at most this much.
LOW_SPARSITY = 0.5
#: A point below so much of the full model's BLEU is of a model that no longer translates.
STILL_TRANSLATES = 0.5

TESTS: dict[str, Test] = {}
_claim = in_every(TESTS, "*-*")


def _points(folder: Path) -> tuple[pd.DataFrame, np.ndarray, str]:
    """What replaced graphs make of a translator, its BLEU ``[1 + R, rows]``, and what is resampled."""
    table = read_replaced(folder)
    paths = sorted((folder / "replaced").glob("sentences_seed*.parquet"))
    if not paths:
        return table, table["bleu"].to_numpy()[None], ""
    counts = pd.concat([read_table(path) for path in paths]).set_index([*POINT, "sentence"]).sort_index()
    found = [bleu(counts.loc[tuple(row), COUNTS].to_numpy()) for row in table[POINT].itertuples(index=False)]
    return table, np.stack(found, axis=1), f"{counts.index.get_level_values('sentence').nunique()} sentences"


def bleu_curves(folder: Path) -> tuple[Curves, dict[int, np.ndarray]]:
    """In points of BLEU, without points that no longer translate; and the full model's BLEU ``[1 + R]`` by seed."""
    table, scores, units = _points(folder)
    full = {row.seed: scores[:, place] for place, row in enumerate(table.itertuples()) if row.method == "full"}
    least = STILL_TRANSLATES * table["seed"].map({seed: score[0] for seed, score in full.items()})
    kept = (~table["method"].isin(["full", "gold graph"]) & (table["bleu"] >= least)).to_numpy()
    return curves(table[kept], scores[:, kept], units), full


@_claim("mt-recall-sparsefinder-dominates")
def _(folder: Path) -> Finding:
    return leads(recall_curves(folder), SPARSEFINDER, [ROUTING, *BASELINES])


@_claim("mt-recall-routing-next")
def _(folder: Path) -> Finding:
    return leads(recall_curves(folder), [ROUTING], BASELINES)


@_claim("mt-recall-window-hard-to-beat")
def _(folder: Path) -> Finding:
    return alike(recall_curves(folder), ["longformer", "bigbird", ROUTING, "sparsefinder-quantization"], "window")


_claim("mt-more-centroids-recall-more")(more_centroids)


@_claim("mt-reformer-recall-and-sparsity")
def _(folder: Path) -> Finding:
    """With the same numbers of buckets and no window, Reformer covers more edges, and is less sparse, than the others."""
    rivals = [KMEANS, "sparsefinder-quantization", ROUTING]
    points = simplest(over_heads(read_sweep(folder)).query("window == 0"))
    mean = 100 * points.groupby(["seed", "method"])[["recall", "sparsity"]].mean().unstack("method")
    if not {"reformer", *rivals} <= set(mean["recall"]):
        return Finding([])
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
def _(folder: Path) -> Finding:
    return leads(bleu_curves(folder)[0], SPARSEFINDER, [ROUTING, *BASELINES])


@_claim("mt-bleu-low-sparsity-close-to-full")
def _(folder: Path) -> Finding:
    """Of each method, the point of low sparsity that loses least."""
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
    return Finding(effects, without)


@_claim("mt-bleu-on-par-at-gold-sparsity")
def _(folder: Path) -> Finding:
    """Distance and k-means, on their fronts, where they are as sparse as the entmax graph itself."""
    compared, full = bleu_curves(folder)
    gold = read_replaced(folder).query("method == 'full'")["gold_sparsity"].mean()
    place = int(np.abs(GRID - gold).argmin())
    effects, without = [], []
    for method in SPARSEFINDER:
        if method not in compared.fronts or not np.isfinite(compared.fronts[method][0, :, place]).all():
            without.append(f"{method} does not reach sparsity {gold:.2f}")
            continue
        lost = np.stack(list(full.values()), axis=1) - compared.fronts[method][..., place]
        effects.append(
            effect(f"{method}, BLEU lost at sparsity {GRID[place]:.3f}", lost, "student seed", compared.units)
        )
    return Finding(effects, without)


@_claim("mt-recall-and-bleu-agree")
def _(folder: Path) -> Finding:
    """In the sparser half of all points, by rank."""
    points = read_replaced(folder).query("method not in ['full', 'gold graph']")
    sparse = points[points["sparsity"] >= points["sparsity"].median()]
    ranks = sparse.groupby("seed")[["recall", "bleu"]].rank()
    if sparse.groupby("seed").size().min() < 3:
        return Finding([], ["too few points to rank"])
    correlation = [group["recall"].corr(group["bleu"]) for _, group in ranks.groupby(sparse["seed"])]
    return Finding([over_seeds("rank correlation", correlation)])


@_claim("mt-sparse-consistency")
def _(folder: Path) -> Finding:
    found = read_replaced(folder).pivot_table(index="seed", columns="method", values="bleu")
    gap = (found["gold graph"] - found["full"]).abs()
    return Finding([plain("gold graph - full", gap.max(), f"{len(gap)} evaluations")])


@_claim("mt-kmeans-groups-more-pairs")
def _(folder: Path) -> Finding:
    """The share of the pairs that k-means predicts that are gold edges; the others get weight zero (Proposition 1)."""
    points = simplest(over_heads(read_sweep(folder)).query("method == @KMEANS"))
    return Finding([over_seeds("gold edges among predicted pairs", 100 * points.groupby("seed")["precision"].mean())])


#: BLEU of the full entmax transformer on IWSLT17.
PRINTED = {"en-de": 34.47, "en-fr": 42.65}


def _printed_bleu(pair: str, value: float) -> Test:
    def tested(folder: Path) -> Finding:
        row = read_table(folder / pair / "bleu.csv").iloc[0]
        words = f"measured {row['bleu']:.2f} on {row['sentences']} sentences"
        return Finding([plain(words, abs(row["bleu"] - value), "1 model")])

    return tested


for _pair, _value in PRINTED.items():
    registering(TESTS)(f"mt-bleu-{_pair}")(_printed_bleu(_pair, _value))
