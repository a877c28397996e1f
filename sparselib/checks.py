"""Argument checks that several modules share, so that their errors are worded alike."""

from collections.abc import Collection, Sequence

import torch
from torch import Tensor


def at_least(name: str, value: float, minimum: float) -> None:
    """Raise ``ValueError``, naming the argument, unless ``value >= minimum`` (NaN fails too)."""
    if not value >= minimum:
        raise ValueError(f"`{name}` must be at least {minimum}, got {value}")


def integer_at_least(name: str, value: int, minimum: int) -> None:
    """Raise ``ValueError``, naming the argument, unless it is an integer of at least `minimum`; NumPy's integers count."""
    # Each tensor has an `__index__`, and symbolic sizes must not be converted.
    is_fraction = isinstance(value, Tensor) and value.is_floating_point()
    if isinstance(value, bool) or is_fraction or not hasattr(value, "__index__"):
        raise ValueError(f"`{name}` must be an integer, got {value!r}")
    at_least(name, value, minimum)


def one_of(name: str, value: str, allowed: Collection[str]) -> None:
    if value not in allowed:
        raise ValueError(f"`{name}` must be one of {', '.join(allowed)}; got {value!r}")


SentenceLengths = Tensor | Sequence[int]
"""``[B]``: the number of real tokens of each sentence in a padded batch."""

Lengths = SentenceLengths | None
"""Sentence lengths, or None if every token is real."""


def checked_lengths(lengths: SentenceLengths) -> Tensor:
    """Return lengths as an integer tensor ``[B]``; raise ``ValueError`` unless all are integers of at least 0."""
    lengths = torch.as_tensor(lengths)
    if lengths.ndim != 1 or lengths.numel() == 0 or lengths.is_floating_point():
        raise ValueError(f"`lengths` must be integers [B], got {lengths.dtype} of shape {tuple(lengths.shape)}")
    if not torch.compiler.is_compiling():  # reading values would break the graph
        at_least("lengths", int(lengths.min()), 0)
    return lengths
