"""Selection of keys by score: one query's weights before and after, the steps between, and the forms of attention."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from replication.plots.cells import as_matrix, fill_cells, frame_row, name_cells, shade_cells
from replication.plots.style import BLUE, TEXT, VERMILLION

_FULL, _SELECTED = BLUE, VERMILLION
# Starts at a visible tone, so that kept pairs with the lowest scores differ from the white background.
_SCORES = LinearSegmentedColormap.from_list("scores", plt.get_cmap("YlGnBu")(np.linspace(0.18, 1, 256)))


def selected_keys(full: np.ndarray, selected: np.ndarray, words: Sequence[str], query: int, elsewhere: str) -> Figure:
    """Draw one query's weights under full softmax and under selection, with lines to the selected keys.

    Parameters
    ----------
    full, selected : array ``[K + 1]``
        A weight per word, and last the sum over all keys that are not shown, which has its own panel and scale.
    words : sequence of str
        The keys shown.
    query : int
        Position of the query among the words.
    elsewhere : str
        Label of the keys that are not shown.
    """
    count, labels = len(words), _visible(words)
    figure, grid = plt.subplots(
        3, 2, figsize=(TEXT, 3.9), height_ratios=[0.55, 1, 1], width_ratios=[count, 2.2], sharex="col"
    )
    links = grid[0, 0]
    for key in selected[:-1].nonzero()[0]:
        links.plot([query, key], [1, 0], color=_SELECTED, linewidth=0.8 + 4 * selected[key])
    links.text(query, 1.05, labels[query], ha="center", va="bottom", weight="bold")
    for place, label in enumerate(labels):
        weight = "bold" if place == query else "normal"
        links.text(place, -0.1, label, ha="center", va="top", rotation=90, fontsize=7, weight=weight)
    links.set(ylim=(0, 1.02))
    links.axis("off")
    grid[0, 1].axis("off")
    highest = 1.1 * max(full[:-1].max(), selected[:-1].max())
    rows = zip(grid[1:], (full, selected), (_FULL, _SELECTED), strict=True)
    for ((keys, others), weights, color), name in zip(
        rows, ("softmax", f"top-{(selected > 0).sum()} softmax"), strict=True
    ):
        keys.bar(range(count), weights[:-1], width=0.75, color=color)
        keys.set(ylabel=name, ylim=(0, highest), xlim=(-0.7, count - 0.3))
        others.bar([0], weights[-1:], width=0.6, color="0.85", edgecolor="0.5", hatch="////")
        others.text(0, weights[-1] + 0.02, f"{weights[-1]:.2f}", ha="center", va="bottom", fontsize=7)
        others.set(ylim=(0, 1.18), xlim=(-0.6, 0.6), yticks=[0, 0.5, 1])
        for axes in (keys, others):
            axes.tick_params(axis="x", length=0, labelbottom=axes in grid[-1])
    grid[-1, 0].set_xticks(range(count), labels, rotation=90)
    grid[-1, 0].get_xticklabels()[query].set_weight("bold")
    grid[-1, 1].set_xticks([0], [elsewhere.replace(" ", "\n")])
    return figure


def _visible(words: Sequence[str]) -> list[str]:
    """Put punctuation in quotation marks, because a rotated comma beside an axis looks like a speck."""
    return [word if any(map(str.isalnum, word)) else f"“{word}”" for word in words]


def draw_values(
    axes: Axes, values: np.ndarray, limits: tuple[float, float], words: Sequence[str], row: int, title: str
) -> ScalarMappable:
    """Draw scores or weights ``[Q, K]`` with a framed row, and return the colour mapping for a colour bar.

    NaN stays white. Limits that begin at 0 select the colours of weights, others those of scores.
    """
    _frame(axes, words, row, title)
    return shade_cells(axes, values, "Blues" if limits[0] == 0 else _SCORES, limits)


def draw_selected(axes: Axes, kept: np.ndarray, words: Sequence[str], row: int, title: str) -> None:
    """Draw a selection ``Bool[Q, K]`` with a framed row."""
    _frame(axes, words, row, title)
    fill_cells(axes, kept, "0.25")


def _frame(axes: Axes, words: Sequence[str], row: int, title: str) -> None:
    as_matrix(axes, len(words), len(words))
    name_cells(axes, _visible(words), _visible(words), size=6)
    axes.set_title(title)
    frame_row(axes, row, len(words), _SELECTED)


def draw_threshold(axes: Axes, scores: np.ndarray, count: int, title: str) -> None:
    """Draw one row's scores ``[K]`` in decreasing order; those from the ``count``-th, the threshold, up are orange."""
    ordered = np.sort(scores[np.isfinite(scores)])[::-1]
    threshold = ordered[min(count, len(ordered)) - 1]
    colors = np.where(ordered >= threshold, _SELECTED, _FULL)
    axes.scatter(np.arange(1, len(ordered) + 1), ordered, s=6, c=colors, linewidths=0)
    axes.axhline(threshold, color="black", linestyle="--", linewidth=0.8)
    axes.text(len(ordered), threshold, f"tᵢ = {threshold:.2f}", ha="right", va="bottom")
    axes.set(xlabel="keys, the best first", ylabel="score")
    axes.set_box_aspect(1)
    axes.set_title(title)


def form_grid(scores: np.ndarray, kept: Mapping[str, Mapping[str, np.ndarray]], columns: int = 3) -> Figure:
    """Draw the matrices of attention forms in groups, with kept pairs shaded by their score.

    Pairs that no form of a group keeps are grey. Titles give the number of keys in the median
    row, because a few rows of some forms attend to everything. A line separates the groups.

    Parameters
    ----------
    scores : array ``[n, n]``
        Attention scores.
    kept : mapping of str to mapping of str to array ``[n, n]`` of bool
        By group and form, the kept pairs.
    columns : int
        Number of matrices side by side in a group.
    """
    lines = -(-max(map(len, kept.values())) // columns)
    figure = plt.figure(figsize=(TEXT, lines * (TEXT / (len(kept) * columns) + 0.35) + 0.9))
    for part, (group, forms) in zip(figure.subfigures(1, len(kept), squeeze=False)[0], kept.items(), strict=True):
        part.suptitle(group)
        grid = part.subplots(lines, columns, squeeze=False)
        never = ~np.any([*forms.values()], axis=0)  # the future in causal groups
        for axes in grid.flat[len(forms) :]:
            axes.axis("off")
        for axes, (name, mask) in zip(grid.flat, forms.items(), strict=False):
            as_matrix(axes, *mask.shape)
            fill_cells(axes, never, "0.9")
            shade = shade_cells(axes, np.where(mask, scores, np.nan), _SCORES, (scores.min(), scores.max()))
            axes.set_title(f"{name}\nmedian row: {np.median(mask.sum(-1)):g} keys", fontsize=6.5)
        bar = part.colorbar(shade, ax=grid, orientation="horizontal", shrink=0.5, aspect=25)
        bar.set_label("score")
    for part in range(1, len(kept)):
        place = part / len(kept)
        figure.add_artist(Line2D([place, place], [0.02, 0.98], color="0.6", linewidth=0.8))
    return figure
