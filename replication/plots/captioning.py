"""Attention over an image, word by word."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from replication.plots.cells import as_matrix, fill_cells
from replication.plots.style import TEXT

# Number of distinguishable shades of a colour. Each is drawn as a shape of its own.
_STEPS = 16


def attention_over_picture(picture: np.ndarray, maps: Mapping[str, np.ndarray], words: Sequence[str]) -> Figure:
    """Draw the picture once per model and word, faded in proportion to the word's attention weights.

    Parameters
    ----------
    picture : array ``[S, S, 3]`` of uint8
        The image.
    maps : mapping of str to array ``[words, R]``
        By model, weights on the square regions, in row-major order. Regions of weight 0 are white.
    words : sequence of str
        Words of the caption.
    """
    most = max(float(weights.max()) for weights in maps.values())
    size = (TEXT - 0.4) / (len(words) + 1)
    figure, grid = plt.subplots(
        len(maps), len(words) + 1, figsize=(TEXT, len(maps) * size + 0.65), squeeze=False, gridspec_kw={"hspace": 0.0}
    )
    for line, (name, weights) in zip(grid, maps.items(), strict=True):
        line[0].set_ylabel(name)
        for axes, shown in zip(line, [np.full_like(weights[0], most), *weights], strict=True):
            _paint(axes, _faded(picture, shown / most))
    for axes, word in zip(grid[0], ["picture", *words], strict=True):
        axes.set_title(word, fontsize=7, fontstyle="normal" if word != "picture" else "italic")
    figure.supxlabel(f"colours are full at a weight of {most:.2f}, and white at none", fontsize=7)
    return figure


def _faded(picture: np.ndarray, shares: np.ndarray) -> np.ndarray:
    count = round(len(shares) ** 0.5)
    steps = np.ceil(shares * _STEPS).reshape(count, count) / _STEPS
    share = steps.repeat(len(picture) // count, axis=0).repeat(len(picture) // count, axis=1)[..., None]
    return (255 * (1 - share) + picture * share).round().astype(np.uint8)


def _paint(axes: Axes, picture: np.ndarray) -> None:
    as_matrix(axes, *picture.shape[:2])
    for colour in np.unique(picture.reshape(-1, 3), axis=0):
        if (colour < 255).any():
            fill_cells(axes, (picture == colour).all(axis=-1), to_hex(colour / 255))
