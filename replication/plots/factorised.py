"""Factorised patterns: the two parts of a head in two colours, how heads combine, and what two steps reach."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from replication.plots.style import PALETTE

_FIRST, _SECOND, _FUTURE = PALETTE[0], PALETTE[1], "0.9"
_NEVER, _TWO, _ONE = PALETTE[3], "#a9c9e8", "#2b4c7e"


def draw_parts(axes: Axes, first: np.ndarray, second: np.ndarray, row: int | None = None) -> None:
    """Both parts ``[n, n]``: cells of the first filled, those of the second marked by a square within; the future is grey.

    With a ``row``, it is framed, and the positions are numbered on a grid.
    """
    count = len(first)
    picture = np.where(first, 2, np.triu(np.ones((count, count), dtype=int), 1))
    axes.imshow(picture, cmap=ListedColormap(["white", _FUTURE, _FIRST]), vmin=0, vmax=2, interpolation="none")
    for i, j in zip(*second.nonzero(), strict=True):
        axes.add_patch(Rectangle((j - 0.29, i - 0.29), 0.58, 0.58, facecolor=_SECOND, edgecolor="none"))
    for spine in axes.spines.values():
        spine.set_visible(True)
    if row is None:
        axes.set(xticks=[], yticks=[])
        return
    axes.set_xticks(range(count), range(count), fontsize=7)
    axes.set_yticks(range(count), range(count), fontsize=7)
    axes.tick_params(length=0)
    axes.set(xlabel="key j", ylabel="query i")
    for edge in range(1, count):
        axes.axhline(edge - 0.5, color="0.75", linewidth=0.4)
        axes.axvline(edge - 0.5, color="0.75", linewidth=0.4)
    frame = {"fill": False, "edgecolor": "black", "linewidth": 1.8, "clip_on": False, "zorder": 3}
    axes.add_patch(Rectangle((-0.5, row - 0.5), count, 1, **frame))


def factorised_heads(first: np.ndarray, second: np.ndarray, row: int, ways: Mapping[str, np.ndarray]) -> Figure:
    """Both parts ``[n, n]`` large, with a row framed; beside them what each way to combine heads makes of them.

    ``ways``: by name, Bool ``[L, H, n, n]``: for each layer and head the first part, the second, or both.
    """
    layers, heads = next(iter(ways.values())).shape[:2]
    widths = [4.7, 1.3 * layers * heads]
    figure = plt.figure(figsize=(sum(widths), 4.7), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=widths)
    draw_parts(left.subplots(), first, second, row)
    grid = right.subplots(len(ways), layers * heads, squeeze=False)
    for line, (name, masks) in zip(grid, ways.items(), strict=True):
        line[0].set_ylabel(name, fontsize=9)
        for axes, mask in zip(line, masks.reshape(-1, *first.shape), strict=True):
            # A pair may lie in both parts; a head that has one of them is drawn in the colour of that one alone.
            draw_parts(axes, *(part & (mask | ~part).all() for part in (first, second)))
    for number, axes in enumerate(grid[0]):
        axes.set_title(f"layer {number // heads + 1}, head {number % heads + 1}", fontsize=8)
    handles = [
        Patch(color=_FIRST, label="first part, $A^{(1)}$"),
        Patch(color=_SECOND, label="second part, $A^{(2)}$"),
        Patch(color=_FUTURE, label="future"),
        Patch(fill=False, edgecolor="black", linewidth=1.8, label=f"i = {row}"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncol=4, fontsize=8)
    return figure


def draw_reach(axes: Axes, attended: np.ndarray, reached: np.ndarray, title: str) -> None:
    """Pairs ``[n, n]`` that are reached: attended to directly, or only in two steps; and those that are not."""
    past = np.tril(np.ones_like(reached))
    picture = np.where(~past, 0, np.where(~reached, 1, np.where(attended, 3, 2)))
    colors = ListedColormap([_FUTURE, _NEVER, _TWO, _ONE])
    axes.imshow(picture, cmap=colors, vmin=0, vmax=3, interpolation="none")
    axes.set(xticks=[], yticks=[], xlabel="key", ylabel="query")
    axes.set_title(title, fontsize=9)
    for spine in axes.spines.values():
        spine.set_visible(True)


def reach_legend(figure: Figure) -> None:
    """What the colours of :func:`draw_reach` mean, under the figure."""
    named = {"attended to directly": _ONE, "in two steps only": _TWO, "not reached this way": _NEVER, "future": _FUTURE}
    handles = [Patch(color=color, label=label) for label, color in named.items()]
    figure.legend(handles=handles, loc="outside lower left", ncol=4, fontsize=8)


def reach_growth(axes: Axes, growth: pd.DataFrame, exponents: pd.DataFrame) -> None:
    """Pairs attended to, and pairs reached in two steps, against n.

    ``growth``: rows with ``pattern``, ``n``, ``attended`` and ``reached``; ``exponents``: of the fitted powers, by pattern.
    """
    # Curves that coincide stay visible: a hollow marker around a smaller one.
    styles = zip(PALETTE, "osD", (8, 4, 4), ("none", "full", "full"), strict=False)
    for (name, curve), (color, marker, size, fill) in zip(growth.groupby("pattern", sort=False), styles, strict=False):
        for kind, line in (("attended", "-"), ("reached", "--")):
            label = f"{name}, {kind}: $n^{{{exponents.loc[name, kind]:.2f}}}$"
            style = {"color": color, "marker": marker, "markersize": size, "fillstyle": fill, "linewidth": 1.2}
            axes.plot(curve.n, curve[kind], line, label=label, **style)
    lengths = sorted(growth.n.unique())
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(lengths, [str(n) for n in lengths])
    axes.minorticks_off()
    axes.set(xlabel="positions n, stride $\\sqrt{n}$", ylabel="pairs")
    axes.set_title("pairs attended to, and reached in two steps", fontsize=9)
    axes.legend(fontsize=7, loc="upper left", handlelength=3)
