"""Selecting keys by score: one query's weights before and after, the steps between, and the forms of attention."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from replication.plots.cells import as_matrix, fill_cells, frame_row, name_cells, shade_cells
from replication.plots.style import BLUE, TEXT, VERMILLION

_FULL, _SELECTED = BLUE, VERMILLION
# From a tone that white paper does not swallow, so that the lowest score of a kept pair is seen.
_SCORES = LinearSegmentedColormap.from_list("scores", plt.get_cmap("YlGnBu")(np.linspace(0.18, 1, 256)))


def selected_keys(full: np.ndarray, selected: np.ndarray, words: Sequence[str], query: int, elsewhere: str) -> Figure:
    """One query's weights over its keys, by full softmax above and by selection below, with lines to what is selected.

    ``full`` and ``selected`` hold a weight per word and, last, the sum over all keys that are not shown, called ``elsewhere``,
    which has a panel and a scale of its own.
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
    """Punctuation in quotation marks: a comma standing upright beside an axis is taken for a speck."""
    return [word if any(map(str.isalnum, word)) else f"“{word}”" for word in words]


def draw_values(
    axes: Axes, values: np.ndarray, limits: tuple[float, float], words: Sequence[str], row: int, title: str
) -> ScalarMappable:
    """Scores or weights ``[Q, K]``, white where they are NaN, with a row framed; weights are those that begin at 0.

    What comes back is for a colour bar.
    """
    _frame(axes, words, row, title)
    return shade_cells(axes, values, "Blues" if limits[0] == 0 else _SCORES, limits)


def draw_selected(axes: Axes, kept: np.ndarray, words: Sequence[str], row: int, title: str) -> None:
    """A selection ``Bool[Q, K]`` with a row framed."""
    _frame(axes, words, row, title)
    fill_cells(axes, kept, "0.25")


def _frame(axes: Axes, words: Sequence[str], row: int, title: str) -> None:
    as_matrix(axes, len(words), len(words))
    name_cells(axes, _visible(words), _visible(words), size=6)
    axes.set_title(title)
    frame_row(axes, row, len(words), _SELECTED)


def draw_threshold(axes: Axes, scores: np.ndarray, count: int, title: str) -> None:
    """One row's scores ``[K]`` from the largest on: those from the threshold up, which is the ``count``-th, in orange."""
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
    """Matrices of attention forms in groups: a pair that a form keeps is as dark as its score ``[n, n]``.

    ``kept``: by group and form, Bool ``[n, n]``. What no form of a group keeps is grey. Titles say how many keys a row
    keeps, on average.
    """
    lines = -(-max(map(len, kept.values())) // columns)
    figure = plt.figure(figsize=(TEXT, lines * (TEXT / (len(kept) * columns) + 0.35) + 0.9))
    for part, (group, forms) in zip(figure.subfigures(1, len(kept), squeeze=False)[0], kept.items(), strict=True):
        part.suptitle(group)
        grid = part.subplots(lines, columns, squeeze=False)
        never = ~np.any([*forms.values()], axis=0)  # the future, where the group has one
        for axes in grid.flat[len(forms) :]:
            axes.axis("off")
        for axes, (name, mask) in zip(grid.flat, forms.items(), strict=False):
            as_matrix(axes, *mask.shape)
            fill_cells(axes, never, "0.9")
            shade = shade_cells(axes, np.where(mask, scores, np.nan), _SCORES, (scores.min(), scores.max()))
            axes.set_title(f"{name}\n{mask.sum(-1).mean():.1f} keys per row", fontsize=6.5)
        bar = part.colorbar(shade, ax=grid, orientation="horizontal", shrink=0.5, aspect=25)
        bar.set_label("score")
    return figure
