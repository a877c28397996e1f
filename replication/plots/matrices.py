"""Attention as matrices, queries down and keys across: masks, graphs and weights."""

from collections.abc import Sequence
from textwrap import fill

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap

_LEARNED, _GOLD, _POSITION = "#f0c239", "#c0392b", "#4c9a6a"


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
    import seaborn as sns

    sns.heatmap(
        shares * 100, ax=axes, cmap="Blues", vmin=0, vmax=100, annot=True, fmt=".0f", annot_kws={"fontsize": 6},
        linewidths=0.3, cbar=False,
    )  # fmt: skip
    axes.set(title=title, xlabel="cluster", ylabel="")
    axes.tick_params(axis="y", rotation=0)
