"""What the Sparsefinder paper claims about masked language modelling (section 6); a test gets the folder of that task."""

from functools import partial
from pathlib import Path

import pandas as pd

from replication.claims.curves import BASELINES, areas, leads, like_the_window
from replication.claims.finding import Finding, Test, registering
from replication.results import over_heads, read_replaced, read_sweep, spread

_FIRST = ("sparsefinder-distance", ["sparsefinder-kmeans", "routing", *BASELINES])
_SECOND = ("sparsefinder-kmeans", ["routing", *BASELINES])
_THIRD = ("routing", BASELINES)

#: Who leads whom in which score: the paper's order of the methods, place by place.
LEADS = {
    "mlm-recall-distance-first": (*_FIRST, "recall"),
    "mlm-recall-kmeans-second": (*_SECOND, "recall"),
    "mlm-recall-routing-third": (*_THIRD, "recall"),
    "mlm-perplexity-distance-first": (*_FIRST, "nats"),
    "mlm-perplexity-kmeans-second": (*_SECOND, "nats"),
    "mlm-perplexity-routing-third": (*_THIRD, "nats"),
}


def _leads(leader: str, rivals: list[str], score: str, folder: Path) -> Finding:
    return leads(areas(folder, score), leader, rivals)


TESTS: dict[str, Test] = {name: partial(_leads, *who) for name, who in LEADS.items()}
_claim = registering(TESTS)


@_claim("mlm-recall-window-hard-to-beat")
def _(folder: Path) -> Finding:
    return like_the_window(areas(folder, "recall"), ["longformer", "bigbird", "sparsefinder-quantization"])


@_claim("sparse-consistency")
def _(folder: Path) -> Finding:
    nats = read_replaced(folder).pivot_table(index="seed", columns="method", values="nats")
    gap = (nats["gold graph"] - nats["full"]).abs()
    # Float32 sums in another order: a few units in the last place of a mean of thousands of terms.
    return Finding(bool((gap < 1e-5).all()), gap.tolist(), f"largest difference {gap.max():.1e} nats")


@_claim("mlm-gold-sparsity")
def _(folder: Path) -> Finding:
    measured = over_heads(read_sweep(folder)).groupby("seed")["gold_sparsity"].mean()
    return Finding(None, measured.tolist(), f"measured {spread(measured)}")


@_claim("mlm-perplexity")
def _(folder: Path) -> Finding:
    measured = read_replaced(folder).query("method == 'full'")["perplexity"]
    return Finding(None, measured.tolist(), f"measured {spread(measured)}")


@_claim("mlm-coreference-head")
def _(folder: Path) -> Finding:
    """Best recall of k-means, at no less than the paper's sparsity of 75 %, on the head that follows coreference most."""
    found = coreference_head(folder)
    layer, number = int(found["layer"]), int(found["head"])
    sweep = read_sweep(folder)
    rows = sweep.query("layer == @layer and head == @number and method == 'sparsefinder-kmeans' and sparsity >= 0.75")
    best = rows.groupby("seed")["recall"].max().reindex(sweep["seed"].unique(), fill_value=0.0)
    numbers = (
        f"layer {layer + 1}, head {number + 1} ({found.chains} chains, {found.mass:.0%} of its attention, "
        f"chance {found.chance:.0%}): recall {spread(best)} at sparsity >= 0.75"
    )
    return Finding(bool((best >= 0.80).all()), best.tolist(), numbers)


@_claim("mlm-cluster-of-verbs-and-nouns")
def _(folder: Path) -> Finding:
    tags = pd.read_csv(folder / "tags.csv")
    if missing := {"VERB", "NOUN", "AUX"} - set(tags["tag"]):
        return Finding(None, [], f"the corpus has no tag {', '.join(sorted(missing))}")
    wide = tags.assign(cell=tags["side"] + " " + tags["tag"]).pivot_table(
        index=["layer", "head", "cluster"], columns="cell", values="share"
    )
    least = wide[["query VERB", "query NOUN", "key VERB", "key NOUN", "key AUX"]].min(axis=1)
    layer, head, cluster = least.idxmax()
    numbers = f"layer {layer + 1}, head {head + 1}, cluster {cluster}: at least {least.max():.0%} of each tag"
    return Finding(bool(least.max() > 0.5), [least.max()], numbers)


def coreference_head(folder: Path) -> pd.Series:
    """The head that gives most of its attention to coreferent tokens."""
    heads = pd.read_csv(folder / "coreference.csv")
    return heads.loc[heads["mass"].idxmax()]
