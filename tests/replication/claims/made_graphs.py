"""Made tables of predicted graphs: masked language models, blocks and translation."""

import math
from functools import cache
from itertools import permutations

import numpy as np
import pandas as pd

from replication.claims.masked_lm import GOLD_SPARSITY, PERPLEXITY
from replication.predictors.methods import METHODS

#: A run that meets every premise.
CONFIGURATION = {
    "masked_lm": {"length": 512, "layers": 12, "projection": {"dimension": 4}, "model": {}},
    "translation": {"architecture": {"decoder_layers": 6}, "training": {}},
    "char_lm": {"models": {"adaptive-span": {"initial_span": 0.0}}},
    "forms": {"sentences": {"architecture": {"decoder_layers": 2}}},
    "retrofit": {"confidence": 0.9},
}
#: Sparsity of the gold graph: claims are decided at shares of 0.03, 0.06 and 0.15.
GOLD = 0.97
#: Sparsities of every method's points: the curve is a line, and every second point spans the budgets that decide.
SPARSITIES = 1 - np.array([0.5, 0.2, 0.15, 0.1, 0.06, 0.045, 0.03, 0.025, 0.02])
#: How far apart the other curves are, in the unit of the effect: more than any effect that is asked for.
APART = 20.0


#: Settings of the papers' variants, and of Reformer with the four hashing rounds of its code.
SETTINGS = {"sparsefinder-kmeans": "top_k=1", "reformer": "rounds=1"}
FOUR_ROUNDS = "rounds=4"


def _points(heights: dict[str, float], **columns: object) -> list[dict]:
    """Points of each method on a falling line, so much above it."""
    return [
        {"method": name, "setting": SETTINGS.get(name, ""), "window": window, "sparsity": s}
        | {"score": 30 - 10 * s + height, **columns}
        for name, height in heights.items()
        for window, s in enumerate(SPARSITIES)
    ]


def _curves(leaders, rivals, values):
    """The first leader is ``values`` above the first rival, and so is every other pair, or farther."""
    for seed, value in enumerate(values):
        yield (
            seed,
            {name: 0.0 for name in METHODS}
            | {name: -APART for name in rivals[1:]}
            | {rivals[0]: 0.0}
            | {name: value + APART * (place > 0) for place, name in enumerate(leaders)},
        )


def _rows(leaders, rivals, values):
    """Curves of the papers' variants; Reformer with four rounds, which is not theirs, is far above all of them."""
    for seed, heights in _curves(leaders, rivals, values):
        yield from _points(heights, seed=seed)
        yield from _points({"reformer": 3 * APART}, seed=seed, setting=FOUR_ROUNDS)


def rows_of_every_variant(leaders, rivals, values):
    """The first rival is Reformer, by its four rounds: with one it is far below."""
    rivals = ["reformer", *(name for name in rivals if name != "reformer")]
    for seed, heights in _curves(leaders, rivals, values):
        height = heights.pop("reformer")
        yield from _points(heights, seed=seed)
        yield from (
            row | {"sparsity": row["sparsity"] - 0.3} for row in _points({"reformer": height - APART}, seed=seed)
        )
        yield from _points({"reformer": height}, seed=seed, setting=FOUR_ROUNDS)


def _sweep(rows: list[dict], at: str) -> dict:
    table = pd.DataFrame(rows).rename(columns={"score": "recall"})
    table["recall"] /= 100
    constant = {"precision": 0.1, "exact": 0.0, "keyless": 0.0, "gold_sparsity": GOLD, "global_tokens": "none"}
    return {f"{at}/sweep/seeds.csv": table.assign(**{key: table.get(key, value) for key, value in constant.items()})}


def masked_recall(leaders, rivals, values, rows=_rows):
    return _sweep(list(rows(leaders, rivals, values)), "masked_lm") | perplexity()


