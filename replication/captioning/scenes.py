"""Drawn pictures of things and animals in a place, with captions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from replication.captioning.dice import Dice

#: Sides in pixels: of a picture, of a cell with one figure, and of a patch, which is a region of the picture.
SIDE, CELL, PATCH = 48, 16, 8
CAPTIONS = 5

#: From coordinates u (rightwards) and v (downwards) in [-1, 1] to the mask of the figure.
Shape = Callable[[np.ndarray, np.ndarray], np.ndarray]
_THINGS: dict[str, Shape] = {
    "ball": lambda u, v: u**2 + v**2 < 0.8,
    "box": lambda u, v: np.maximum(abs(u), abs(v)) < 0.75,
    "kite": lambda u, v: abs(u) + abs(v) < 1,
    "ring": lambda u, v: abs(np.hypot(u, v) - 0.7) < 0.25,
    "bell": lambda u, v: (abs(u) < 0.5 * (v + 1)) & (v < 0.7),
    "ladder": lambda u, v: (abs(abs(u) - 0.6) < 0.17) | ((abs(u) < 0.6) & (np.cos(3 * np.pi * v) > 0.6)),
    "hat": lambda u, v: ((v > 0.3) & (v < 0.65)) | ((abs(u) < 0.5) & (v > -0.7) & (v < 0.65)),
    "candle": lambda u, v: ((abs(u) < 0.3) & (v > -0.4)) | (u**2 + (v + 0.7) ** 2 < 0.06),
}
_ANIMALS: dict[str, Shape] = {
    "cat": lambda u, v: (u**2 + (v - 0.2) ** 2 < 0.5) | ((abs(abs(u) - 0.45) < 0.2) & (v < 0) & (v > -0.85)),
    "owl": lambda u, v: (u**2 / 0.4 + v**2 < 0.9) & ((abs(u) - 0.3) ** 2 + (v + 0.4) ** 2 > 0.03),
    "hedgehog": lambda u, v: (v < 0.5) & (np.hypot(u, v - 0.5) < 0.8 + 0.2 * np.cos(10 * np.arctan2(u, 0.5 - v))),
    "goose": lambda u, v: (
        ((u - 0.1) ** 2 / 0.7 + (v - 0.4) ** 2 < 0.25) | ((abs(u + 0.45) < 0.2) & (abs(v + 0.15) < 0.65))
    ),
}
COLOURS = {
    "red": (0.85, 0.1, 0.1),
    "blue": (0.1, 0.2, 0.85),
    "green": (0.0, 0.5, 0.15),
    "yellow": (0.95, 0.9, 0.1),
    "white": (1.0, 1.0, 1.0),
    "black": (0.05, 0.05, 0.05),
    "brown": (0.45, 0.25, 0.1),
    "orange": (1.0, 0.55, 0.0),
    "grey": (0.5, 0.5, 0.5),
    "purple": (0.5, 0.1, 0.6),
}
#: Colours of animals, the most frequent first.
_FURS = ["brown", "black", "white", "grey"]
#: Colours of places, and their prepositions.
_GROUNDS = {
    "park": (0.7, 0.9, 0.65),
    "beach": (0.95, 0.87, 0.65),
    "square": (0.8, 0.8, 0.85),
    "cafe": (0.85, 0.7, 0.7),
}
_PREPOSITIONS = {"park": "in", "beach": "on", "square": "in", "cafe": "in"}


@dataclass(frozen=True)
class Figure:
    """A coloured thing or animal in a cell of the picture, counted from the top left."""

    noun: str
    colour: str
    row: int
    column: int

    def phrase(self) -> str:
        """Return the figure in words, such as "a red ball"."""
        article = "an" if self.colour[0] in "aeiou" else "a"
        return f"{article} {self.colour} {self.noun}"

    def beside(self, other: "Figure") -> str:
        """Return the direction from another figure, along the axis on which they are farther apart."""
        down, right = self.row - other.row, self.column - other.column
        if abs(right) > abs(down):
            return "to the right of" if right > 0 else "to the left of"
        return "below" if down > 0 else "above"


def scene(dice: Dice) -> tuple[np.ndarray, list[str]]:
    """Draw a picture ``uint8 [SIDE, SIDE, 3]``, with five captions in lower case and without punctuation."""
    place, count = dice.pick(list(_GROUNDS)), dice.between(2, 3)
    figures: list[Figure] = []
    while len(figures) < count:
        animal = dice.chance(0.35)
        noun = dice.pick(list(_ANIMALS if animal else _THINGS))
        colour = dice.skewed(_FURS if animal else list(COLOURS))
        cell = dice.between(0, 2), dice.between(0, 2)
        if all(noun != other.noun and cell != (other.row, other.column) for other in figures):
            figures.append(Figure(noun, colour, *cell))
    # People begin with living things, and then at the top left.
    figures.sort(key=lambda figure: (figure.noun not in _ANIMALS, figure.row, figure.column))
    return _painted(figures, place, dice), _described(figures, place, dice)


def patches(picture: np.ndarray) -> np.ndarray:
    """Return the regions ``[R, 3 PATCH^2]`` of a picture, row by row; :func:`picture_of` inverts this."""
    count = len(picture) // PATCH
    return picture.reshape(count, PATCH, count, PATCH, 3).swapaxes(1, 2).reshape(count**2, -1)


def picture_of(regions: np.ndarray) -> np.ndarray:
    """Return the picture ``[SIDE, SIDE, 3]`` of its patches.

    Examples
    --------
    >>> picture, _ = scene(Dice(0))
    >>> bool((picture_of(patches(picture)) == picture).all())
    True
    """
    count = SIDE // PATCH
    return regions.reshape(count, count, PATCH, PATCH, 3).swapaxes(1, 2).reshape(SIDE, SIDE, 3)


def scenes(images: Mapping[str, int], seed: int) -> dict[str, list[tuple[np.ndarray, list[str]]]]:
    """Draw pictures and their captions for each split, independently of the other splits' sizes.

    Parameters
    ----------
    images : mapping
        Number of pictures per split.
    seed : int
        Seed of the pictures.

    Raises
    ------
    ValueError
        If a split has no picture.
    """
    for name, count in images.items():
        if count < 1:
            raise ValueError(f"`images` must be at least 1 per split, got {count} for {name}")
    drawn = {}
    for number, (name, count) in enumerate(images.items()):
        dice = Dice(seed * len(images) + number)
        drawn[name] = [scene(dice) for _ in range(count)]
    return drawn


def _painted(figures: list[Figure], place: str, dice: Dice) -> np.ndarray:
    """Paint figures, each with a random size and offset in its cell."""
    picture = np.full((SIDE, SIDE, 3), _GROUNDS[place])
    down, right = np.mgrid[:SIDE, :SIDE] + 0.5
    for figure in figures:
        size = dice.between(6, 8)
        middle = [CELL * cell + CELL / 2 + dice.between(-1, 1) for cell in (figure.row, figure.column)]
        u, v = (right - middle[1]) / size, (down - middle[0]) / size
        inside = (abs(u) < 1) & (abs(v) < 1)
        picture[inside & (_THINGS | _ANIMALS)[figure.noun](u, v)] = COLOURS[figure.colour]
    return (255 * picture).round().astype(np.uint8)


def _described(figures: list[Figure], place: str, dice: Dice) -> list[str]:
    """Caption the figures in five forms, 70 % in their order and the rest reversed, since people mostly agree on the order."""
    where = f"{_PREPOSITIONS[place]} the {place}"
    captions = []
    for form in range(CAPTIONS):
        first, second, *rest = figures if dice.chance(0.7) else figures[::-1]
        relation = f"{first.phrase()} {first.beside(second)} {second.phrase()}"
        captions.append(
            [
                relation,
                f"there is {relation}",
                f"{first.phrase()} and {second.phrase()} {where}",
                f"{where} {first.phrase()} is {first.beside(second)} {second.phrase()}",
                ", ".join(figure.phrase() for figure in (first, *rest)) + f" and {second.phrase()}",
            ][form].replace(",", "")
        )
    return captions
