"""Factorised patterns: their two parts, ways to combine heads, and the pairs reached in two steps."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from replication.plots.cells import as_matrix, fill_cells, frame_row, name_cells
from replication.plots.style import BLUE, GREEN, PALETTE, TEXT, VERMILLION, powers_of_ten

_FIRST, _SECOND, _FUTURE = BLUE, VERMILLION, "0.9"
_NEVER, _TWO, _ONE = VERMILLION, "#a9c9e8", "#2b4c7e"


def draw_parts(axes: Axes, first: np.ndarray, second: np.ndarray, row: int | None = None) -> None:
    """Draw both parts ``[n, n]`` of a pattern: the first as filled cells, the second as smaller squares, the future in grey.

    If ``row`` is given, that row is framed, and the positions are numbered on a grid.
    """
    count = len(first)
    as_matrix(axes, count, count)
    fill_cells(axes, ~first & np.triu(np.ones((count, count), dtype=bool), 1), _FUTURE)
    fill_cells(axes, first, _FIRST)
    for i, j in zip(*second.nonzero(), strict=True):
        axes.add_patch(Rectangle((j - 0.29, i - 0.29), 0.58, 0.58, facecolor=_SECOND, edgecolor="none"))
    if row is None:
        return
    name_cells(axes, range(count), range(count), size=6.5)
    axes.tick_params(axis="x", rotation=0)
    axes.set(xlabel="key j", ylabel="query i")
    for edge in range(1, count):
        axes.axhline(edge - 0.5, color="0.75", linewidth=0.3)
        axes.axvline(edge - 0.5, color="0.75", linewidth=0.3)
    frame_row(axes, row, count, "black")


def factorised_heads(first: np.ndarray, second: np.ndarray, row: int, ways: Mapping[str, np.ndarray]) -> Figure:
    """Draw both parts of a pattern, and next to them the masks of each way to combine heads.

    Parameters
    ----------
    first, second : array ``[n, n]`` of bool
        The parts.
    row : int
        Row to frame in the large panel.
    ways : mapping of str to array ``[L, H, n, n]`` of bool
        By name, the mask of each layer and head: the first part, the second, or both.
    """
    layers, heads = next(iter(ways.values())).shape[:2]
    figure = plt.figure(figsize=(TEXT, 2.9))
    left, right = figure.subfigures(1, 2, width_ratios=[1, 1.3])
    draw_parts(left.subplots(), first, second, row)
    grid = right.subplots(len(ways), layers * heads, squeeze=False)
    for line, (name, masks) in zip(grid, ways.items(), strict=True):
        line[0].set_ylabel(name)
        for axes, mask in zip(line, masks.reshape(-1, *first.shape), strict=True):
            # Pairs may lie in both parts. A part is drawn only if the head's mask contains all of it.
            draw_parts(axes, *(part & (mask | ~part).all() for part in (first, second)))
    for number, axes in enumerate(grid[0]):
        axes.set_title(f"layer {number // heads + 1}\nhead {number % heads + 1}", fontsize=7)
    handles = [
        Patch(color=_FIRST, label="first part, A⁽¹⁾"),
        Patch(color=_SECOND, label="second part, A⁽²⁾"),
        Patch(color=_FUTURE, label="future"),
        Patch(fill=False, edgecolor="black", linewidth=1.4, label=f"i = {row}"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncol=4)
    return figure


def draw_reach(axes: Axes, attended: np.ndarray, reached: np.ndarray, title: str) -> None:
    """Draw which pairs ``[n, n]`` are attended to directly, reached only in two steps, or not reached."""
    past = np.tril(np.ones_like(reached))
    as_matrix(axes, *reached.shape)
    fill_cells(axes, ~past, _FUTURE)
    fill_cells(axes, past & ~reached, _NEVER)
    fill_cells(axes, past & reached & ~attended, _TWO)
    fill_cells(axes, past & reached & attended, _ONE)
    axes.set(xlabel="key", ylabel="query")
    axes.set_title(title)


def reach_key(figure: Figure) -> None:
    """Draw the legend of :func:`draw_reach` below the figure."""
    named = {"attended to directly": _ONE, "in two steps only": _TWO, "not reached this way": _NEVER, "future": _FUTURE}
    handles = [Patch(color=color, label=label) for label, color in named.items()]
    figure.legend(handles=handles, loc="outside lower center", ncol=4)


def reach_growth(axes: Axes, growth: pd.DataFrame, exponents: pd.DataFrame) -> None:
    """Draw the number of pairs attended to, and of pairs reached in two steps, by n.

    Parameters
    ----------
    axes : Axes
        Panel to draw into.
    growth : DataFrame
        Rows with ``pattern``, ``n``, ``attended`` and ``reached``.
    exponents : DataFrame
        Exponents of the fitted powers, by pattern.
    """
    # Hollow markers around smaller ones keep coinciding curves visible.
    styles = zip((BLUE, VERMILLION, GREEN), "osD", (7, 3.5, 3.5), ("none", "full", "full"), strict=True)
    for (name, curve), (color, marker, size, fill) in zip(growth.groupby("pattern", sort=False), styles, strict=False):
        for kind, line in (("attended", "-"), ("reached", "--")):
            label = f"{name}, {kind}: n^{exponents.loc[name, kind]:.2f}"
            axes.plot(
                curve.n, curve[kind], line, label=label, color=color, marker=marker, markersize=size, fillstyle=fill
            )
    lengths = sorted(growth.n.unique())
    axes.set_xscale("log")
    axes.set_yscale("log")
    powers_of_ten(axes.yaxis)
    axes.set_xticks(lengths, [str(n) for n in lengths])
    axes.minorticks_off()
    axes.set(xlabel="positions n, stride √n", ylabel="pairs", title="pairs attended to, and reached in two steps")
    axes.legend(loc="upper left")


def draw_shares(axes: Axes, parts: pd.DataFrame) -> None:
    """Draw each head's share of attention on its row and on its column, and a cross for uniform attention.

    On the dotted line, both shares add up to 1.

    Parameters
    ----------
    axes : Axes
        Panel to draw into.
    parts : DataFrame
        Rows of :func:`replication.char_lm.evaluation.attention_in_parts`, of one kind of data.
    """
    layers = sorted(parts["layer"].unique())
    for layer, (color, marker) in zip(layers, zip(PALETTE, "osD^vPX*", strict=True), strict=False):
        rows = parts[parts["layer"] == layer]
        axes.plot(rows["row"], rows["column"], marker, color=color, markersize=4, alpha=0.8, label=f"layer {layer + 1}")
    uniform = parts[["uniform_row", "uniform_column"]].iloc[0]
    axes.plot(*uniform, "x", color="black", markersize=6, label="a head that attends to all alike")
    axes.plot([0, 1], [1, 0], ":", color="0.5", linewidth=0.8)
    axes.set(xlim=(0, 1.02), ylim=(0, 1.02), aspect="equal", xlabel="share on its row", ylabel="share on its column")