def perplexity():
    rows = [("held-out", "entmax RoBERTa", 10.0), ("held-out", "interpolated bigram", 100.0)]
    table = pd.DataFrame(rows, columns=["corpus", "model", "perplexity"])
    return {"masked_lm/perplexity.csv": table.assign(nats=200.0)}


def masked_nats(leaders, rivals, values):
    own = [
        {"seed": seed, "method": name, "setting": "", "window": 0, "sparsity": sparsity, "score": 99.0}
        for seed in range(len(values))
        for name, sparsity in (("full", 0.0), ("gold graph", GOLD))
    ]
    table = pd.DataFrame([*own, *_rows(leaders, rivals, values)])
    table = table.assign(nats=100 - table.pop("score"), perplexity=1.0)
    return {"masked_lm/replaced/seeds.csv": table} | masked_recall(leaders, rivals, values)


def alike(methods, at, values):
    """The first method is so far from the window, the others on it."""
    rows = [
        row
        for seed, value in enumerate(values)
        for row in _points({"window": 0.0, methods[0]: value} | dict.fromkeys(methods[1:], 0.0), seed=seed)
    ]
    return [_sweep(rows, place) for place in at]


def masked_alike(values):
    (found,) = alike(["longformer", "bigbird", "sparsefinder-quantization"], ["masked_lm"], values)
    return found | perplexity()


PAIRS = [f"translation/{pair}" for pair in ("en-de", "en-fr")]


def _bleu(values=(35.0, 43.0)) -> dict:
    return {f"{at}/bleu.csv": pd.DataFrame([{"sentences": 9, "bleu": v}]) for at, v in zip(PAIRS, values, strict=True)}


def translated_alike(values):
    methods = ["longformer", "bigbird", "routing", "sparsefinder-quantization"]
    return _bleu() | {path: table for found in alike(methods, PAIRS, values) for path, table in found.items()}


def translated_recall(leaders, rivals, values, rows=_rows):
    """One pair decides, the other is far on the claim's side."""
    found = _bleu()
    for at, shifted in zip(PAIRS, (values, [value + 5 for value in values]), strict=True):
        found |= _sweep(list(rows(leaders, rivals, shifted)), at)
    return found


@cache
def _orders():
    """Every order of the methods, and its rank correlation with the first."""
    found = np.array(list(permutations(range(len(METHODS)))))
    squares = ((found - np.arange(len(METHODS))) ** 2).sum(axis=1)
    return found, 1 - 6 * squares / (len(METHODS) * (len(METHODS) ** 2 - 1))


def pairs_alike(values):
    """Methods of the second pair are in the order whose rank correlation with the first pair's is closest to a value."""
    orders, correlations = _orders()
    rows = {at: [] for at in PAIRS}
    for seed, value in enumerate(values):
        other = orders[np.abs(correlations - value).argmin()]
        for at, order in zip(PAIRS, (range(len(METHODS)), other), strict=True):
            rows[at] += _points({name: 3.0 * rank for name, rank in zip(METHODS, order, strict=True)}, seed=seed)
    return _bleu() | {path: table for at in PAIRS for path, table in _sweep(rows[at], at).items()}


def discarded(task, values):
    """With four clusters, Routing leaves so many per cent more of the queries without a key than k-means."""
    return _keyless(
        task, values, lambda value: (("routing", "clusters=4", 10 + value), ("routing", "clusters=9", 0.0),
                                     ("sparsefinder-kmeans", "clusters=4, top_k=1", 10.0),
                                     ("sparsefinder-kmeans", "clusters=4, top_k=2", 99.0))
    )  # fmt: skip


def left(task, values):
    """With eight clusters, k-means leaves so many per cent of the queries without a key, and far fewer with four."""
    return _keyless(
        task, values, lambda value: (("sparsefinder-kmeans", "clusters=8, top_k=1", value),
                                     ("sparsefinder-kmeans", "clusters=4, top_k=1", value - 20))
    )  # fmt: skip


