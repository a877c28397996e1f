"""The claim ledger: what the papers claim, tested on what the workflow measured.

``config/published/claims.csv`` states the claims; each has a test here of the same id. A test gets the folder of a task's
results and returns a :class:`Finding`, or ``None`` where the claim cannot be tested at this scale.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from sparselib.results import hypervolumes, over_heads, read_layers, read_replaced, read_sweep, spread


@dataclass(frozen=True)
class Finding:
    """What a test found: ``holds``, one number per seed that decides it, and the numbers in words.

    ``holds`` is ``None`` where the claim is a printed number: then the ledger compares, and only at the paper's scale.
    """

    holds: bool | None
    per_seed: list[float]
    numbers: str


Test = Callable[[Path], Finding | None]
TESTS: dict[str, Test] = {}

#: Two areas under Pareto fronts "yield a similar curve" if they differ by less than this share of the window's.
SIMILAR = 0.05


def ledger(claims: pd.DataFrame, folder: Path, at_paper_scale: bool) -> pd.DataFrame:
    """Test every claim on the results in ``folder``.

    Parameters
    ----------
    claims : ``id, section, statement, value, tolerance, notebook``
        ``value`` and ``tolerance`` only where the claim is a number.

    Returns
    -------
    The claims with ``verdict`` (``holds``, ``fails``, ``untested at this scale``), ``mean``, ``standard_deviation`` and
    ``seeds`` of the deciding number, and ``numbers``.

    Raises
    ------
    ValueError
        If a claim has no test, or a test no claim.
    """
    if set(claims["id"]) != set(TESTS):
        raise ValueError(f"claims without a test, or tests without a claim: {sorted(set(claims['id']) ^ set(TESTS))}")
    return pd.DataFrame(
        [row | _judge(row, TESTS[row["id"]](folder), at_paper_scale) for row in claims.to_dict("records")]
    )


def _judge(claim: dict, finding: Finding | None, at_paper_scale: bool) -> dict[str, object]:
    if finding is None:
        finding = Finding(None, [], "not measured here")
    values = pd.Series(finding.per_seed, dtype=float)
    holds = finding.holds
    if holds is None and at_paper_scale and len(values):
        holds = abs(values.mean() - claim["value"]) <= claim["tolerance"]
    return {
        "verdict": "untested at this scale" if holds is None else "holds" if holds else "fails",
        "mean": values.mean(),
        "standard_deviation": values.std(),
        "seeds": len(values),
        "numbers": finding.numbers,
    }


def _claim(name: str) -> Callable[[Test], Test]:
    def register(test: Test) -> Test:
        TESTS[name] = test
        return test

    return register


def _areas(folder: Path, score: str) -> pd.DataFrame:
    """Hypervolumes with a row per seed and a column per method."""
    if score == "recall":
        points = over_heads(read_sweep(folder))
    else:
        points = read_replaced(folder).query("method not in ['full', 'gold graph']").assign(score=lambda t: -t["nats"])
    return hypervolumes(points, "recall" if score == "recall" else "score").pivot(
        index="seed", columns="method", values="hypervolume"
    )


def _leads(folder: Path, score: str, leader: str, others: list[str] | None = None) -> Finding:
    """The leader's area is larger than every other method's, for every seed."""
    areas = _areas(folder, score)
    rivals = areas.drop(columns=leader) if others is None else areas[others]
    best = rivals.mean().idxmax()
    margin = areas[leader] - rivals.max(axis=1)
    numbers = f"{leader} {spread(areas[leader])}, next {best} {spread(areas[best])}"
    return Finding(bool((margin > 0).all()), margin.tolist(), numbers)


@_claim("mlm-recall-distance-first")
def _(folder: Path) -> Finding:
    return _leads(folder, "recall", "sparsefinder-distance")


@_claim("mlm-recall-kmeans-second")
def _(folder: Path) -> Finding:
    rest = ["sparsefinder-quantization", "routing", "reformer", "bigbird", "longformer", "window"]
    return _leads(folder, "recall", "sparsefinder-kmeans", rest)


@_claim("mlm-recall-routing-third")
def _(folder: Path) -> Finding:
    rest = ["sparsefinder-quantization", "reformer", "bigbird", "longformer", "window"]
    return _leads(folder, "recall", "routing", rest)


@_claim("mlm-recall-window-hard-to-beat")
def _(folder: Path) -> Finding:
    areas = _areas(folder, "recall")
    others = ["longformer", "bigbird", "sparsefinder-quantization"]
    difference = areas[others].sub(areas["window"], axis=0).div(areas["window"], axis=0)
    largest = difference.abs().max(axis=1)
    numbers = ", ".join(f"{name} {difference[name].mean():+.1%}" for name in others) + " of the window's area"
    return Finding(bool((largest < SIMILAR).all()), largest.tolist(), numbers)


@_claim("mlm-perplexity-distance-first")
def _(folder: Path) -> Finding:
    return _leads(folder, "nats", "sparsefinder-distance")


@_claim("mlm-perplexity-kmeans-second")
def _(folder: Path) -> Finding:
    rest = ["sparsefinder-quantization", "routing", "reformer", "bigbird", "longformer", "window"]
    return _leads(folder, "nats", "sparsefinder-kmeans", rest)


@_claim("mlm-perplexity-routing-third")
def _(folder: Path) -> Finding:
    rest = ["sparsefinder-quantization", "reformer", "bigbird", "longformer", "window"]
    return _leads(folder, "nats", "routing", rest)


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
def _(folder: Path) -> Finding | None:
    tags = read_layers(folder / "tags")
    if not {"VERB", "NOUN", "AUX"} <= set(tags["tag"]):
        return None
    wide = tags.assign(cell=tags["side"] + " " + tags["tag"]).pivot_table(
        index=["layer", "head", "cluster"], columns="cell", values="share"
    )
    least = wide[["query VERB", "query NOUN", "key VERB", "key NOUN", "key AUX"]].min(axis=1)
    layer, head, cluster = least.idxmax()
    numbers = f"layer {layer + 1}, head {head + 1}, cluster {cluster}: at least {least.max():.0%} of each tag"
    return Finding(bool(least.max() > 0.5), [least.max()], numbers)


def coreference_head(folder: Path) -> pd.Series:
    """The head that gives most of its attention to coreferent tokens."""
    heads = read_layers(folder / "coreference")
    return heads.loc[heads["mass"].idxmax()]
