"""What the Sparsefinder paper claims about masked language modelling (section 6); a test gets the folder of that task."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from replication.claims.curves import BASELINES, Curves, alike, curves, leads
from replication.claims.finding import Effect, Finding, Test, registering
from replication.claims.premises import configuration
from replication.claims.scores import counted, means, over_seeds, plain
from replication.reading import read_table
from replication.results import POINT, over_heads, read_replaced, read_sweep

DISTANCE, KMEANS, ROUTING = "sparsefinder-distance", "sparsefinder-kmeans", "routing"
#: The paper's order of the methods, place by place: who leads whom.
FIRST = (DISTANCE, [KMEANS, ROUTING, *BASELINES])
SECOND = (KMEANS, [ROUTING, *BASELINES])
THIRD = (ROUTING, BASELINES)

#: Of the full entmax transformer on WikiText-103.
GOLD_SPARSITY, PERPLEXITY = 0.9804, 3.5004

TESTS: dict[str, Test] = {}
_claim = registering(TESTS)


def recall_curves(folder: Path) -> Curves:
    """In points of recall."""
    points = over_heads(read_sweep(folder))
    return curves(points, 100 * points["recall"].to_numpy()[None])


def simplest(points: pd.DataFrame) -> pd.DataFrame:
    """Without k-means that assigns points to several centroids, and hashing in several rounds."""
    return points[~points["setting"].str.contains('"(?:top_k|rounds)": [^1]')]


def nats_curves(folder: Path) -> Curves:
    """In nats below zero; without the points at which the model is worse than a bigram, whose masks leave nothing of it."""
    table = read_replaced(folder).query("method not in ['full', 'gold graph']")
    if (folder / "perplexity.csv").exists():
        known = read_table(folder / "perplexity.csv").set_index(["corpus", "model"])["nats"]
        table = table[table["nats"] <= known["held-out", "interpolated bigram"]]
    paths = sorted((folder / "replaced").glob("losses_seed*.parquet"))
    if not paths:
        return curves(table, -table["nats"].to_numpy()[None])
    losses = pd.concat([read_table(path) for path in paths]).pivot(index=POINT, columns="sequence")
    losses = losses.loc[pd.MultiIndex.from_frame(table[POINT])]
    resampled = means(losses["nats"].to_numpy().T, losses["places"].to_numpy().T)
    return curves(table, -resampled, f"{losses['nats'].shape[1]} sequences")


def _leads(read, leader: str, rivals: list[str], folder: Path) -> Finding:
    return leads(read(folder), [leader], rivals)


TESTS |= {
    f"mlm-{score}-{place}": partial(_leads, read, *order)
    for score, read in (("recall", recall_curves), ("perplexity", nats_curves))
    for place, order in (("distance-first", FIRST), ("kmeans-second", SECOND), ("routing-third", THIRD))
}


@_claim("mlm-recall-window-hard-to-beat")
def _(folder: Path) -> Finding:
    return alike(recall_curves(folder), ["longformer", "bigbird", "sparsefinder-quantization"], "window")


def more_centroids(folder: Path) -> Finding:
    """Assigning every point to two centroids in place of one, with the same number of clusters and the same window."""
    points = over_heads(read_sweep(folder)).query("method == @KMEANS")
    settings = pd.DataFrame([{"top_k": 1} | json.loads(one) for one in points["setting"]], index=points.index)
    if not {1, 2} <= set(settings.get("top_k", [])):
        return Finding([], ["no k-means with two centroids per point"])
    keys = ["seed", "clusters", "window"]
    wide = points.join(settings).pivot(index=keys, columns="top_k", values=["recall", "sparsity"])
    found = []
    for measure, sign, what in (("recall", 1, "recall gained"), ("sparsity", -1, "density gained")):
        gained = 100 * sign * (wide[measure][2] - wide[measure][1])
        found.append(over_seeds(f"{what} from k = 1 to 2", gained.groupby("seed").mean()))
    return Finding(found)


_claim("mlm-more-centroids-recall-more")(more_centroids)


@_claim("mlm-distance-saves")
def _(folder: Path) -> Finding:
    """Multiplications of all scores by those of projecting and comparing, as a share of d / r."""
    settings = configuration(folder)["masked_lm"]
    if "hidden_size" not in settings["model"]:
        return Finding([], ["the sizes of the pretrained model are not in the configuration"])
    length, reduced = settings["length"], settings["projection"]["dimension"]
    head = settings["model"]["hidden_size"] // settings["model"]["num_attention_heads"]
    return Finding([distance_saving(length, head, reduced)])


def distance_saving(length: int, head: int, reduced: int) -> Effect:
    """Of queries and keys ``[length, head]``, projected to ``[length, reduced]``."""
    saved = length**2 * head / (length**2 * reduced + 2 * length * head * reduced)
    words = f"{saved:.1f} times fewer multiplications, d / r = {head}/{reduced}"
    return plain(words, saved / (head / reduced), f"n = {length}, counted")


@_claim("sparse-consistency")
def _(folder: Path) -> Finding | None:
    table = read_replaced(folder)
    if "gold graph" not in set(table["method"]):
        return None
    nats = table.pivot_table(index="seed", columns="method", values="nats")
    gap = (nats["gold graph"] - nats["full"]).abs()
    return Finding([plain("gold graph - full", gap.max(), f"{len(gap)} evaluations")])


@_claim("mlm-gold-sparsity")
def _(folder: Path) -> Finding:
    measured = over_heads(read_sweep(folder))["gold_sparsity"].mean()
    return Finding([plain(f"measured {measured:.4f}", abs(measured - GOLD_SPARSITY), "1 model")])


@_claim("mlm-perplexity")
def _(folder: Path) -> Finding:
    measured = read_replaced(folder).query("method == 'full'")["perplexity"].mean()
    return Finding([plain(f"measured {measured:.4f}", abs(measured - PERPLEXITY), "1 model")])


def coreference_head(folder: Path) -> pd.Series:
    """The head that gives most of its attention to coreferent tokens."""
    heads = read_table(folder / "coreference.csv")
    return heads.loc[heads["mass"].idxmax()]


@_claim("mlm-coreference-head")
def _(folder: Path) -> Finding:
    """Best recall of k-means, at no less than the paper's sparsity of 75 %, on the head that follows coreference most."""
    found, sweep = coreference_head(folder), read_sweep(folder)
    if "head" not in sweep:
        return Finding([], ["heads are not told apart in what was stored"])
    layer, number = int(found["layer"]), int(found["head"])
    rows = sweep.query("layer == @layer and head == @number and method == @KMEANS and sparsity >= 0.75")
    best = rows.groupby("seed")["recall"].max().reindex(sweep["seed"].unique(), fill_value=0.0)
    where = (
        f"layer {layer + 1}, head {number + 1}: {found.mass:.0%} on {found.chains} chains, by chance {found.chance:.0%}"
    )
    return Finding([over_seeds(where, 100 * best)])


@_claim("mlm-cluster-of-verbs-and-nouns")
def _(folder: Path) -> Finding:
    tags = read_table(folder / "tags.csv")
    if missing := {"VERB", "NOUN", "AUX"} - set(tags["tag"]):
        return Finding([], [f"the corpus has no tag {', '.join(sorted(missing))}"])
    wide = tags.assign(cell=tags["side"] + " " + tags["tag"]).pivot_table(
        index=["layer", "head", "cluster"], columns="cell", values="count", fill_value=0
    )[["query VERB", "query NOUN", "key VERB", "key NOUN", "key AUX"]]
    tokens = wide.groupby(["layer", "head"]).transform("sum")
    shares = wide / tokens
    known = shares.min(axis=1, skipna=False).dropna()
    if known.empty:
        return Finding([], ["no head has tokens of every tag"])
    where = known.idxmax()
    least = shares.loc[where].idxmin()
    clusters = len(np.unique(wide.index.get_level_values("cluster")))
    what = f"layer {where[0] + 1}, head {where[1] + 1}, cluster {where[2]} of {clusters}: least share of a tag, {least}"
    return Finding([counted(what, int(wide.loc[where, least]), int(tokens.loc[where, least]), "tokens")])
