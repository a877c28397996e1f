"""Sparsefinder's claims about masked language modelling (section 6); tests get the task's folder."""

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from replication.claims.comparison import leads
from replication.claims.configuration import budgets_in, configuration
from replication.claims.curves import BASELINES, Curves, curves
from replication.claims.finding import Effect, Finding, Test, registering
from replication.claims.scores import Units, counted, means, over_seeds, plain
from replication.claims.settings import of_points, papers_own
from replication.claims.unattended import KMEANS, ROUTING, kmeans_leaves, routing_discards
from replication.files.contents import read_json
from replication.files.reading import noted, read_table
from replication.files.verification import listed_files
from replication.results.measurements import read_replaced, read_sweep
from replication.results.points import POINT, over_heads
from replication.results.settings import read_points

DISTANCE = "sparsefinder-distance"
#: The paper's ranking of the methods: each leader with its rivals.
FIRST = (DISTANCE, [KMEANS, ROUTING, *BASELINES])
SECOND = (KMEANS, [ROUTING, *BASELINES])
THIRD = (ROUTING, BASELINES)

#: The paper's values for the full entmax transformer on WikiText-103.
GOLD_SPARSITY, PERPLEXITY = 0.9804, 3.5004
#: The largest number of buckets in the paper's grid.
MOST_CLUSTERS = 20

TESTS: dict[str, Test] = {}
_claim = registering(TESTS)


def recall_curves(folder: Path) -> Curves:
    """Return the recall curves of the papers' variants, in percentage points."""
    points = over_heads(read_sweep(folder))
    return _recall(folder, papers_own(points), points["gold_sparsity"].mean())


def every_recall_curve(folder: Path) -> Curves:
    """Return the recall curves of all measured variants, in percentage points; none without variants of our own."""
    points = over_heads(read_sweep(folder))
    if len(papers_own(points)) == len(points):
        points = points.iloc[:0]
    return _recall(folder, points, points["gold_sparsity"].mean())


def _recall(folder: Path, points: pd.DataFrame, gold: float) -> Curves:
    recall = 100 * points["recall"].to_numpy()[None]
    # Translation's sentences have different lengths.
    tokens = _length(folder) if folder.name == "masked_lm" else np.inf
    return curves(points.reset_index(drop=True), recall, 1 - gold, budgets_in(folder, 1 - gold), tokens=tokens)


def _length(folder: Path) -> int:
    return configuration(folder)["masked_lm"]["length"]


def gold_share(folder: Path) -> float:
    """Return the gold graph's share of the pairs in the recall sweep, of which all budgets of a model are multiples."""
    return 1 - over_heads(read_sweep(folder))["gold_sparsity"].mean()


def nats_curves(folder: Path) -> Curves:
    """Return the curves of negated nats of the papers' variants, at the budgets of recall."""
    gold = gold_share(folder)
    budgets = budgets_in(folder, gold)
    table = papers_own(read_replaced(folder).query("method not in ['full', 'gold graph']"))
    paths = listed_files(folder / "replaced", "losses_seed*.parquet")
    if not paths:
        return curves(table, -table["nats"].to_numpy()[None], gold, budgets, tokens=_length(folder))
    losses = read_points(paths).pivot(index=POINT, columns="sequence")
    losses = losses.loc[pd.MultiIndex.from_frame(table[POINT])]
    resampled = means(losses["nats"].to_numpy().T, losses["places"].to_numpy().T)
    return curves(table, -resampled, gold, budgets, Units(losses["nats"].shape[1], "sequences"), _length(folder))


def compared(read, leader: str, rivals: list[str], folder: Path, budgets: list[str]) -> Finding:
    """Return a method's differences to others, on the curves that `read` returns for a folder."""
    return leads(read(folder), [leader], rivals, budgets)


#: Comparisons of each rank.
TESTS |= {
    "mlm-recall-distance-first": partial(compared, recall_curves, *FIRST),
    "mlm-recall-kmeans-second": partial(compared, recall_curves, *SECOND),
    "mlm-recall-routing-third": partial(compared, recall_curves, *THIRD),
    "mlm-recall-distance-first-every-variant": partial(compared, every_recall_curve, *FIRST),
    "mlm-recall-kmeans-second-every-variant": partial(compared, every_recall_curve, *SECOND),
    "mlm-recall-routing-third-every-variant": partial(compared, every_recall_curve, *THIRD),
    "mlm-perplexity-distance-first": partial(compared, nats_curves, *FIRST),
    "mlm-perplexity-kmeans-second": partial(compared, nats_curves, *SECOND),
    "mlm-perplexity-routing-third": partial(compared, nats_curves, *THIRD),
}


