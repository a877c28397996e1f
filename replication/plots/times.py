"""Cost of attention: time and memory by number of tokens, time by number of blocks."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from replication.plots.curves import against_blocks, block_axis, score_floor, side_by_side
from replication.plots.style import BROWN, TEXT, VERMILLION, YELLOW, legend_below, powers_of_ten
from replication.predictors.methods import BLOCK_METHODS
from replication.timing.repeats import block_seconds, is_disturbed, measurable, summary

#: Label, colour and line of each timed attention in the scaling figure; block-sparse ones have a colour per density.
_ATTENTIONS = {
    "block-sparse": ("block-sparse entmax", None, "o-"),
    "flex": ("softmax on the same blocks (FlexAttention)", None, "x:"),
    "dense-entmax": ("dense entmax", "black", "s-"),
    "adasplash": ("dense entmax (AdaSplash)", YELLOW, "D-"),
    "sdpa": ("dense softmax (PyTorch SDPA)", VERMILLION, "^-"),
    "predictor": ("predicting the blocks", BROWN, "P--"),
}


def scaling(table: pd.DataFrame, break_evens: pd.DataFrame) -> Figure:
    """Draw time and memory of one pass by n, and the density up to which block-sparse attention is faster.

    Bands are quartiles over repeats, and hollow markers are disturbed timings. Memory is drawn only where it is measurable.

    Parameters
    ----------
    table : DataFrame
        Rows of :func:`replication.timing.scaling.measure`, of one pass.
    break_evens : DataFrame
        Break-even densities of the same pass.
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
    for axes, title in zip(grid, ("time", "peak memory", "break-even density"), strict=True):
        axes.set_xscale("log")
        axes.set_xticks(lengths, [str(n) if n < 1024 else f"{n / 1024:g}k" for n in lengths])
        axes.minorticks_off()
        axes.set(title=title, xlabel="tokens n")
    for axes in grid[:2]:
        axes.set_yscale("log")
        powers_of_ten(axes.yaxis)
    for axes, label in zip(grid, ("seconds", "MiB", "share of blocks visited"), strict=True):
        axes.set_ylabel(label)
    hollow = "hollow: noisy timing (left), with prediction (right)"
    grid[0].plot([], [], "o", color="0.4", markersize=3.5, markerfacecolor="white", label=hollow)
    grid[2].set(ylim=(0, 1.05), xlim=grid[0].get_xlim())
    grid[2].yaxis.set_major_formatter(PercentFormatter(1.0))
    legend_below(figure, grid[0], columns=2)
    return figure


def times_against_blocks(axes: Axes, timed: pd.DataFrame) -> None:
    """Draw milliseconds per sequence by K: medians over repeats, with bars to the quartiles (Figs. 7, 13).

    Hollow markers are disturbed timings. The dotted line is the faster of the two full models.

    Parameters
    ----------
    axes : Axes
        Panel to draw into.
    timed : DataFrame
        Rows of :func:`replication.results.measurements.read_block_times`. Each repeat is averaged over block sizes.
    """
    seconds = 1000 * block_seconds(timed).groupby("repeat").mean()
    counts = timed[timed["method"].isin(BLOCK_METHODS)]["count"]
    change, factors = side_by_side(counts)
    for name, method in BLOCK_METHODS.items():
        if name in seconds:
            medians = summary(seconds[name])
            bars = [medians["seconds"] - medians["lower"], medians["upper"] - medians["seconds"]]
            medians.index *= factors[name]
            style = {"label": method.label} | method.style | change
            axes.errorbar(medians.index, medians["seconds"], bars, capsize=2, **style)
            hollow = medians[medians["disturbed"]]
            axes.plot(hollow.index, hollow["seconds"], **method.style | {"linestyle": "", "markerfacecolor": "white"})
    full = seconds[[name for name in ("full", "full-kernel") if name in seconds]].median().min()
    axes.axhline(full, color="black", linestyle=":", linewidth=0.9, label="full entmax")
    block_axis(axes, counts)
    axes.margins(y=0.12)  # the slowest marker is not cut
    # Only the lower limit is fixed, so that panels sharing the axis can still extend it.
    axes.set_ylim(bottom=0, auto=None)


def blocks_by_size(points: pd.DataFrame, timed: pd.DataFrame, full: float) -> Figure:
    """Draw time and score by K, a column per block size (Fig. 13).

    Parameters
    ----------
    points : DataFrame
        ``block_size``, ``method``, ``count``, ``seed``, ``alpha`` and ``score``. Where scores under softmax would flatten the
        others, they are at the lower edge.
    timed : DataFrame
        Rows of :func:`replication.results.measurements.read_block_times`.
    full : float
        The full model's score.
    """
    floor = score_floor(points, "score", full)
    sizes = sorted(points["block_size"].unique())
    figure, grid = plt.subplots(2, len(sizes), figsize=(TEXT, 4.0), sharex="col", sharey="row", squeeze=False)
    for column, size in zip(grid.T, sizes, strict=True):
        times_against_blocks(column[0], timed[timed["block_size"] == size])
        against_blocks(column[1], points[points["block_size"] == size], "score", full, floor=floor)
        column[0].set_title(f"blocks of {size}")
        column[0].set_xlabel("")
    grid[0, 0].set_ylabel("milliseconds per sequence")
    grid[1, 0].set_ylabel("negative perplexity")
    legend_below(figure, grid[0, 0], columns=5)
    return figure
