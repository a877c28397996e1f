"""Translation with attention forms: BLEU against the budget, and cross-attention word by word."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from replication.plots.style import PALETTE

_TOP_K, _FULL = PALETTE[1], PALETTE[0]


def bleu_against_budget(axes: Axes, forms: pd.DataFrame, form: str = "Top-k") -> None:
    """BLEU of one form against its budget k, a point per seed and a line through the means, beside full attention's.

    ``forms`` are rows of ``replication.results.as_trained``. The band is the range of full attention's seeds.
    """
    full, points = forms[forms["form"] == "Full"]["bleu"], forms[forms["form"] == form]
    axes.axhspan(full.min(), full.max(), color=_FULL, alpha=0.2, linewidth=0)
    axes.axhline(full.mean(), color=_FULL, linestyle="--", linewidth=1.2, label=f"Full (seeds: {len(full)})")
    axes.scatter(points["budget"], points["bleu"], color=_TOP_K, s=12, alpha=0.6, linewidths=0)
    means = points.groupby("budget")["bleu"].mean()
    axes.plot(means.index, means, "o-", color=_TOP_K, linewidth=1.4, markersize=5, label=f"{form}, mean over seeds")
    axes.set_xscale("log", base=2)
    axes.set_xticks(means.index, [f"{budget:.0f}" for budget in means.index])
    axes.minorticks_off()
    axes.set(xlabel="attended positions k", ylabel="BLEU")


def cross_attention_maps(
    maps: dict[tuple[str, str], np.ndarray], source: Sequence[str], target: Sequence[str]
) -> Figure:
    """Weights ``[T, S]`` by (row of panels, column of panels): target words down, source words across."""
    rows, columns = (list(dict.fromkeys(names)) for names in zip(*maps, strict=True))
    size = (0.26 * len(source) * len(columns) + 2, 0.26 * len(target) * len(rows) + 2)
    figure, grid = plt.subplots(
        len(rows), len(columns), figsize=size, sharex=True, sharey=True, layout="constrained", squeeze=False
    )
    for (row, column), weights in maps.items():
        axes = grid[rows.index(row), columns.index(column)]
        image = axes.imshow(np.ma.masked_equal(weights, 0), cmap="Blues", vmin=0, vmax=1, interpolation="none")
        axes.set_title(f"{column}: {row}", fontsize=9)
        axes.set_xticks(range(len(source)), source, rotation=90, fontsize=8)
        axes.set_yticks(range(len(target)), target, fontsize=8)
        axes.tick_params(length=0)
        for spine in axes.spines.values():
            spine.set_visible(True)
    figure.colorbar(image, ax=grid, shrink=0.5, label="attention weight, mean over heads")
    return figure