@_claim("mlm-recall-window-hard-to-beat")
def mlm_recall_window_hard_to_beat(folder: Path, budgets: list[str]) -> Finding:
    return leads(recall_curves(folder), ["longformer", "bigbird", "sparsefinder-quantization"], ["window"], budgets)


@_claim("mlm-first-layers-are-local")
def mlm_first_layers_are_local(folder: Path) -> Finding:
    """Return how much more of the first half of the layers a window of 11 covers; no student seed changes that."""
    rows = read_sweep(folder).query("method == 'window' and window == 11")
    if "layer" not in rows or rows["layer"].nunique() < 2:
        return Finding([], missing=["a window of 11 in single layers"])
    of_layers = 100 * rows.groupby("layer")["recall"].mean()
    half = len(of_layers) // 2
    what = f"layers 1 to {half} - the others; by layer {', '.join(f'{recall:.0f}' for recall in of_layers)}"
    return Finding([over_seeds(what, [of_layers[:half].mean() - of_layers[half:].mean()], "model")])


_claim("mlm-routing-discards-queries")(routing_discards)
_claim("mlm-kmeans-avoids-queries-without-keys")(kmeans_leaves)


def more_centroids(folder: Path) -> Finding:
    """Return the gain of assigning points to two centroids instead of one, in the mean over the paper's numbers of clusters.

    A window covers part of what more centroids add, so there is none.
    """
    points = over_heads(read_sweep(folder)).query("method == @KMEANS and window == 0")
    settings = of_points(points)
    settings = settings[settings["clusters"] <= MOST_CLUSTERS] if "clusters" in settings else settings
    if not {1, 2} <= set(settings.get("top_k", [])):
        return Finding([], missing=["no k-means with two centroids per point"])
    keys = ["seed", "clusters"]
    wide = points.join(settings, how="inner").pivot(index=keys, columns="top_k", values=["recall", "sparsity"])
    effects = []
    for measure, sign, what in (("recall", 1, "recall gained"), ("sparsity", -1, "density gained")):
        gained = 100 * sign * (wide[measure][2] - wide[measure][1])
        effects.append(over_seeds(f"{what} from k = 1 to 2", gained.groupby("seed").mean()))
    return Finding(effects)


_claim("mlm-more-centroids-recall-more")(more_centroids)


@_claim("mlm-distance-saves")
def mlm_distance_saves(folder: Path) -> Finding:
    """Count the multiplications of computing all scores and of projecting and comparing; their ratio, as a share of d / r."""
    settings = configuration(folder)["masked_lm"]
    sizes, trained = settings["model"], folder / "model" / "training.json"
    if "hidden_size" not in sizes and not trained.exists():
        return Finding([], missing=["the run has no record of the pretrained model's sizes"])
    if "hidden_size" not in sizes:
        sizes = read_json(noted(trained))["architecture"]
    length, reduced = settings["length"], settings["projection"]["dimension"]
    head = sizes["hidden_size"] // sizes["num_attention_heads"]
    return Finding([distance_saving(length, head, reduced)])


def distance_saving(length: int, head: int, reduced: int) -> Effect:
    """Return the saving for queries and keys ``[length, head]`` that are projected to ``[length, reduced]``."""
    saved = length**2 * head / (length**2 * reduced + 2 * length * head * reduced)
    words = f"{saved:.1f} times fewer multiplications, d / r = {head}/{reduced}"
    return plain(words, saved / (head / reduced), f"n = {length}, counted")


@_claim("sparse-consistency")
def sparse_consistency(folder: Path) -> Finding | None:
    table = read_replaced(folder)
    if "gold graph" not in set(table["method"]):
        return None
    nats = table.pivot_table(index="seed", columns="method", values="nats")
    gap = (nats["gold graph"] - nats["full"]).abs()
    return Finding([plain("gold graph - full", gap.max(), f"{len(gap)} evaluations")])


