"""What attention costs: seconds and memory against the number of tokens."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from replication.plots.style import PALETTE

#: Attentions that are timed, as the scaling figure names and draws them; block-sparse ones have a colour per density.
_ATTENTIONS = {
    "block-sparse": ("block-sparse entmax", None, "o-"),
    "flex": ("softmax on the same blocks (FlexAttention)", None, "x:"),
    "dense-entmax": ("dense entmax", "black", "s-"),
    "adasplash": ("dense entmax (AdaSplash)", PALETTE[1], "D-"),
    "sdpa": ("dense softmax (PyTorch SDPA)", PALETTE[3], "^-"),
    "predictor": ("predicting the blocks", PALETTE[2], "P--"),
}


def scaling(table: pd.DataFrame, break_evens: pd.DataFrame) -> Figure:
    """Time and memory of one pass against n, and the density up to which block-sparse attention is the faster one.

    ``table``: rows of :func:`replication.timing.scaling.measure` of one pass; ``break_evens``: those of that pass.
    """
    import seaborn as sns

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
