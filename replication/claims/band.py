"""Sparsity bands in which claims compare curves."""

import re
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Band:
    """Range of sparsities around the gold sparsity, in which a claim compares curves.

    Attributes
    ----------
    below : float
        Distance from the lower end of the band up to the gold sparsity.
    above : float, optional
        Distance from the gold sparsity to the upper end. Without it, the band ends where the shorter curve does.
    """

    below: float
    above: float | None = None

    @classmethod
    def parse(cls, text: str) -> "Band":
        """Parse a band such as ``gold - 0.10`` or ``gold - 0.05 to gold + 0.05``.

        Raises
        ------
        ValueError
            If the text has neither form.

        >>> Band.parse("gold - 0.05 to gold + 0.02")
        Band(below=0.05, above=0.02)
        """
        matched = re.fullmatch(r"gold - ([0-9.]+)(?: to gold \+ ([0-9.]+))?", text)
        if not matched:
            raise ValueError(f"`band` must be like 'gold - 0.10' or 'gold - 0.05 to gold + 0.05', got {text!r}")
        return cls(float(matched[1]), None if matched[2] is None else float(matched[2]))

    def contains(self, sparsities: np.ndarray, gold: float) -> np.ndarray:
        """Return which sparsities lie in the band around the sparsity ``gold`` of the gold graph."""
        # The tolerance includes the ends despite rounding.
        inside = sparsities >= gold - self.below - 1e-9
        return inside if self.above is None else inside & (sparsities <= gold + self.above + 1e-9)
