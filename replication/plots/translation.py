"""Translation with attention forms: BLEU by budget, and cross-attention between words."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from replication.plots.cells import as_matrix, name_cells, shade_cells
from replication.plots.style import BLUE, PAGE, TEXT, VERMILLION

# Starts at a visible tone, so that small weights differ from those that are exactly zero, which stay white.
_WEIGHTS = LinearSegmentedColormap.from_list("weights", plt.get_cmap("Blues")(np.linspace(0.15, 1, 256)))


def bleu_against_budget(axes: Axes, forms: pd.DataFrame, form: str = "Top-k") -> None:
    """Draw a form's BLEU by budget k, a point per seed and a line through the means, and full attention's BLEU.

    Parameters
    ----------
    axes : Axes
        Panel to draw into.
    forms : DataFrame
        Rows of :func:`replication.results.points.as_trained`.
    form : str
        Attention form to draw. The band is the range of full attention's seeds.
    """
    full, points = forms[forms["form"] == "Full"]["bleu"], forms[forms["form"] == form]
    axes.axhspan(full.min(), full.max(), color=BLUE, alpha=0.2, linewidth=0)
    label = f"Full, mean and range of {len(full)} seeds" if len(full) > 1 else "Full"
    axes.axhline(full.mean(), color=BLUE, linestyle="--", label=label)
    axes.scatter(points["budget"], points["bleu"], color=VERMILLION, s=12, alpha=0.6, linewidths=0)
    means, spread = (points.groupby("budget")["bleu"].agg(how) for how in ("mean", "std"))
    seeds = points["seed"].nunique()
    label = f"{form}, mean and s.d. over seeds" if seeds > 1 else form
    axes.errorbar(means.index, means, spread.fillna(0.0), fmt="o-", color=VERMILLION, capsize=2, label=label)
    axes.set_xscale("log", base=2)
    axes.set_xticks(means.index, [f"{budget:.0f}" for budget in means.index])
    axes.minorticks_off()
    axes.set(xlabel="attended positions k", ylabel=f"BLEU{_of_a_perfect_translation(forms)}")


def _of_a_perfect_translation(forms: pd.DataFrame) -> str:
    """Return a remark if a perfect translation has less than 100 BLEU; tables of earlier versions do not say."""
    lowest = forms["ceiling"].min() if "ceiling" in forms else 100
    return f" (at most {lowest:.1f})" if lowest < 99.95 else ""


def cross_attention_maps(
    maps: dict[tuple[str, str], np.ndarray], source: Sequence[str], target: Sequence[str]
) -> Figure:
    """Draw cross-attention weights in a grid of panels, target words down and source words across.

    Parameters
    ----------
    maps : dict of (str, str) to array ``[T, S]``
        Weights by the panel's row and column.
    source, target : sequence of str
        Words of the source and target sentences.
    """
    rows, columns = (list(dict.fromkeys(names)) for names in zip(*maps, strict=True))
    cell = (TEXT - 1.4) / (len(source) * len(columns))
    height = min(PAGE, len(rows) * (cell * len(target) + 0.2) + 0.8)
    figure, grid = plt.subplots(
        len(rows), len(columns), figsize=(TEXT, height), sharex=True, sharey=True, squeeze=False
    )
    for (row, column), weights in maps.items():
        axes = grid[rows.index(row), columns.index(column)]
        as_matrix(axes, *weights.shape)
        shades = shade_cells(axes, np.where(weights > 0, weights, np.nan), _WEIGHTS, (0, 1))
        axes.set_title(f"{column}: {row}")
        name_cells(axes, source, target, size=6.5)
    figure.supxlabel("source")
    figure.supylabel("target")
    figure.colorbar(
        shades, ax=grid, shrink=0.6, aspect=30, label="attention weight, mean over heads (white: exactly 0)"
    )
    return figure
