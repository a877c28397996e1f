"""Sparsefinder's claims about BLEU under predicted graphs (section 5); tests get the folder of all language pairs.

A claim holds if it holds for every language pair.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from replication.claims.comparison import leads, with_perturbed
from replication.claims.configuration import budgets_in
from replication.claims.curves import BASELINES, Curves, curves
from replication.claims.finding import Finding, Test, in_every, registering
from replication.claims.masked_lm import ROUTING, gold_share
from replication.claims.scores import Units, bleu, correlation, effect, plain
from replication.claims.settings import papers_own
from replication.claims.translation import SPARSEFINDER, rank_correlation
from replication.files.reading import read_table
from replication.files.verification import listed_files
from replication.results.bleu import COUNTS
from replication.results.measurements import read_replaced
from replication.results.points import POINT
from replication.results.settings import read_points

#: Upper limit of the paper's "lower levels of sparsity".
LOW_SPARSITY = 0.5
#: Fewer methods are not ranked.
FEWEST_RANKED = 6

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
    """Return the BLEU curves, at the budgets of the recall sweep, and the full model's BLEU ``[1 + R]`` by seed."""
    table, scores, units = _points(folder)
    full = {row.seed: scores[:, place] for place, row in enumerate(table.itertuples()) if row.method == "full"}
    kept = ~table["method"].isin(["full", "gold graph"]).to_numpy() & table.index.isin(papers_own(table).index)
    gold = gold_share(folder)
    return curves(table[kept], scores[:, kept], gold, budgets_in(folder, gold), units), full


@_claim("mt-bleu-sparsefinder-dominates")
def mt_bleu_sparsefinder_dominates(folder: Path, budgets: list[str]) -> Finding:
    return leads(bleu_curves(folder)[0], SPARSEFINDER, [ROUTING, *BASELINES], budgets)


@_claim("mt-bleu-low-sparsity-close-to-full")
def mt_bleu_low_sparsity_close_to_full(folder: Path) -> Finding:
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
def mt_bleu_on_par_at_gold_sparsity(folder: Path, budgets: list[str]) -> Finding:
    """Return the BLEU that distance and k-means lose."""
    compared, full = bleu_curves(folder)
    # No student seed changes the full model.
    of_any = np.mean(list(full.values()), axis=0)[:, None]
    return with_perturbed(lambda curves: _lost(curves, of_any, budgets), compared)


def _lost(compared: Curves, full: np.ndarray, names: list[str]) -> Finding:
    at = {}
    for budget in filter(None, map(compared.named, names)):
        found = at[budget.name] = Finding([])
        for method in SPARSEFINDER:
            if method in compared.methods and compared.has(method, budget):
                lost = full - compared.at(method, budget)
                what = f"{method}, BLEU lost"
                found.effects.append(effect(what, lost, "student seed", compared.units, where=str(budget)))
            else:
                found.missing.append(f"at {budget} these have no points on both sides: {method}")
    return Finding([], at=at)


@_claim("mt-recall-and-bleu-agree")
def mt_recall_and_bleu_agree(folder: Path, budgets: list[str]) -> Finding:
    """Rank-correlate recall and BLEU over the methods that are measured at a budget."""
    gold = gold_share(folder)
    points = papers_own(read_replaced(folder).query("method not in ['full', 'gold graph']")).reset_index(drop=True)
    scores = [points[name].to_numpy()[None] for name in ("recall", "bleu")]
    of_scores = [curves(points, score, gold, budgets_in(folder, gold)) for score in scores]
    return with_perturbed(lambda recall, bleu: _agreement(recall, bleu, budgets), *of_scores)


def _agreement(recall: Curves, of_bleu: Curves, names: list[str]) -> Finding:
    at = {}
    for budget in filter(None, map(recall.named, names)):
        methods = [name for name in recall.methods if recall.has(name, budget)]
        found = at[budget.name] = Finding([])
        if len(methods) < FEWEST_RANKED:
            found.missing.append(f"at {budget} {FEWEST_RANKED} methods must be measured, got {len(methods)}")
            continue
        ranked = [np.stack([compared.at(name, budget)[0] for name in methods]).T for compared in (recall, of_bleu)]
        correlations = [rank_correlation(first, second) for first, second in zip(*ranked, strict=True)]
        what = f"rank correlation of {len(methods)} methods"
        found.effects.append(replace(correlation(what, correlations), where=str(budget)))
    return Finding([], at=at)


@_claim("mt-sparse-consistency")
def mt_sparse_consistency(folder: Path) -> Finding:
    scores = read_replaced(folder).pivot_table(index="seed", columns="method", values="bleu")
    gap = (scores["gold graph"] - scores["full"]).abs()
    return Finding([plain("gold graph - full", gap.max(), f"{len(gap)} evaluations")])


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
