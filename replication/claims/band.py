"""The sparsities at which a claim compares curves."""

import re
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Band:
    """Sparsities around the gold sparsity at which a claim compares curves: from ``below`` it to ``above`` it.

    Without ``above``, the band ends at the highest sparsity that both curves reach.
    """

    below: float
    above: float | None = None

    @classmethod
    def parse(cls, text: str) -> "Band":
        """Read ``gold - 0.10`` or ``gold - 0.05 to gold + 0.05``.

        Raises
        ------
        ValueError
            If the text is neither.

        >>> Band.parse("gold - 0.05 to gold + 0.02")
        Band(below=0.05, above=0.02)
        """
        matched = re.fullmatch(r"gold - ([0-9.]+)(?: to gold \+ ([0-9.]+))?", text)
        if not matched:
            raise ValueError(f"`band` must be like 'gold - 0.10' or 'gold - 0.05 to gold + 0.05', got {text!r}")
        return cls(float(matched[1]), None if matched[2] is None else float(matched[2]))

    def contains(self, sparsities: np.ndarray, gold: float) -> np.ndarray:
        """Return which sparsities lie in the band, with the gold graph's."""
        # Rounding must not leave an end out.
        inside = sparsities >= gold - self.below - 1e-9
        return inside if self.above is None else inside & (sparsities <= gold + self.above + 1e-9)
