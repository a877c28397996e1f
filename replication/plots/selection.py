"""Selecting keys by score: one query's weights before and after, the steps between, and the forms of attention."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, ListedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from replication.plots.style import PALETTE

_FULL, _SELECTED = PALETTE[0], PALETTE[1]
# From a tone that white paper does not swallow, so that the lowest score of a kept pair is seen.
_SCORES = LinearSegmentedColormap.from_list("scores", plt.get_cmap("YlGnBu")(np.linspace(0.18, 1, 256)))


def selected_keys(full: np.ndarray, selected: np.ndarray, words: Sequence[str], query: int, elsewhere: str) -> Figure:
    """One query's weights over its keys, by full softmax above and by selection below, with lines to what is selected.

    ``full`` and ``selected`` hold a weight per word and, last, the sum over all keys that are not shown, called ``elsewhere``.
    The bar of that sum ends where the panel does, with its value beside it.
    """
    count, labels = len(words), [*_visible(words), elsewhere]
    places = [*range(count), count + 1]
    figure, (links, above, below) = plt.subplots(
        3, 1, figsize=(0.2 * count + 1.6, 4.6), height_ratios=[0.5, 1, 1], sharex=True, layout="constrained"
    )
    for key in selected[:-1].nonzero()[0]:
        links.plot([query, key], [1, 0], color=_SELECTED, linewidth=0.8 + 4 * selected[key], solid_capstyle="round")
    links.text(query, 1.05, labels[query], ha="center", va="bottom", fontsize=9, weight="bold")
    for place, label in zip(places, labels, strict=True):
        weight = "bold" if place == query else "normal"
        links.text(place, -0.1, label, ha="center", va="top", rotation=90, fontsize=8, weight=weight)
    links.set(ylim=(0, 1.02))
    links.axis("off")
    highest = 1.1 * max(full[:-1].max(), selected[:-1].max())
    rows = ((above, full, _FULL, "softmax"), (below, selected, _SELECTED, f"top-{(selected > 0).sum()} softmax"))
    for axes, weights, color, name in rows:
        axes.bar(places[:-1], weights[:-1], width=0.75, color=color)
        axes.bar(
            places[-1:], np.minimum(weights[-1:], highest), width=0.75, color="0.85", edgecolor="0.5", hatch="////"
        )
        axes.text(count + 0.5, highest, f"{weights[-1]:.2f}", ha="right", va="top", fontsize=8, color="0.35")
        axes.set(ylabel=name, ylim=(0, highest), xlim=(-0.7, count + 1.7))
        axes.tick_params(axis="x", length=0, labelbottom=axes is below)
    below.set_xticks(places, labels, rotation=90, fontsize=8)
    below.get_xticklabels()[query].set_weight("bold")
    return figure


def _visible(words: Sequence[str]) -> list[str]:
    """Punctuation in quotation marks: a comma standing upright beside an axis is taken for a speck."""
    return [word if any(map(str.isalnum, word)) else f"“{word}”" for word in words]


def draw_values(
    axes: Axes, values: np.ndarray, limits: tuple[float, float], words: Sequence[str], row: int, title: str
) -> None:
    """Scores or weights ``[Q, K]``, white where they are NaN, with a row framed; weights are those that begin at 0."""
    colors = "Blues" if limits[0] == 0 else _SCORES
    axes.imshow(values, cmap=colors, vmin=limits[0], vmax=limits[1], interpolation="none")
    _frame(axes, words, row, title)


def draw_selected(axes: Axes, kept: np.ndarray, words: Sequence[str], row: int, title: str) -> None:
    """A selection ``Bool[Q, K]`` with a row framed."""
    axes.imshow(kept, cmap=ListedColormap(["white", "0.25"]), vmin=0, vmax=1, interpolation="none")
    _frame(axes, words, row, title)


def _frame(axes: Axes, words: Sequence[str], row: int, title: str) -> None:
    count = len(words)
    axes.set_xticks(range(count), _visible(words), rotation=90, fontsize=7)
    axes.set_yticks(range(count), _visible(words), fontsize=7)
    axes.tick_params(length=0)
    axes.set_title(title, fontsize=9)
    for spine in axes.spines.values():
        spine.set_visible(True)
    frame = {"fill": False, "edgecolor": _SELECTED, "linewidth": 1.8, "clip_on": False, "zorder": 3}
    axes.add_patch(Rectangle((-0.5, row - 0.5), count, 1, **frame))


def draw_threshold(axes: Axes, scores: np.ndarray, count: int, title: str) -> None:
    """One row's scores ``[K]`` from the largest on: those from the threshold up, which is the ``count``-th, in orange."""
    ordered = np.sort(scores[np.isfinite(scores)])[::-1]
    threshold = ordered[min(count, len(ordered)) - 1]
    colors = np.where(ordered[:, None] >= threshold, [_SELECTED], [_FULL])
    axes.scatter(np.arange(1, len(ordered) + 1), ordered, s=9, c=colors, linewidths=0)
    axes.axhline(threshold, color="black", linestyle="--", linewidth=0.9)
    axes.text(len(ordered), threshold, f"$t_i$ = {threshold:.2f}", ha="right", va="bottom", fontsize=8)
    axes.set(xlabel="keys, the best first", ylabel="score")
    axes.set_box_aspect(1)
    axes.set_title(title, fontsize=9)


def form_grid(scores: np.ndarray, kept: Mapping[str, Mapping[str, np.ndarray]], columns: int = 3) -> Figure:
    """Matrices of attention forms in groups: a pair that a form keeps is as dark as its score ``[n, n]``.

    ``kept``: by group and form, Bool ``[n, n]``. What no form of a group keeps is grey. Titles say how many keys a row
    keeps, on average.
    """
    lines = -(-max(map(len, kept.values())) // columns)
    heights = [lines * 1.85 + 0.3, 0.55]
    figure = plt.figure(figsize=(len(kept) * (columns * 1.6 + 0.2), sum(heights)), layout="constrained")
    above, below = figure.subfigures(2, 1, height_ratios=heights)
    shade = ScalarMappable(Normalize(scores.min(), scores.max()), _SCORES)
    for part, (group, forms) in zip(
        above.subfigures(1, len(kept), squeeze=False, wspace=0.06)[0], kept.items(), strict=True
    ):
        part.suptitle(group, fontsize=10)
        grid = part.subplots(lines, columns, squeeze=False)
        never = ~np.any([*forms.values()], axis=0)  # the future, where the group has one
        for axes, (name, mask) in zip(grid.flat, forms.items(), strict=False):
            axes.imshow(never, cmap=ListedColormap(["white", "0.9"]), vmin=0, vmax=1, interpolation="none")
            axes.imshow(np.ma.masked_array(scores, ~mask), cmap=shade.cmap, norm=shade.norm, interpolation="none")
            axes.set(xticks=[], yticks=[])
            axes.set_title(f"{name}\n{mask.sum(-1).mean():.1f} keys per row", fontsize=8)
            for spine in axes.spines.values():
                spine.set_visible(True)
    figure.colorbar(shade, cax=below.add_axes((0.35, 0.7, 0.3, 0.2)), orientation="horizontal", label="score")
    return figure
