"""Attention over an image, word by word."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from replication.plots.cells import as_matrix, fill_cells
from replication.plots.style import TEXT


def attention_over_picture(picture: np.ndarray, maps: Mapping[str, np.ndarray], words: Sequence[str]) -> Figure:
    """A row for each model and a column for each word: what of the picture shows is what the word attends to.

    Parameters
    ----------
    picture : uint8 ``[S, S, 3]``
    maps : by model, weights ``[words, R]`` on its square regions, line by line
    """
    most = max(float(weights.max()) for weights in maps.values())
    height = len(maps) * (TEXT - 0.5) / len(words) + 0.75
    figure, grid = plt.subplots(len(maps), len(words), figsize=(TEXT, height), squeeze=False)
    for line, (name, weights) in zip(grid, maps.items(), strict=True):
        line[0].set_ylabel(name)
        for axes, own in zip(line, weights, strict=True):
            _paint(axes, picture)
            _veil(axes, own / most, len(picture))
    for axes, word in zip(grid[0], words, strict=True):
        axes.set_title(word, fontsize=7)
    figure.supxlabel(f"the more of a region shows, the more attention it gets: all of it at a weight of {most:.2f}",
                     fontsize=7)  # fmt: skip
    return figure


def _paint(axes: plt.Axes, picture: np.ndarray) -> None:
    as_matrix(axes, *picture.shape[:2])
    for colour in np.unique(picture.reshape(-1, 3), axis=0):
        fill_cells(axes, (picture == colour).all(axis=-1), to_hex(colour / 255))


def _veil(axes: plt.Axes, shares: np.ndarray, side: int) -> None:
    count = round(len(shares) ** 0.5)
    size = side / count
    for region, share in enumerate(shares):
        row, column = divmod(region, count)
        corner = (column * size - 0.5, row * size - 0.5)
        axes.add_patch(Rectangle(corner, size, size, facecolor="white", alpha=1 - float(share), linewidth=0))
