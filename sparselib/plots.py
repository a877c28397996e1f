"""Figures in one style: colour-blind-safe colours, every curve named, vector files beside the picture."""

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from sparselib.results import BLOCK_METHODS, METHODS, front
from sparselib.storage import replacing

_PALETTE = sns.color_palette("colorblind")
_COLORS = dict(zip(METHODS, [*_PALETTE[:6], _PALETTE[9], (0.25, 0.25, 0.25)], strict=True))
_MARKERS = dict(zip(METHODS, "osD^vP*X", strict=True))
#: Attentions that are timed, as the scaling figure names and draws them; block-sparse ones have a colour per density.
_ATTENTIONS = {
    "block-sparse": ("block-sparse entmax", None, "o-"),
    "flex": ("softmax on the same blocks (FlexAttention)", None, "x:"),
    "dense-entmax": ("dense entmax", "black", "s-"),
    "adasplash": ("dense entmax (AdaSplash)", _PALETTE[1], "D-"),
    "sdpa": ("dense softmax (PyTorch SDPA)", _PALETTE[3], "^-"),
    "predictor": ("predicting the blocks", _PALETTE[2], "P--"),
}
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
_LEARNED, _GOLD, _POSITION = "#f0c239", "#c0392b", "#4c9a6a"


def use_style() -> None:
    """The style of every figure of this repository."""
    sns.set_theme(context="paper", style="ticks", font_scale=1.0)
    plt.rcParams |= {
        "figure.dpi": 100,
        "savefig.bbox": "tight",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "legend.frameon": False,
        "svg.hashsalt": "sparselib",
        "pdf.fonttype": 42,
    }


def save(figure: Figure, folder: Path, name: str) -> None:
    """Write a figure as ``name.svg`` and ``name.pdf``, without the date, so that equal figures are equal files."""
    for suffix, metadata in ((".svg", {"Date": None}), (".pdf", {"CreationDate": None})):
        with replacing(folder / f"{name}{suffix}") as temporary:
            figure.savefig(temporary, metadata=metadata)


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


