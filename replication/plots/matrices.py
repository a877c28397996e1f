"""Attention matrices, queries down and keys across: masks, graphs and weights."""

from collections.abc import Mapping, Sequence
from textwrap import fill

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from replication.plots.cells import as_matrix, fill_cells, name_cells, shade_cells
from replication.plots.style import PAGE, TEXT

_MASK, LEARNED, POSITION, _GOLD = "#2b4c7e", "#f0c239", "#4c9a6a", "#c0392b"


def draw_mask(axes: Axes, mask: np.ndarray, title: str) -> None:
    """Draw a boolean mask ``[Q, K]`` with allowed pairs dark."""
    as_matrix(axes, *mask.shape)
    fill_cells(axes, mask, _MASK)
    axes.set_title(f"{fill(title, 15)}\n{1 - mask.mean():.0%} sparse", fontsize=6.5)


def draw_graph(
    axes: Axes, learned: np.ndarray, position: np.ndarray, gold: np.ndarray, words: Sequence[str] | None = None
) -> None:
    """Draw a predicted graph ``[Q, K]``: position pairs green, learned pairs yellow, gold edges starred (Figs. 1c, 3)."""
    as_matrix(axes, *gold.shape)
    fill_cells(axes, learned & ~position, LEARNED)
    fill_cells(axes, position, POSITION)
    row, column = gold.nonzero()
    axes.scatter(column, row, marker="*", s=9, color="black", linewidths=0)
    if words is not None:
        name_cells(axes, words, words)


def draw_weights(
    axes: Axes, weights: np.ndarray, gold: np.ndarray, words: Sequence[str] | None = None
) -> ScalarMappable:
    """Draw attention weights ``[Q, K]`` with gold edges outlined, and return the colour mapping for a colour bar."""
    as_matrix(axes, *gold.shape)
    shades = shade_cells(axes, np.where(weights > 0, weights, np.nan), "Blues", (0, 1))
    row, column = gold.nonzero()
    axes.scatter(column, row, marker="s", s=8, facecolors="none", edgecolors=_GOLD, linewidths=0.4)
    if words is not None:
        name_cells(axes, words, words)
    return shades


def predicted_maps(panels: Mapping[str, Sequence[np.ndarray]], words: Sequence[str]) -> Figure:
    """Draw a row per head: the predicted graph, and the weights under it (Figs. 3, 11, 12).

    Parameters
    ----------
    panels : mapping of str to sequence of array ``[Q, K]``
        By title: learned pairs, position pairs, gold edges and weights.
    words : sequence of str
        Labels of queries and keys.
    """
    size = (TEXT, min(PAGE, 2.9 * len(panels) + 0.7))
    figure, grid = plt.subplots(len(panels), 2, figsize=size, sharex=True, sharey=True, squeeze=False)
    for (left, right), (title, (learned, position, gold, weights)) in zip(grid, panels.items(), strict=True):
        draw_graph(left, learned, position, gold, words)
        shades = draw_weights(right, weights, gold, words)
        left.set_title(title, fontsize=7)
        right.set_title("entmax weights under the predicted graph", fontsize=7)
    figure.colorbar(shades, ax=grid, shrink=0.5, aspect=30, label="entmax weight")
    graph_key(figure)
    return figure


def graph_key(figure: Figure, position: bool = True, weights: bool = True, columns: int = 4) -> None:
    """Draw the legend of :func:`draw_graph` and :func:`draw_weights` below the figure."""
    of_graph = [
        Patch(color=LEARNED, label="predicted, learned"),
        *([Patch(color=POSITION, label="predicted, by position")] if position else []),
        Line2D([], [], linestyle="", marker="*", color="black", label="gold edge"),
    ]
    mark = {"linestyle": "", "marker": "s", "markerfacecolor": "none", "markeredgecolor": _GOLD}
    of_weights = [Line2D([], [], label="gold edge, over its weight", **mark)]
    handles = [*of_graph, *(of_weights if weights else [])]
    figure.legend(handles=handles, loc="outside lower center", ncol=columns)


def draw_token_graph(
    axes: Axes, words: Sequence[str], edges: np.ndarray, weights: np.ndarray, marked: Sequence[bool]
) -> None:
    """Draw a bipartite graph: queries above, keys below, and a line per edge ``[Q, K]``, darker for larger weights (Fig. 5).

    ``marked`` words and the edges between them are coloured.
    """
    for row, column in zip(*edges.nonzero(), strict=True):
        both = marked[row] and marked[column]
        axes.plot([row, column], [1, 0], color=_GOLD if both else "0.55", linewidth=1.4 if both else 0.5,
                  alpha=0.25 + 0.75 * float(weights[row, column]))  # fmt: skip
    for position, word in enumerate(words):
        style = {"fontsize": 7, "ha": "center", "color": _GOLD if marked[position] else "black", "rotation": 90}
        axes.text(position, 1.04, word, va="bottom", **style)
        axes.text(position, -0.04, word, va="top", **style)
    axes.set(xlim=(-0.6, len(words) - 0.4), ylim=(-0.42, 1.42))
    axes.axis("off")


def share_map(axes: Axes, shares: pd.DataFrame, counts: pd.Series, title: str) -> None:
    """Draw the share of each tag (row) in each cluster (column), in percent; labels give the tag's number of tokens."""
    axes.set_title(title)
    shade_cells(axes, 100 * shares.to_numpy(), "Blues", (0, 100))
    rows, columns = shares.shape
    for row in range(rows):
        for column in range(columns):
            share = 100 * shares.iat[row, column]
            if np.isfinite(share):
                color = "white" if share > 60 else ".15"
                axes.text(column, row, f"{share:.0f}", ha="center", va="center", fontsize=6.5, color=color)
    axes.set(xlim=(-0.5, columns - 0.5), ylim=(rows - 0.5, -0.5), xlabel="cluster")
    axes.set_xticks(range(columns), shares.columns)
    axes.set_yticks(range(rows), [f"{tag} ({counts[tag]:,})" for tag in shares.index])
    axes.tick_params(length=0)
