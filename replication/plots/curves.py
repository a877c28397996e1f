"""Scores against sparsity, blocks and windows: a curve per method, every one named."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from replication.plots.style import PALETTE
from replication.results import BLOCK_METHODS, METHODS, front

_COLORS = dict(zip(METHODS, [*PALETTE[:6], PALETTE[9], (0.25, 0.25, 0.25)], strict=True))
_MARKERS = dict(zip(METHODS, "osD^vP*X", strict=True))
# Version 1 is as near to the distance-based method as version 2 is to k-means; BigBird is BigBird.
_BLOCK_STYLES = {
    method: {"color": _COLORS[like], "marker": _MARKERS[like], "linestyle": line}
    for method, like, line in (
        ("sparsefinder-v1", "sparsefinder-distance", "-"),
        ("sparsefinder-v2", "sparsefinder-kmeans", "-"),
        ("bigbird", "bigbird", "-"),
        ("bigbird-softmax", "bigbird", "--"),
    )
}


def tradeoff(axes: Axes, points: pd.DataFrame, score: str, gold_sparsity: float) -> None:
    """Sparsity against a score: all points faint, each method's Pareto front as a line, gold sparsity dashed (Figs. 2, 4)."""
    fronts = front(points, score)
    for method in METHODS:
        every, best = points[points.method == method], fronts[fronts.method == method]
        axes.scatter(
            every.sparsity, every[score], s=4, color=_COLORS[method], alpha=0.15, linewidths=0, rasterized=True
        )
        axes.plot(
            best.sparsity, best[score], color=_COLORS[method], marker=_MARKERS[method], markersize=3.5,
            markevery=max(1, len(best) // 12), linewidth=1.4, label=METHODS[method],
        )  # fmt: skip
    # Without its number: one legend may stand for several panels.
    axes.axvline(gold_sparsity, color="black", linestyle="--", linewidth=0.9, label="gold sparsity")
    axes.set_xlabel("sparsity of the predicted graph")


def against_blocks(axes: Axes, points: pd.DataFrame, measure: str, full: float, x: str = "count") -> None:
    """A measure against the number of blocks, a curve per method with a point per K; the full model dotted (Figs. 7, 13).

    ``points``: rows with ``method``, ``count`` and, where there are several, ``seed``. Rows of equal K are averaged, bars are
    standard deviations over seeds. ``x`` is ``count``, that is K, or ``attended``: all blocks that are visited.
    """
    keys = ["method", "count"]
    seeds = points.groupby([*keys, "seed"] if "seed" in points else keys)[measure].mean()
    curves = seeds.groupby(keys).agg(["mean", "std"]).fillna(0.0)
    places = points.assign(place=points[x]).groupby(keys)["place"].mean()
    for method, label in BLOCK_METHODS.items():
        if method in curves.index:
            curve = curves.loc[method]
            axes.errorbar(
                places[method], curve["mean"], curve["std"], markersize=4, linewidth=1.4, capsize=2, label=label,
                **_BLOCK_STYLES[method],
            )  # fmt: skip
    axes.axhline(full, color="black", linestyle=":", linewidth=1.0, label="full entmax")
    axes.set_xscale("log", base=2)
    if x == "count":
        counts = sorted(points["count"].unique())
        axes.set_xticks(counts, [str(count) for count in counts])
        axes.minorticks_off()
    else:
        axes.xaxis.set_major_formatter("{x:.0f}")
    axes.set_xlabel({"count": "attended blocks K", "attended": "all blocks visited"}[x])


def head_grid(sweep: pd.DataFrame, gold: pd.DataFrame) -> Figure:
    """Recall against sparsity for every layer (row) and head (column) at one window (Figs. 8-10).

    ``sweep``: rows of one window, averaged over seeds; ``gold``: ``layer``, ``head``, ``gold_sparsity``.
    """
    layers, heads = sweep["layer"].nunique(), sweep["head"].nunique()
    figure, grid = plt.subplots(
        layers, heads, figsize=(1.5 * heads + 0.6, 1.35 * layers + 0.4), sharex=True, sharey=True, squeeze=False,
        layout="constrained",
    )  # fmt: skip
    for (layer, head), rows in sweep.groupby(["layer", "head"]):
        axes = grid[layer, head]
        for method in METHODS:
            curve = rows[rows.method == method].sort_values("sparsity")
            axes.plot(curve.sparsity, curve.recall, color=_COLORS[method], marker=_MARKERS[method], markersize=2.5,
                      linewidth=1.0, label=METHODS[method])  # fmt: skip
        line = gold[(gold.layer == layer) & (gold["head"] == head)]["gold_sparsity"].item()
        axes.axvline(line, color="black", linestyle="--", linewidth=0.8, label="gold sparsity of the head")
        axes.set_xlim(-0.03, 1.03)
        axes.set_ylim(-0.03, 1.03)
        axes.set_title(f"layer {layer + 1}, head {head + 1}", fontsize=7, pad=2)
    for axes in grid[-1]:
        axes.set_xlabel("sparsity", fontsize=8)
    figure.supylabel("recall", fontsize=9)
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncol=3, fontsize=8)
    return figure