def legend_below(figure: Figure, axes: Axes, columns: int = 3) -> None:
    """One legend for the whole figure, under it."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncol=columns)


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


def draw_mask(axes: Axes, mask: np.ndarray, title: str) -> None:
    """One boolean mask ``[Q, K]``, allowed pairs dark: queries down, keys across."""
    axes.imshow(mask, cmap=ListedColormap(["white", "#2b4c7e"]), vmin=0, vmax=1, interpolation="none")
    axes.set(xticks=[], yticks=[])
    axes.set_title(f"{fill(title, 20)}\n{1 - mask.mean():.0%} sparse", fontsize=8)
    for spine in axes.spines.values():
        spine.set_visible(True)


def draw_graph(
    axes: Axes, learned: np.ndarray, position: np.ndarray, gold: np.ndarray, words: Sequence[str] | None = None
) -> None:
    """A predicted graph ``[Q, K]``: position pattern green, learned part yellow, gold edges starred (Fig. 1c, 3)."""
    picture = np.where(position, 2, np.where(learned, 1, 0))
    axes.imshow(picture, cmap=ListedColormap(["white", _LEARNED, _POSITION]), vmin=0, vmax=2, interpolation="none")
    row, column = gold.nonzero()
    axes.scatter(column, row, marker="*", s=14, color="black", linewidths=0)
    _name_positions(axes, words, len(gold))


def draw_weights(axes: Axes, weights: np.ndarray, gold: np.ndarray, words: Sequence[str] | None = None) -> None:
    """Attention weights ``[Q, K]`` with their nonzero cells outlined."""
    axes.imshow(np.ma.masked_equal(weights, 0), cmap="Blues", vmin=0, vmax=1, interpolation="none")
    row, column = gold.nonzero()
    axes.scatter(column, row, marker="s", s=9, facecolors="none", edgecolors=_GOLD, linewidths=0.4)
    _name_positions(axes, words, len(gold))


def _name_positions(axes: Axes, words: Sequence[str] | None, count: int) -> None:
    axes.set(xlim=(-0.5, count - 0.5), ylim=(count - 0.5, -0.5))
    if words is None:
        axes.set(xticks=[], yticks=[])
    else:
        axes.set_xticks(range(count), words, rotation=90, fontsize=7)
        axes.set_yticks(range(count), words, fontsize=7)
        axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(True)


def draw_token_graph(
    axes: Axes, words: Sequence[str], edges: np.ndarray, weights: np.ndarray, marked: Sequence[bool]
) -> None:
    """A bipartite graph: queries above, keys below, a line per edge ``[Q, K]`` as dark as its weight (Fig. 5).

    ``marked`` words are coloured, as are the edges between them.
    """
    for row, column in zip(*edges.nonzero(), strict=True):
        both = marked[row] and marked[column]
        axes.plot([row, column], [1, 0], color=_GOLD if both else "0.55", linewidth=1.6 if both else 0.6,
                  alpha=0.25 + 0.75 * float(weights[row, column]), solid_capstyle="round")  # fmt: skip
    for position, word in enumerate(words):
        style = {"fontsize": 7, "ha": "center", "color": _GOLD if marked[position] else "black", "rotation": 90}
        axes.text(position, 1.04, word, va="bottom", **style)
        axes.text(position, -0.04, word, va="top", **style)
    axes.set(xlim=(-0.6, len(words) - 0.4), ylim=(-0.05, 1.05))
    axes.axis("off")


def share_map(axes: Axes, shares: pd.DataFrame, title: str) -> None:
    """Share (in percent) of each tag (rows) that falls in each cluster (columns)."""
    sns.heatmap(
        shares * 100, ax=axes, cmap="Blues", vmin=0, vmax=100, annot=True, fmt=".0f", annot_kws={"fontsize": 6},
        linewidths=0.3, cbar=False,
    )  # fmt: skip
    axes.set(title=title, xlabel="cluster", ylabel="")
    axes.tick_params(axis="y", rotation=0)


def scaling(table: pd.DataFrame, break_evens: pd.DataFrame) -> Figure:
    """Time and memory of one pass against n, and the density up to which block-sparse attention is the faster one.

    ``table``: rows of :func:`sparselib.scaling.measure` of one pass; ``break_evens``: those of that pass.
    """
    figure, grid = plt.subplots(1, 3, figsize=(9.6, 3.1), layout="constrained")
    densities = sorted(table.density.dropna().unique())
    shades = dict(zip(densities, sns.color_palette("crest", len(densities)), strict=True))
    for name, (label, color, line) in _ATTENTIONS.items():
        for density, curve in table[table.what == name].groupby("density", dropna=False):
            style = {"color": color or shades[density], "markersize": 3.5, "linewidth": 1.3}
            style["label"] = label if color else f"{label}, {density:.0%}"
            grid[0].plot(curve.n, curve.seconds, line, **style)
            grid[1].plot(curve.n, curve.bytes / 2**20, line, **style)
        for predicted, curve in break_evens[break_evens.peer == name].groupby("predicted"):
            style = {"markersize": 3.5, "linewidth": 1.3, "fillstyle": "none" if predicted else "full"}
            grid[2].plot(curve.n, curve.density, line, color=color or "0.5", **style)
    lengths = sorted(table.n.unique())
    for axes, title in zip(grid, ("seconds", "peak memory, MiB", "visited share that breaks even"), strict=True):
        axes.set_xscale("log")
        axes.set_xticks(lengths, [str(n) if n < 1024 else f"{n / 1024:g}k" for n in lengths])
        axes.minorticks_off()
        axes.set_title(title, fontsize=9)
        axes.set_xlabel("tokens n")
    for axes in grid[:2]:
        axes.set_yscale("log")
    grid[2].set(ylim=(0, 1.05), xlim=grid[0].get_xlim())
    grid[2].yaxis.set_major_formatter(PercentFormatter(1.0))
    handles, labels = grid[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncol=3, fontsize=8)
    return figure
