"""This repository's claims about sparsifying models: which rule leads without retraining, and whether tuned heads keep
their guarantee.
"""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from replication.claims.comparison import leads
from replication.claims.configuration import budgets_in, configuration
from replication.claims.curves import Curves, curves
from replication.claims.finding import Effect, Finding, Test, registering
from replication.claims.scores import Units, counted, effect, over_units, resampling
from replication.results.measurements import read_rules, read_sparsified

DISTANCE, KMEANS, V2 = "sparsefinder-distance", "sparsefinder-kmeans", "sparsefinder-v2"
#: Third-party baselines, as of 2025.
RIVALS = ["gate", "quest", "xattention", "vertical-slash", "streaming-llm"]
#: Recall at which rules are compared.
TARGET = 0.95

TESTS: dict[str, Test] = {}
_claim = registering(TESTS)


@dataclass(frozen=True)
class Points:
    """Points of a grid and their measures.

    Attributes
    ----------
    table : DataFrame
        ``seed``, ``method`` and ``setting`` of each point.
    measures : dict
        By name, ``[1 + R, points]``.
    units : Units
        Units of the R resamples.
    """

    table: pd.DataFrame
    measures: dict[str, np.ndarray]
    units: Units


def points_of(measured: pd.DataFrame) -> Points:
    """Average rows per sequence, layer and head, and resample the sequences."""
    keys = ["seed", "method", "setting"]
    of_sequences = measured.groupby([*keys, "sequence"], sort=False)[["recall", "sparsity", "drift"]].mean().unstack()
    units = of_sequences["recall"].shape[1]
    weights = resampling(units) / units
    measures = {name: weights @ of_sequences[name].to_numpy().T for name in ("recall", "sparsity", "drift")}
    return Points(of_sequences.index.to_frame(index=False), measures, Units(units, "sequences"))


def sparsity_at(recall: np.ndarray, sparsity: np.ndarray, target: float) -> float:
    """Return the sparsity at which the Pareto front of points ``[N]`` has the target recall, interpolated linearly.

    NaN if the front does not have points on both sides of the target.
    """
    order = np.argsort(-recall, kind="stable")
    recall, sparsity = recall[order], sparsity[order]
    kept = np.ones(len(recall), bool)
    kept[1:] = sparsity[1:] > np.maximum.accumulate(sparsity)[:-1]
    return float(np.interp(target, recall[kept][::-1], sparsity[kept][::-1], left=np.nan, right=np.nan))


def sparsities_at(points: Points, method: str, target: float | np.ndarray) -> np.ndarray:
    """Return a method's sparsity at a target recall, ``[1 + R, seeds]``, in percentage points.

    The target may differ between resamples, ``[1 + R]``. NaN if the target is not reached, or the grid lacks the method.
    """
    recall, sparsity = points.measures["recall"], points.measures["sparsity"]
    targets = np.broadcast_to(target, len(recall))
    of_method = points.table[points.table["method"] == method]
    sparsities = [
        [sparsity_at(*resample) for resample in zip(recall[:, places], sparsity[:, places], targets, strict=True)]
        for places in of_method.groupby("seed").groups.values()
    ]
    return 100 * np.array(sparsities).T if sparsities else np.full((len(recall), 1), np.nan)


def left_out(method: str, sparsities: np.ndarray, units: Units) -> Effect:
    """Return the effect of a rule's sparsity ``[1 + R, seeds]``, with an interval over sequences and student seeds, if any."""
    if sparsities.shape[1] == 1:
        return over_units(method, sparsities[:, 0], units)
    return effect(method, sparsities, "student seed", units)


@_claim("retrofit-distance-leads")
def retrofit_distance_leads(folder: Path) -> Finding:
    return _leads_at_target(folder, DISTANCE, [KMEANS, V2, *RIVALS])


@_claim("retrofit-kmeans-leads-rivals")
def retrofit_kmeans_leads_rivals(folder: Path) -> Finding:
    return _leads_at_target(folder, KMEANS, RIVALS)


def _leads_at_target(folder: Path, leader: str, rivals: list[str]) -> Finding:
    """Return by how much the leader is sparser than each rival at the target recall."""
    points = points_of(read_rules(folder))
    leading = sparsities_at(points, leader, TARGET)
    effects, missing = [], []
    for rival in rivals:
        other = sparsities_at(points, rival, TARGET)
        if not np.isfinite(leading[0]).all() or not np.isfinite(other[0]).all():
            missing.append(f"{leader} and {rival} do not both reach a recall of {TARGET}")
        else:
            apart = leading - (other if other.shape[1] == leading.shape[1] else other.mean(axis=1, keepdims=True))
            what = f"{leader} ({leading[0].mean():.1f}) - {rival} ({other[0].mean():.1f})"
            effects.append(effect(what, apart, "student seed", points.units))
    return Finding(effects, missing=missing)


def drift_curves(folder: Path) -> Curves:
    """Return curves of negated drift, in percent of the output's norm."""
    points = points_of(read_rules(folder))
    table = points.table.assign(sparsity=points.measures["sparsity"][0])
    drawn = curves(table, -100 * points.measures["drift"], np.nan, budgets_in(folder, np.nan), points.units)
    # Rules that no seed changes have one curve, which is repeated for comparison with each seed of the others.
    seeds = max((len(of_seeds) for of_seeds in drawn.methods.values()), default=0)
    methods = {name: of_seeds * (seeds // len(of_seeds)) for name, of_seeds in drawn.methods.items()}
    return replace(drawn, methods=methods)


def _drifts_least(leader: str, rivals: list[str], folder: Path, budgets: list[str]) -> Finding:
    return leads(drift_curves(folder), [leader], rivals, budgets)


_claim("retrofit-distance-drifts-least")(partial(_drifts_least, DISTANCE, [KMEANS, V2, *RIVALS]))


@_claim("retrofit-tuned-heads-save-more")
def retrofit_tuned_heads_save_more(folder: Path) -> Finding:
    """Return by how much tuned heads are sparser than one threshold for all heads at the same recall, for every target."""
    points, effects, notes = points_of(read_rules(folder)), [], []
    for target, measured in read_sparsified(folder).items():
        tuned = points_of(measured)
        recall, sparsity = (tuned.measures[name].mean(axis=1) for name in ("recall", "sparsity"))
        one_for_all = sparsities_at(points, DISTANCE, recall)
        if np.isfinite(one_for_all[0]).all():
            what = f"tuned to {target}, at a recall of {recall[0]:.3f}: {100 * sparsity[0]:.1f} - {one_for_all[0].mean():.1f}"
            apart = 100 * sparsity[:, None] - one_for_all
            effects.append(effect(what, apart, "student seed", points.units))
        else:
            notes.append(f"one threshold does not reach a recall of {recall[0]:.3f}")
    return Finding(effects, notes)


@_claim("retrofit-promise-is-kept")
def retrofit_promise_is_kept(folder: Path) -> Finding:
    """Return the share of heads whose mean recall on other text misses the target, minus the allowed share, in points."""
    tuned, effects = read_sparsified(folder), []
    promised = 100 * (1 - configuration(folder)["retrofit"]["confidence"])
    for target, measured in tuned.items():
        of_heads = measured.groupby(["seed", "layer", "head"])["recall"].mean()
        missed = int((of_heads < target).sum())
        what = f"tuned to {target}: {missed} heads, {promised:.0f} % promised"
        effects.append(counted(what, missed, len(of_heads), "heads", less=promised))
    return Finding(effects)
