"""Handwritten digits as a text of pixels, for models that read one symbol after another."""

from collections.abc import Mapping

import numpy as np
from sklearn.datasets import load_digits

#: Pixels of a line, and of an image with the symbol before it.
SIDE, RECORD = 8, 65
#: The byte before the pixels of an image; those are 0 to 16.
START = 17


def digits(images: Mapping[str, int], seed: int) -> dict[str, bytes]:
    """Images of handwritten digits, 8 by 8 pixels of 17 levels of grey, as text: :data:`START`, then its pixels row by row.

    They are the 1,797 test images of the UCI set, which scikit-learn carries; ``seed`` shuffles them.

    Raises ``ValueError`` if there are not so many, or none are asked for in a split.
    """
    pixels = load_digits().images.astype(np.uint8).reshape(-1, SIDE**2)
    wanted = list(images.values())
    if min(wanted) < 1 or sum(wanted) > len(pixels):
        raise ValueError(f"digits: {dict(images)}; there are {len(pixels)}, and each split needs some")
    order = np.random.default_rng(seed).permutation(len(pixels))[: sum(wanted)]
    records = np.insert(pixels[order], 0, START, axis=1)
    ends = np.cumsum(wanted)
    return {name: part.tobytes() for name, part in zip(images, np.split(records, ends[:-1]), strict=True)}