@_claim("mlm-gold-sparsity")
def mlm_gold_sparsity(folder: Path) -> Finding:
    measured = over_heads(read_sweep(folder))["gold_sparsity"].mean()
    return Finding([plain(f"measured {measured:.4f}", abs(measured - GOLD_SPARSITY), "1 model")])


@_claim("mlm-perplexity")
def mlm_perplexity(folder: Path) -> Finding:
    measured = read_replaced(folder).query("method == 'full'")["perplexity"].mean()
    return Finding([plain(f"measured {measured:.4f}", abs(measured - PERPLEXITY), "1 model")])


def coreference_head(folder: Path) -> pd.Series:
    """Return the row of the head that gives the largest share of its attention to coreferent tokens."""
    heads = read_table(folder / "coreference.csv")
    return heads.loc[heads["mass"].idxmax()]


@_claim("mlm-coreference-head")
def mlm_coreference_head(folder: Path) -> Finding:
    """Use k-means' best recall at a sparsity of at least the paper's 75 %, on the head with most coreferent attention."""
    best_head, sweep = coreference_head(folder), read_sweep(folder)
    if "head" not in sweep:
        return Finding([], missing=["the stored sweep has no single heads"])
    layer, number = int(best_head["layer"]), int(best_head["head"])
    rows = sweep.query("layer == @layer and head == @number and method == @KMEANS and sparsity >= 0.75")
    best = rows.groupby("seed")["recall"].max().reindex(sweep["seed"].unique(), fill_value=0.0)
    where = f"layer {layer + 1}, head {number + 1}: {best_head.mass:.0%} of its attention on coreferent tokens"
    stand_in = (
        "annotated chains" if best_head.chains == "gold" else f"{best_head.chains} stand in for annotated coreference"
    )
    notes = [f"by chance {best_head.chance:.0%}", stand_in, "head and setting are chosen on the scored text"]
    return Finding([over_seeds(where, 100 * best)], notes)


#: Lift from which a cluster contains a tag more than by chance: its share of the tag, divided by its share of all tokens.
MORE_THAN_CHANCE = 1.0


@_claim("mlm-cluster-of-verbs-and-nouns")
def mlm_cluster_of_verbs_and_nouns(folder: Path) -> Finding:
    """Return the share of auxiliaries (keys) in a cluster with more verbs and nouns (queries and keys) than by chance.

    Of all such clusters of all heads, the one with the largest share is taken; its interval allows for that choice.
    """
    tags = read_table(folder / "tags.csv")
    if missing := {"VERB", "NOUN", "AUX"} - set(tags["tag"]):
        return Finding([], missing=[f"the corpus has no tag {', '.join(sorted(missing))}"])
    keys = ["layer", "head", "cluster"]
    sides = tags.pivot_table(index=keys, columns="side", values="count", aggfunc="sum", fill_value=0)
    wide = tags.assign(cell=tags["side"] + " " + tags["tag"]).pivot_table(
        index=keys, columns="cell", values="count", fill_value=0
    )
    cells = ["query VERB", "query NOUN", "key VERB", "key NOUN"]
    lifts = pd.DataFrame({cell: _share(wide[cell]) / _share(sides[cell.split()[0]]) for cell in cells})
    # A cluster without queries, or without keys, has no lift there, and makes nothing attend to anything.
    lift = lifts.min(axis=1, skipna=False)
    share = _share(wide["key AUX"])[lift >= MORE_THAN_CHANCE].dropna()
    if share.empty:
        return Finding([], missing=["no cluster holds more verbs and nouns than by chance"])
    where = share.idxmax()
    clusters = wide.index.get_level_values("cluster").nunique()
    what = (
        f"auxiliaries in layer {where[0] + 1}, head {where[1] + 1}, cluster {where[2]} of {clusters}, which holds verbs and"
        f" nouns at least {lift[where]:.2f} times as often as by chance"
    )
    tokens = wide["key AUX"].groupby(["layer", "head"]).sum()
    found, among = int(wide.loc[where, "key AUX"]), int(tokens[where[:2]])
    return Finding([counted(what, found, among, "auxiliaries", candidates=len(wide))])


def _share(counts: pd.Series) -> pd.Series:
    """Return each cluster's share of its head's tokens."""
    return counts / counts.groupby(["layer", "head"]).transform("sum")