def _keyless(task, values, shares):
    rows = [
        {"seed": seed, "method": method, "setting": setting, "window": window, "score": 50.0}
        | {"sparsity": 0.9, "keyless": share / 100}
        for seed, value in enumerate(values)
        for method, setting, share in shares(value)
        for window in (0, 3)
    ]
    return {path: table for at in task for path, table in _sweep(rows, at).items()}


def _replaced(at, rows, full=35.0, gold_sparsity=GOLD):
    """Under replaced graphs; with the rows of the model itself."""
    table = pd.DataFrame(rows)
    own = [
        {"seed": seed, "method": name, "setting": "", "window": 0, "sparsity": 0.0, "bleu": full, "recall": 1.0}
        for seed in table["seed"].unique()
        for name in ("full", "gold graph")
    ]
    return {f"{at}/replaced/seeds.csv": pd.concat([pd.DataFrame(own), table]).assign(gold_sparsity=gold_sparsity)}


def translated_bleu(leaders, rivals, values):
    found = translated_recall(leaders, rivals, values)
    for at in PAIRS:
        rows = _rows(leaders, rivals, values)
        # On a scale on which nothing is below half of the full model's BLEU.
        found |= _replaced(at, [{"bleu": 100 + row.pop("score"), "recall": 0.5} | row for row in rows], full=120.0)
    return found


def lost_at(points, values):
    """Every method loses so much BLEU, and something more at some points: (sparsity, how much)."""
    found = translated_recall(["sparsefinder-distance"], ["window"], [0.0, 0.0])
    rows = [
        {"seed": seed, "method": name, "setting": "", "window": window, "sparsity": s, "bleu": 35.0 - value - more}
        for seed, value in enumerate(values)
        for name in METHODS
        for window, (s, more) in enumerate(points)
    ]
    return found | {path: table for at in PAIRS for path, table in _replaced(at, rows).items()}


def agreeing(values):
    """Recall and BLEU of the methods are in two orders, whose rank correlation is the closest to a value."""
    found = translated_recall(["sparsefinder-distance"], ["window"], [0.0, 0.0])
    orders, correlations = _orders()
    rows = []
    for seed, value in enumerate(values):
        other = orders[np.abs(correlations - value).argmin()]
        rows += [
            {"seed": seed, "method": name, "setting": SETTINGS.get(name, ""), "window": window, "sparsity": s}
            | {"bleu": float(other[rank]), "recall": rank}
            for rank, name in enumerate(METHODS)
            for window, s in enumerate(SPARSITIES)
        ]
    return found | {path: table for at in PAIRS for path, table in _replaced(at, rows).items()}


def consistent(task, score, values):
    rows = {"full": 1.0, "gold graph": 1.0 + values[0]}
    table = pd.DataFrame([{"seed": 0, "method": name, score: value} for name, value in rows.items()])
    return {f"{at}/replaced/seeds.csv": table for at in task}


def centroids(task, values):
    """Points of recall gained from one centroid to two; density grows by far more."""
    rows = [
        {"seed": seed, "method": "sparsefinder-kmeans", "setting": f"clusters=4, top_k={k}", "window": 0}
        | {"score": 50 + value * (k - 1), "sparsity": 0.9 - 0.5 * (k - 1)}
        for seed, value in enumerate(values)
        for k in (1, 2)
    ]
    return {path: table for at in task for path, table in _sweep(rows, at).items()}


