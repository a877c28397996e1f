"""What attention costs: seconds and memory against the number of tokens, seconds against the number of blocks."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from replication.methods import BLOCK_METHODS
from replication.plots.curves import against_blocks, block_axis
from replication.plots.style import BROWN, TEXT, VERMILLION, YELLOW, legend_below, powers_of_ten
from replication.timing.repeats import block_seconds, is_disturbed, measurable, summary

#: Attentions that are timed, as the scaling figure names and draws them; block-sparse ones have a colour per density.
_ATTENTIONS = {
    "block-sparse": ("block-sparse entmax", None, "o-"),
    "flex": ("softmax on the same blocks (FlexAttention)", None, "x:"),
    "dense-entmax": ("dense entmax", "black", "s-"),
    "adasplash": ("dense entmax (AdaSplash)", YELLOW, "D-"),
    "sdpa": ("dense softmax (PyTorch SDPA)", VERMILLION, "^-"),
    "predictor": ("predicting the blocks", BROWN, "P--"),
}


def scaling(table: pd.DataFrame, break_evens: pd.DataFrame) -> Figure:
    """Time and memory of one pass against n, and the density up to which block-sparse attention is the faster one.

    Bands are quartiles over repeats, hollow marks timings that were disturbed; memory is drawn where it can be told.

    ``table``: rows of :func:`replication.timing.scaling.measure` of one pass; ``break_evens``: those of that pass.
    """
    import seaborn as sns

    figure, grid = plt.subplots(1, 3, figsize=(TEXT, 3.0))
    densities = sorted(table.density.dropna().unique())
    shades = dict(zip(densities, sns.color_palette("crest", len(densities)), strict=True))
    for name, (label, color, line) in _ATTENTIONS.items():
        for density, curve in table[table.what == name].groupby("density", dropna=False):
            style = {"color": color or shades[density], "markersize": 3.5}
            style["label"] = label if color else f"{label}, {density:.0%}"
            grid[0].plot(curve.n, curve.seconds, line, **style)
            grid[0].fill_between(curve.n, curve.lower, curve.upper, color=style["color"], alpha=0.25, linewidth=0)
            disturbed = curve[is_disturbed(curve)]
            grid[0].plot(
                disturbed.n, disturbed.seconds, line[0], color=style["color"], markersize=3.5, markerfacecolor="white"
            )
            grid[1].plot(curve.n, measurable(curve) / 2**20, line, **style)
        for predicted, curve in break_evens[break_evens.peer == name].groupby("predicted"):
            style = {"markersize": 3.5, "fillstyle": "none" if predicted else "full"}
            grid[2].plot(curve.n, curve.density, line, color=color or "0.5", **style)
    lengths = sorted(table.n.unique())
    for axes, title in zip(grid, ("seconds", "peak memory, MiB", "visited share that breaks even"), strict=True):
        axes.set_xscale("log")
        axes.set_xticks(lengths, [str(n) if n < 1024 else f"{n / 1024:g}k" for n in lengths])
        axes.minorticks_off()
        axes.set(title=title, xlabel="tokens n")
    for axes in grid[:2]:
        axes.set_yscale("log")
        powers_of_ten(axes.yaxis)
    grid[2].set(ylim=(0, 1.05), xlim=grid[0].get_xlim())
    grid[2].yaxis.set_major_formatter(PercentFormatter(1.0))
    legend_below(figure, grid[0], columns=2)
    return figure


def times_against_blocks(axes: Axes, timed: pd.DataFrame) -> None:
    """Milliseconds per sequence against K, medians over repeats with bars to their quartiles (Figs. 7, 13).

    Hollow marks are timings that were disturbed; the dotted line is the faster of the two full models. ``timed``: rows of
    :func:`replication.results.read_block_times`; of several block sizes, each repeat counts with its mean over them.
    """
    seconds = 1000 * block_seconds(timed).groupby("repeat").mean()
    for name, method in BLOCK_METHODS.items():
        if name in seconds:
            found = summary(seconds[name])
            bars = [found["seconds"] - found["lower"], found["upper"] - found["seconds"]]
            axes.errorbar(found.index, found["seconds"], bars, capsize=2, label=method.label, **method.style)
            hollow = found[found["disturbed"]]
            axes.plot(hollow.index, hollow["seconds"], **method.style | {"linestyle": "", "markerfacecolor": "white"})
    full = seconds[[name for name in ("full", "full-kernel") if name in seconds]].median().min()
    axes.axhline(full, color="black", linestyle=":", linewidth=0.9, label="full entmax")
    block_axis(axes, timed[timed["method"].isin(BLOCK_METHODS)]["count"])
    # Where several panels share the axis, its end goes on to follow what is drawn in the others.
    axes.set_ylim(bottom=0, auto=None)


def blocks_by_size(points: pd.DataFrame, timed: pd.DataFrame, full: float) -> Figure:
    """A column per block size: time and score against K, and where there is softmax too, the score of entmax alone (Fig. 13).

    ``points``: rows with ``block_size, method, count, seed, alpha, score``; ``timed``: those of
    :func:`replication.results.read_block_times`; ``full``: the full model's score.
    """
    scores = {"negative perplexity": points}
    if points["alpha"].nunique() > 1:
        scores["negative perplexity, entmax"] = points[points["alpha"] == 1.5]
    sizes, rows = sorted(points["block_size"].unique()), 1 + len(scores)
    figure, grid = plt.subplots(
        rows, len(sizes), figsize=(TEXT, 1.75 * rows + 0.5), sharex="col", sharey="row", squeeze=False
    )
    for column, size in zip(grid.T, sizes, strict=True):
        times_against_blocks(column[0], timed[timed["block_size"] == size])
        for axes, table in zip(column[1:], scores.values(), strict=True):
            against_blocks(axes, table[table["block_size"] == size], "score", full)
        column[0].set_title(f"blocks of {size}")
    for axes in grid[:-1].flat:
        axes.set_xlabel("")
    for axes, label in zip(grid[:, 0], ("milliseconds per sequence", *scores), strict=True):
        axes.set_ylabel(label)
    legend_below(figure, grid[0, 0], columns=5)
    return figure
