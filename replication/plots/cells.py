"""Matrices drawn cell by cell as vector shapes, queries down and keys across, so that they are sharp at any size."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, Normalize, to_hex
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path

# Line width that makes cells overlap slightly: without it, viewers show thin white seams.
_SEAM = 0.15
# Number of distinguishable shades. One shape per shade keeps files small, and colour bars vector shapes.
_SHADES = 40


def as_matrix(axes: Axes, rows: int, columns: int) -> None:
    """Set up axes for square cells: origin at the top, a frame, no ticks."""
    axes.set(xlim=(-0.5, columns - 0.5), ylim=(rows - 0.5, -0.5), aspect="equal", xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set_visible(True)


def fill_cells(axes: Axes, cells: np.ndarray, color: str, label: str | None = None) -> None:
    """Fill the True cells of ``[Q, K]``, one rectangle per run of adjacent cells in a row."""
    edges = np.diff(np.pad(cells, ((0, 0), (1, 1))).astype(np.int8))
    (row, left), right = np.nonzero(edges == 1), np.nonzero(edges == -1)[1]
    if len(row) == 0:
        return
    corners = np.stack([left, row, right, row, right, row + 1, left, row + 1], axis=-1).reshape(-1, 4, 2) - 0.5
    shape = Path.make_compound_path_from_polys(corners)
    axes.add_patch(PathPatch(shape, facecolor=color, edgecolor=color, linewidth=_SEAM, label=label))


def shade_cells(axes: Axes, values: np.ndarray, colors: str | Colormap, limits: tuple[float, float]) -> ScalarMappable:
    """Shade cells ``[Q, K]`` by value, in steps; NaN stays white. Return the colour mapping for a colour bar."""
    shades = ScalarMappable(Normalize(*limits), plt.get_cmap(colors).resampled(_SHADES))
    steps = np.clip(shades.norm(np.ma.masked_invalid(values)) * _SHADES, 0, _SHADES - 1).filled(-1).astype(int)
    for step in np.unique(steps[steps >= 0]):
        fill_cells(axes, steps == step, to_hex(shades.cmap(int(step))))
    return shades


def name_cells(axes: Axes, across: Sequence[str], down: Sequence[str], size: float = 7) -> None:
    """Label the columns with rotated words, and the rows."""
    axes.set_xticks(range(len(across)), across, rotation=90, fontsize=size)
    axes.set_yticks(range(len(down)), down, fontsize=size)
    axes.tick_params(length=0)


def frame_row(axes: Axes, row: int, columns: int, color: str) -> None:
    """Draw a frame around one row."""
    frame = {"fill": False, "edgecolor": color, "linewidth": 1.4, "clip_on": False, "zorder": 3}
    axes.add_patch(Rectangle((-0.5, row - 0.5), columns, 1, **frame))