def reformer(values):
    """With one bucket a token, its recall is so far above that of k-means, and all else is as the paper says.

    Quantization, and k-means with two centroids a point, are denser than Reformer, and so they are not compared with it.
    """
    found = _bleu()
    others = [
        ("sparsefinder-kmeans", "top_k=1", 50.0, 0.9), ("sparsefinder-kmeans", "top_k=2", 99.0, 0.1),
        ("routing", "", 20.0, 0.9), ("sparsefinder-quantization", "", 99.0, 0.1), ("reformer", FOUR_ROUNDS, 0.0, 0.99),
    ]  # fmt: skip
    for at in PAIRS:
        rows = [
            {"seed": seed, "method": name, "setting": setting, "window": 0, "score": score, "sparsity": sparsity}
            for seed, value in enumerate(values)
            for name, setting, score, sparsity in [*others, ("reformer", SETTINGS["reformer"], 50.0 + value, 0.3)]
        ]
        found |= _sweep(rows, at)
    return found


def precise(values):
    """With a number of clusters of the paper's grid and no window, so many per cent are gold; elsewhere all are."""
    rows = [
        {"seed": seed, "method": "sparsefinder-kmeans", "setting": f"clusters={clusters}, top_k=1", "window": window}
        | {"score": 50.0, "sparsity": 0.9, "precision": share / 100}
        for seed, value in enumerate(values)
        for clusters, window, share in ((4, 0, value), (64, 0, 100.0), (4, 3, 100.0))
    ]
    return {path: table for at in PAIRS for path, table in _sweep(rows, at).items()}


def local(values):
    """A window of 11 covers so many points more of the first layer than of the second."""
    rows = [
        {
            "seed": 0,
            "method": "window",
            "setting": "",
            "window": window,
            "score": score,
            "sparsity": 0.9,
            "layer": layer,
        }
        for layer, more in enumerate((values[0], 0.0))
        for window, score in ((11, 50.0 + more), (3, 10.0))
    ]
    return _sweep(rows, "masked_lm")


def gold_sparsity(values):
    found = masked_recall(["routing"], ["window"], [0.0])
    sweep = found["masked_lm/sweep/seeds.csv"].assign(gold_sparsity=GOLD_SPARSITY + values[0])
    return found | {"masked_lm/sweep/seeds.csv": sweep}


def full_perplexity(values):
    row = {"seed": 0, "method": "full", "nats": math.log(PERPLEXITY), "perplexity": PERPLEXITY + values[0]}
    return {"masked_lm/replaced/seeds.csv": pd.DataFrame([row])}


def printed_bleu(pair, value, values):
    other = {"en-de": 34.47, "en-fr": 42.65}
    return _bleu((other | {pair: value + values[0]}).values())


def saving(values):
    """Of d / r, the share n / (n + 2 d) is saved."""
    length = 100_000
    model = {"hidden_size": round(length * (1 - values[0]) / values[0] / 2), "num_attention_heads": 1}
    settings = CONFIGURATION["masked_lm"] | {"length": length, "model": model}
    return perplexity() | {"config.yaml": CONFIGURATION | {"masked_lm": settings}}


def coreferent(values):
    heads = pd.DataFrame([{"layer": 0, "head": 1, "mass": 0.9, "chance": 0.1, "chains": "gold"}])
    rows = [
        {"seed": seed, "method": "sparsefinder-kmeans", "setting": "", "window": 0, "score": value, "sparsity": 0.8}
        for seed, value in enumerate(values)
    ]
    (at, sweep), *_ = _sweep(rows, "masked_lm").items()
    return {at: sweep.assign(layer=0, head=1), "masked_lm/coreference.csv": heads}


def tagged(values):
    """Of a hundred thousand tokens of a tag, so many in the first of three clusters, and the others in the last.

    The last holds fewer verbs and nouns than by chance, because it holds most adpositions.
    """
    shares = {"VERB": 90.0, "NOUN": 90.0, "AUX": values[0], "ADP": 10.0}
    rows = [
        {"layer": 0, "head": 0, "side": side, "tag": tag, "cluster": cluster, "count": count, "share": count / 1e5}
        for side in ("query", "key")
        for tag, share in shares.items()
        for cluster, count in enumerate([round(1e3 * share), 0, round(1e5 - 1e3 * share)])
    ]
    return {"masked_lm/tags.csv": pd.DataFrame(rows)}
