"""Recall sweep: coverage of one layer's gold graphs by every grid member with every window."""

from collections.abc import Mapping
from dataclasses import fields
from itertools import groupby

import numpy as np
import pandas as pd
from torch import Tensor

from replication.graphs.counting import Counter, Counts, pack
from replication.graphs.grids import Member
from replication.graphs.shards import Batch, LayerGraphs
from sparselib.predictors import Distance
from sparselib.projections import Projection

MEASURES = ("recall", "sparsity", "precision", "exact", "keyless")


def sweep_layer(
    graphs: LayerGraphs,
    students: Mapping[int, tuple[Projection, dict[str, Tensor]]],
    members: list[Member],
    windows: list[int],
    global_tokens: str,
    batch_size: int = 1,
) -> pd.DataFrame:
    """Measure every member with every window on the graphs of one layer, with the students of every seed.

    Members that do not depend on the seed are measured once.

    Parameters
    ----------
    graphs : LayerGraphs
        Graphs of the layer.
    students : mapping of int to tuple
        By seed, the projection and the centroids of this layer.
    members : list of Member
        Members of the grid.
    windows : list of int
        Increasing total widths; 0 is no window.
    global_tokens : str
        ``"none"``, ``"first"`` or ``"first_last"``.
    batch_size : int, default 1
        Sequences per batch.

    Returns
    -------
    DataFrame
        A row per seed, method, setting, window and head: ``recall`` (Eq. 4), ``sparsity`` (Eq. 5), ``precision``, ``exact``
        (share of queries whose gold keys are all covered) and ``keyless`` (share of queries to which the predicted graph gives
        no key, before windows and global tokens), each computed per sentence and then averaged over sentences; and
        ``gold_sparsity`` per head.
    """
    families = [list(family) for _, family in groupby(members, key=_family)]
    sums = {
        seed: [np.zeros((len(MEASURES), len(family), graphs.heads, len(windows))) for family in families]
        for seed in students
    }
    gold_sparsity = np.zeros(graphs.heads)
    for number, batch in enumerate(graphs.batches(batch_size)):
        counter = Counter(batch, windows, global_tokens)
        gold_sparsity += (1 - counter.gold_size / counter.visible_size[:, None]).sum(0)
        measured = {}
        for seed, (projection, centroids) in students.items():
            q, k = projection(batch.q), projection(batch.k)
            # Random patterns are drawn anew for every layer and batch, and seeds never share a draw.
            draw_seed = (seed * 1000 + graphs.header["layer"]) * 100_000 + number
            for index, family in enumerate(families):
                key = (seed if family[0].is_seeded else None, index)
                if key not in measured:
                    counts = count_family(counter, batch, q, k, family, centroids, draw_seed)
                    measured[key] = _measures(counter, counts).sum(2)
                sums[seed][index] += measured[key]
    tables = [
        _table(family, total / len(graphs), windows, graphs.heads).assign(seed=seed)
        for seed, totals in sums.items()
        for family, total in zip(families, totals, strict=True)
    ]
    table = pd.concat(tables, ignore_index=True)
    table["gold_sparsity"] = (gold_sparsity / len(graphs))[table["head"]]
    table.insert(0, "seed", table.pop("seed"))
    return table


def count_family(
    counter: Counter, batch: Batch, q: Tensor, k: Tensor, family: list[Member], centroids: dict[str, Tensor], seed: int
) -> Counts:
    """Count the graphs of one family: a single member, or all thresholds of one distance metric.

    ``q`` and ``k`` are projected.
    """
    predictors = [member.build(centroids, seed) for member in family]
    if isinstance(predictors[0], Distance):
        limits = np.array([predictor.squared_limit for predictor in predictors])
        order = np.argsort(limits, kind="stable")
        sorted_counts = counter.count_thresholds(q, k, limits[order].tolist())
        inverse_order = np.argsort(order)
        return Counts(*(getattr(sorted_counts, field.name)[inverse_order] for field in fields(Counts)))
    (predictor,) = predictors
    return counter.count(pack(predictor.predict(q, k, lengths=batch.lengths, causal=batch.causal)))


def _family(member: Member) -> object:
    """Return the key of a member's family: thresholds of one metric are counted together, other members alone."""
    if member.predictor == "Distance":
        return member.method, member.arguments.get("metric")
    return member.method, member.setting


def _measures(counter: Counter, counts: Counts) -> np.ndarray:
    """Return the measures of each member, sentence, head and window, ``[5, M, B, H, W]``."""
    gold = counter.gold_size[..., None]
    visible = counter.visible_size[:, None, None]
    rows = counter.rows_per_sentence[:, None, None]
    return np.stack(
        [
            counts.hits / gold,
            1 - counts.predicted / visible,
            np.where(
                counts.predicted > 0, counts.hits / np.maximum(counts.predicted, 1), 1.0
            ),  # like metrics.precision
            counts.exact_rows / rows,
            counts.keyless_rows / rows,
        ]
    )


def _table(family: list[Member], measures: np.ndarray, windows: list[int], heads: int) -> pd.DataFrame:
    index = pd.MultiIndex.from_product(
        [[m.setting for m in family], range(heads), windows], names=["setting", "head", "window"]
    )
    table = pd.DataFrame(measures.reshape(len(MEASURES), -1).T, index, columns=list(MEASURES)).reset_index()
    table.insert(0, "method", family[0].method)
    return table
