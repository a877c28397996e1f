"""Scores by share of pairs, number of blocks and training progress, with a labelled curve per method."""

import math
from collections.abc import Callable, Iterable

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from replication.plots.budgets import TICKS, draw_curve, mark_gold, share_axis
from replication.plots.style import COLUMN, TEXT, legend_below
from replication.predictors.methods import BLOCK_METHODS, BLUE, GREEN, VERMILLION, styled
from replication.results.measurements import CHARACTER_MODELS, SPAN_MODELS

#: Shares at which the curves of a head's small panel are drawn: with 72 of them, each takes its part of the file's size.
SMALL = 8


def tradeoff(
    axes: Axes,
    points: pd.DataFrame,
    score: str,
    gold_share: float,
    shown: Callable[[np.ndarray], np.ndarray] = np.asarray,
) -> None:
    """Draw a score by the share of pairs computed: all points, each method's hull, and the gold graph's share (Figs. 2, 4).

    Parameters
    ----------
    axes : Axes
        Panel to draw into.
    points : DataFrame
        Rows with ``method``, ``sparsity``, the score and, if there are several seeds, ``seed``.
    score : str
        Column of the score; higher is better.
    gold_share : float
        Drawn as a dashed line.
    shown : callable
        Function from the score to the drawn quantity, such as a ratio of perplexities.
    """
    for name, method in styled(points["method"]).items():
        every = points[points["method"] == name]
        # A point per setting, its mean over seeds: a point per seed would treble a figure's file.
        keys = [name for name in ("setting", "window") if name in every]
        means = every.groupby(keys)[["sparsity", score]].mean() if keys else every
        share, values = 1 - means["sparsity"].to_numpy(), shown(means[score].to_numpy())
        # Points that would cover each other are drawn once: hundreds of them would make most of the file.
        places = np.stack([50 * np.log10(share.clip(min=1e-9)), 80 * values / np.ptp(values).clip(min=1e-9)]).round()
        apart = np.unique(places, axis=1, return_index=True)[1]
        axes.scatter(share[apart], values[apart], s=2, color=method.color, alpha=0.15, linewidths=0)
        if len(every):
            draw_curve(axes, every, score, method, shown)
    mark_gold(axes, gold_share)
    share_axis(axes, min((1 - points["sparsity"]).clip(lower=1e-3).min(), gold_share))


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
    points = points[points["method"].isin(BLOCK_METHODS)]
    keys = ["method", "count"]
    seeds = points.groupby([*keys, "seed"])[measure].mean()
    curves = seeds.groupby(keys).agg(["mean", "std"]).fillna(0.0)
    abscissae = points.assign(place=points[x]).groupby(keys)["place"].mean()
    change, factors = side_by_side(points["count"])
    if x == "count":
        abscissae *= abscissae.index.get_level_values("method").map(factors)
    for name, method in BLOCK_METHODS.items():
        if name in curves.index:
            curve = curves.loc[name]
            style = {"label": method.label} | method.style | change
            axes.errorbar(abscissae[name], curve["mean"], curve["std"], capsize=2, **style)
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


def side_by_side(counts: Iterable[int]) -> tuple[dict[str, str], dict[str, float]]:
    """Return a change of style and, by method, a factor on K: without lines, and beside one another, if there are two K only.

    A line between two values would invent those between them, and points of equal K would hide one another.
    """
    is_joined = len(set(counts)) > 2
    factors = {name: 1.0 if is_joined else 1.12 ** (place - 1.5) for place, name in enumerate(BLOCK_METHODS)}
    return ({} if is_joined else {"linestyle": ""}), factors


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
        Rows of :func:`replication.results.measurements.read_characters` (``log.csv``) of models with spans.
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
    """Draw recall by the share of pairs computed for every layer (row) and head (column) at one window (Figs. 8-10).

    Parameters
    ----------
    sweep : DataFrame
        Rows of one window, of every seed.
    gold : DataFrame
        ``layer``, ``head`` and ``gold_sparsity``.
    """
    # Stored runs have means over heads alone of some methods.
    sweep = sweep.dropna(subset=["layer"]).astype({"layer": int, "head": int})
    layers, heads = sweep["layer"].nunique(), sweep["head"].nunique()
    figure, grid = plt.subplots(
        layers, heads, figsize=(TEXT, min(9.0, 1.25 * layers + 0.8)), sharex=True, sharey="row", squeeze=False
    )
    for axes in grid.flat:
        axes.set_autoscale_on(False)  # limits are set below; finding them anew for each of 600 curves takes ten seconds
    is_narrow = heads > 6
    sizes = {"markersize": 1.5, "linewidth": 0.7} if is_narrow else {"markersize": 3.0, "linewidth": 1.0}
    methods = styled(sweep["method"])
    smallest, largest = max(1 - sweep["sparsity"].max(), 1e-3), 1 - sweep["sparsity"].min()
    for (layer, head), rows in sweep.groupby(["layer", "head"]):
        axes = grid[layer, head]
        for name, method in methods.items():
            # Longformer and BigBird nearly coincide: the second is drawn as a thin line on the first's broad one.
            drawn = sizes | ({"linewidth": 3 * sizes["linewidth"], "zorder": 1} if name == "longformer" else {})
            if len(curve := rows[rows["method"] == name]):
                draw_curve(axes, curve, "recall", method, places=SMALL, markevery=0.3, **drawn)
        share = 1 - gold[(gold["layer"] == layer) & (gold["head"] == head)]["gold_sparsity"].item()
        mark_gold(axes, share, "gold graph's share of the head, or \u25c2 its per cent")
        if share < smallest:
            # An axis that reached so far would leave little room for the curves.
            axes.text(0.04, 0.04, f"\u25c2{100 * share:.2g}", transform=axes.transAxes, fontsize=6)
    ticks = [tick for tick in TICKS if smallest <= tick <= largest]
    share_axis(axes, smallest, largest, labelled=(*ticks[:1], *ticks[-1:]) if is_narrow else TICKS)
    axes.set_xlabel("")
    for head, axes in enumerate(grid[0]):
        axes.set_title(str(head + 1) if is_narrow and head > 0 else f"head {head + 1}")
    # The panels of a row share their axes. Rows have their own, because the window alone covers the first layers.
    for layer, line in enumerate(grid):
        lowest = sweep["recall"][sweep["layer"] == layer].min()
        margin = 0.08 * (1 - lowest) + 0.001
        line[0].set(ylabel=f"layer {layer + 1}", ylim=(lowest - margin, 1 + margin))
        line[0].locator_params(axis="y", nbins=4)
    for axes in grid[-1, heads // 2 : heads // 2 + 1] if is_narrow else grid[-1]:
        axes.set_xlabel("pairs computed, %")
    figure.supylabel("recall of gold edges")
    legend_below(figure, axes)
    return figure
