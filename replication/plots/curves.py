"""Scores by sparsity, number of blocks and training progress, with a labelled curve per method."""

import math
from collections.abc import Iterable

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from replication.methods import BLOCK_METHODS, BLUE, GREEN, METHODS, VERMILLION
from replication.plots.style import COLUMN, TEXT, legend_below
from replication.points import front
from replication.results import CHARACTER_MODELS, SPAN_MODELS


def tradeoff(axes: Axes, points: pd.DataFrame, score: str, gold_sparsity: float, lowest: float | None = None) -> None:
    """Draw a score by sparsity: all points, each method's Pareto front, and the gold sparsity (Figs. 2, 4).

    Parameters
    ----------
    axes : Axes
        Panel to draw into.
    points : DataFrame
        Rows with ``method``, ``sparsity`` and the score.
    score : str
        Column of the score; higher is better.
    gold_sparsity : float
        Drawn as a dashed line.
    lowest : float, optional
        Lower end of the panel. Front points below it are drawn there as small triangles.
    """
    fronts = front(points, score)
    for name, method in METHODS.items():
        every, best = points[points.method == name], fronts[fronts.method == name]
        axes.scatter(every.sparsity, every[score], s=3, color=method.color, alpha=0.2, linewidths=0)
        axes.plot(
            best.sparsity,
            best[score],
            markersize=4,
            markevery=max(1, len(best) // 12),
            label=method.label,
            **method.style,
        )
        if lowest is not None and len(below := best.sparsity[best[score] < lowest]):
            axes.plot(below, [lowest] * len(below), "v", color=method.color, markersize=3, clip_on=False)
    if lowest is not None:
        axes.plot([], [], "v", color="0.4", markersize=3, label="below the panel")
    # The label has no number, because several panels may share one legend.
    axes.axvline(gold_sparsity, color="black", linestyle="--", linewidth=0.8, label="gold sparsity")
    axes.set(xlabel="sparsity", xlim=(-0.02, 1.02))
    if lowest is not None:
        axes.set_ylim(bottom=lowest)


def near_gold(axes: Axes, points: pd.DataFrame, score: str, gold_sparsity: float, lowest_sparsity: float = 0.9) -> None:
    """Draw an inset of :func:`tradeoff` for the sparsities near the gold graph's, where its curves lie close together."""
    inset = axes.inset_axes((0.1, 0.12, 0.48, 0.36))
    tradeoff(inset, points, score, gold_sparsity)
    shown = points[points["sparsity"] >= lowest_sparsity]
    inset.set(xlim=(lowest_sparsity, 1.0), xlabel="", ylim=(shown[score].min() - 0.02, shown[score].max() + 0.02))
    inset.set_xticks([lowest_sparsity, (1 + lowest_sparsity) / 2, 1.0])
    inset.tick_params(labelsize=6)
    inset.set_title(f"sparsity from {lowest_sparsity}", fontsize=6.5)


def score_floor(points: pd.DataFrame, measure: str, full: float) -> float | None:
    """Return where to cut panels of a score, if the methods under softmax are so low that they flatten the others.

    Returns
    -------
    float or None
        A little below the lowest entmax score; None if all scores fit.
    """
    seeds = points.groupby(["method", "count", "alpha", "block_size"])[measure].mean().reset_index()
    entmax = seeds[seeds["alpha"] != 1][measure]
    height = max(entmax.max(), full) - entmax.min()
    floor = entmax.min() - 0.12 * height
    return floor if seeds[measure].min() < entmax.min() - 0.5 * height else None


def against_blocks(
    axes: Axes, points: pd.DataFrame, measure: str, full: float, x: str = "count", floor: float | None = None
) -> None:
    """Draw a measure by number of blocks, a curve per method with a point per K (Figs. 7, 13).

    Parameters
    ----------
    axes : Axes
        Panel to draw into.
    points : DataFrame
        Rows with ``method``, ``count``, ``seed`` and the measure. Rows of equal K are averaged; bars are standard deviations
        over seeds.
    measure : str
        Column to draw.
    full : float
        The full model's value, drawn as a dotted line.
    x : str
        ``count`` for K, or ``attended`` for the number of all visited blocks.
    floor : float, optional
        Lower end of the panel. Points below it are drawn there as triangles with their value.
    """
    keys = ["method", "count"]
    seeds = points.groupby([*keys, "seed"])[measure].mean()
    curves = seeds.groupby(keys).agg(["mean", "std"]).fillna(0.0)
    abscissae = points.assign(place=points[x]).groupby(keys)["place"].mean()
    for name, method in BLOCK_METHODS.items():
        if name in curves.index:
            curve = curves.loc[name]
            axes.errorbar(abscissae[name], curve["mean"], curve["std"], capsize=2, label=method.label, **method.style)
            for place, value in curve["mean"][curve["mean"] < (-math.inf if floor is None else floor)].items():
                axes.plot(abscissae[name][place], floor, "v", color=method.color, markersize=4, clip_on=False, zorder=4)
                axes.annotate(
                    f"{value:.0f}", (abscissae[name][place], floor), xytext=(0, 5), textcoords="offset points",
                    ha="center", fontsize=6, color=method.color,
                )  # fmt: skip
    axes.axhline(full, color="black", linestyle=":", linewidth=0.9, label="full entmax")
    if floor is not None:
        # Only the lower limit is fixed, so that panels sharing the axis can still extend it.
        axes.set_ylim(bottom=floor, auto=None)
    if x == "count":
        block_axis(axes, points["count"])
    else:
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter("{x:.0f}")
        axes.set_xlabel("all blocks visited")


def block_axis(axes: Axes, counts: Iterable[int]) -> None:
    """Set up a logarithmic axis of K, with ticks at the measured values."""
    counts = sorted(set(counts))
    axes.set_xscale("log", base=2)
    axes.set_xticks(counts, [str(count) for count in counts])
    axes.minorticks_off()
    axes.set_xlabel("attended blocks K")


def spans_in_training(logs: pd.DataFrame) -> Figure:
    """Draw the mean span by validation bits during training, a panel per corpus (Table 4).

    Training proceeds from left to right.

    Parameters
    ----------
    logs : DataFrame
        Rows of :func:`replication.results.read_characters` (``log.csv``) of models with spans.
    """
    corpora = sorted(logs["corpus"].unique())
    width = COLUMN if len(corpora) == 1 else TEXT
    figure, grid = plt.subplots(1, len(corpora), figsize=(width, 2.6), squeeze=False)
    styles = dict(zip(SPAN_MODELS, ((BLUE, "o", "-"), (VERMILLION, "s", "--"), (GREEN, "D", ":")), strict=True))
    for axes, corpus in zip(grid[0], corpora, strict=True):
        for (model, seed), log in logs[logs["corpus"] == corpus].groupby(["model", "seed"], sort=False):
            color, marker, line = styles[model]
            name = CHARACTER_MODELS[model] if seed == logs["seed"].min() else None
            axes.plot(log["valid_bits"], log["mean_span"], line, color=color, marker=marker, markersize=4, label=name)
        axes.set(title=corpus, xlabel="validation bits per character (right is better)", ylabel="mean span, characters")
        axes.set_ylim(0, 1.05 * logs["mean_span"].max())
        axes.invert_xaxis()
    legend_below(figure, *grid[0], columns=1 if len(corpora) == 1 else 3)
    return figure


def head_grid(sweep: pd.DataFrame, gold: pd.DataFrame) -> Figure:
    """Draw recall by sparsity for every layer (row) and head (column) at one window (Figs. 8-10).

    Parameters
    ----------
    sweep : DataFrame
        Rows of one window, averaged over seeds.
    gold : DataFrame
        ``layer``, ``head`` and ``gold_sparsity``.
    """
    layers, heads = sweep["layer"].nunique(), sweep["head"].nunique()
    figure, grid = plt.subplots(
        layers, heads, figsize=(TEXT, min(9.0, 1.25 * layers + 0.8)), sharex=True, sharey="row", squeeze=False
    )
    is_narrow = heads > 6
    sizes = {"markersize": 1.5, "linewidth": 0.7} if is_narrow else {"markersize": 3.0, "linewidth": 1.0}
    for (layer, head), rows in sweep.groupby(["layer", "head"]):
        axes = grid[layer, head]
        for name, method in METHODS.items():
            curve = rows[rows.method == name].sort_values("sparsity")
            # Longformer and BigBird nearly coincide: the second is drawn as a thin line on the first's broad one.
            drawn = sizes | ({"linewidth": 3 * sizes["linewidth"], "zorder": 1} if name == "longformer" else {})
            axes.plot(curve.sparsity, curve.recall, label=method.label, **method.style, **drawn)
        gold_sparsity = gold[(gold.layer == layer) & (gold["head"] == head)]["gold_sparsity"].item()
        axes.axvline(gold_sparsity, color="black", linestyle="--", linewidth=0.8, label="gold sparsity of the head")
    axes.set(xlim=(sweep["sparsity"].min() - 0.04, 1.03))
    for head, axes in enumerate(grid[0]):
        axes.set_title(str(head + 1) if is_narrow and head > 0 else f"head {head + 1}")
    # The panels of a row share their axes. Rows have their own, because the window alone covers the first layers.
    for layer, line in enumerate(grid):
        lowest = sweep["recall"][sweep["layer"] == layer].min()
        margin = 0.08 * (1 - lowest) + 0.001
        line[0].set(ylabel=f"layer {layer + 1}", ylim=(lowest - margin, 1 + margin))
        line[0].locator_params(axis="y", nbins=4)
    axes.locator_params(axis="x", nbins=2 if is_narrow else 4)
    axes.xaxis.set_major_formatter("{x:g}")  # "0.5" and "1.0" would touch below narrow panels
    for axes in grid[-1, heads // 2 : heads // 2 + 1] if is_narrow else grid[-1]:
        axes.set_xlabel("sparsity")
    figure.supylabel("recall of gold edges")
    legend_below(figure, axes)
    return figure
