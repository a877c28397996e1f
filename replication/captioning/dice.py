"""Random choices that fall the same way on every machine and under every Python version."""

from bisect import bisect
from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from random import Random
from typing import TypeVar

T = TypeVar("T")


class Dice:
    """Draws from ``Random.random()`` alone: the only method whose sequence Python promises never to change."""

    def __init__(self, seed: int):
        self._draw = Random(seed).random

    def chance(self, probability: float) -> bool:
        """Return True with a probability."""
        return self._draw() < probability

    def between(self, low: int, high: int) -> int:
        """Return a whole number from ``low`` to ``high``, both included."""
        return low + int(self._draw() * (high - low + 1))

    def pick(self, options: Sequence[T]) -> T:
        """Return one of the options, all equally likely."""
        return options[int(self._draw() * len(options))]

    def skewed(self, options: Sequence[T]) -> T:
        """Return one of the options, with a Zipf-like preference for those listed first."""
        return options[bisect(_zipf(len(options)), self._draw())]


@cache
def _zipf(count: int) -> list[float]:
    """Return the cumulative shares of ``count`` ranks, where rank r has weight 1 / (r + 3)."""
    steps = list(accumulate(1 / (rank + 3) for rank in range(count)))
    return [step / steps[-1] for step in steps]
