"""What the Sparsefinder paper claims about machine translation (section 5); a test gets the folder of all language pairs.

A claim holds if it holds for every language pair and every seed; its deciding number is that of the pair that decides.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pandas as pd

from replication.claims.curves import BASELINES, areas, leads, like_the_window
from replication.claims.finding import Finding, Test
from replication.results import over_heads, read_replaced, read_sweep, spread

TESTS: dict[str, Test] = {}

SPARSEFINDER = ["sparsefinder-distance", "sparsefinder-kmeans"]
#: "On par with the full model", "close to" it: within this many points of BLEU.
CLOSE = 1.0
#: "Lower levels of sparsity": at most this much; "around the dashed line": at least this share of the gold sparsity.
LOW_SPARSITY, AROUND = 0.5, 0.95


def _every_pair(test: Callable[[Path], Finding], worst: Callable = min) -> Test:
    """Test each language pair; the deciding number of a seed is the ``worst`` of the pairs."""

    def tested(folder: Path) -> Finding | None:
        found = {path.name: test(path) for path in sorted(folder.glob("*-*"))}
        if not found:
            return None
        per_seed = [worst(numbers) for numbers in zip(*(f.per_seed for f in found.values()), strict=True)]
        numbers = "; ".join(f"{pair}: {finding.numbers}" for pair, finding in found.items())
        return Finding(all(finding.holds for finding in found.values()), per_seed, numbers)

    return tested


def _dominates(score: str, folder: Path) -> Finding:
    """The worse of distance and k-means has a larger area than the best of all others."""
    area = areas(folder, score)
    worse = min(SPARSEFINDER, key=lambda method: area[method].mean())
    return leads(area, worse, ["routing", *BASELINES])


TESTS["mt-recall-sparsefinder-dominates"] = _every_pair(partial(_dominates, "recall"))
TESTS["mt-bleu-sparsefinder-dominates"] = _every_pair(partial(_dominates, "bleu"))


def _routing_next(folder: Path) -> Finding:
    return leads(areas(folder, "recall"), "routing", BASELINES)


TESTS["mt-recall-routing-next"] = _every_pair(_routing_next)


def _on_par_with_window(folder: Path) -> Finding:
    return like_the_window(areas(folder, "recall"), ["longformer", "bigbird", "routing", "sparsefinder-quantization"])


TESTS["mt-recall-window-hard-to-beat"] = _every_pair(_on_par_with_window, max)


def _reformer(folder: Path) -> Finding:
    """With the same numbers of buckets and no window, Reformer covers more edges, and is less sparse, than the others."""
    rivals = ["sparsefinder-kmeans", "sparsefinder-quantization", "routing"]
    points = over_heads(read_sweep(folder)).query("window == 0 and (method == 'reformer' or method in @rivals)")
    mean = points.groupby(["seed", "method"])[["recall", "sparsity"]].mean().unstack("method")
    recall, sparsity = mean["recall"], mean["sparsity"]
    margin = (recall["reformer"] - recall[rivals].max(axis=1)).combine(
        sparsity[rivals].min(axis=1) - sparsity["reformer"], min
    )
    numbers = (
        f"recall {recall['reformer'].mean():.3f} (others at most {recall[rivals].mean().max():.3f}), "
        f"sparsity {sparsity['reformer'].mean():.3f} (others at least {sparsity[rivals].mean().min():.3f})"
    )
    return Finding(bool((margin > 0).all()), margin.tolist(), numbers)


TESTS["mt-reformer-recall-and-sparsity"] = _every_pair(_reformer)


def _points(folder: Path) -> pd.DataFrame:
    """The points of all methods, with the BLEU that they lose against the full model of their seed as ``loss``."""
    table = read_replaced(folder)
    full = table.query("method == 'full'").set_index("seed")["bleu"]
    others = table.query("method not in ['full', 'gold graph']")
    return others.assign(loss=others["seed"].map(full) - others["bleu"])


def _low_sparsity(folder: Path) -> Finding:
    """Every method has a point of at least low sparsity that is close to the full model."""
    points = _points(folder)
    points = points.query("method != 'window' and sparsity <= @LOW_SPARSITY")
    loss = points.groupby(["seed", "method"])["loss"].min().unstack("method")
    worst = loss.max(axis=1)
    numbers = f"smallest loss at sparsity <= {LOW_SPARSITY}: at most {spread(worst)} BLEU ({loss.mean().idxmax()})"
    return Finding(bool((worst <= CLOSE).all()), worst.tolist(), numbers)


TESTS["mt-bleu-low-sparsity-close-to-full"] = _every_pair(_low_sparsity, max)


def _at_gold_sparsity(folder: Path) -> Finding:
    """Distance and k-means lose little where they are about as sparse as the entmax graph itself."""
    points = _points(folder)
    gold = read_replaced(folder).query("method == 'full'")["gold_sparsity"].mean()
    near = points[points["method"].isin(SPARSEFINDER) & (points["sparsity"] >= AROUND * gold)]
    loss = near.groupby(["seed", "method"])["loss"].min().unstack("method").reindex(columns=SPARSEFINDER)
    worst = loss.max(axis=1, skipna=False)
    in_words = ", ".join(f"{method} {spread(loss[method])}" for method in SPARSEFINDER)
    return Finding(
        bool((worst <= CLOSE).all()), worst.tolist(), f"BLEU lost at sparsity >= {AROUND * gold:.3f}: {in_words}"
    )


TESTS["mt-bleu-on-par-at-gold-sparsity"] = _every_pair(_at_gold_sparsity, max)


def _recall_and_bleu(folder: Path) -> Finding:
    """In the sparser half of all points, recall and BLEU rank alike."""
    points = _points(folder)
    sparse = points[points["sparsity"] >= points["sparsity"].median()]
    correlation = sparse.groupby("seed")[["recall", "bleu"]].apply(
        lambda group: group["recall"].corr(group["bleu"], method="spearman")
    )
    return Finding(bool((correlation > 0.5).all()), correlation.tolist(), f"rank correlation {spread(correlation)}")


TESTS["mt-recall-and-bleu-agree"] = _every_pair(_recall_and_bleu)


def _consistency(folder: Path) -> Finding:
    bleu = read_replaced(folder).pivot_table(index="seed", columns="method", values="bleu")
    gap = (bleu["gold graph"] - bleu["full"]).abs()
    return Finding(bool((gap == 0).all()), gap.tolist(), f"largest difference {gap.max():.2f} BLEU")


TESTS["mt-sparse-consistency"] = _every_pair(_consistency, max)


def _more_pairs(folder: Path) -> Finding:
    """Less than half of the pairs that k-means predicts are gold edges; the others get weight zero (Proposition 1)."""
    points = over_heads(read_sweep(folder)).query("method == 'sparsefinder-kmeans'")
    precision = points.groupby("seed")["precision"].mean()
    return Finding(bool((precision < 0.5).all()), precision.tolist(), f"precision {spread(precision)}")


TESTS["mt-kmeans-groups-more-pairs"] = _every_pair(_more_pairs, max)


def _bleu(pair: str, folder: Path) -> Finding | None:
    path = folder / pair / "bleu.csv"
    if not path.exists():
        return None
    table = pd.read_csv(path)
    return Finding(
        None, table["bleu"].tolist(), f"measured {table['bleu'].item():.2f} on {table['sentences'].item()} sentences"
    )


TESTS |= {f"mt-bleu-{pair}": partial(_bleu, pair) for pair in ("en-de", "en-fr")}
