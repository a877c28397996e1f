"""Complaints about arguments: all of them name the argument and both shapes."""

import math
from collections.abc import Sequence
from typing import NoReturn

import torch
from torch import Tensor


def fail_shapes(name: str, shape: Sequence, other: str, other_shape: Sequence) -> NoReturn:
    """Refuse two shapes that do not fit.

    Raises
    ------
    ValueError
        Always.
    """
    raise ValueError(f"{name} of shape {_spelt(shape)} does not fit {other} of shape {_spelt(other_shape)}")


def _spelt(shape: Sequence) -> str:
    return f"({', '.join(map(str, shape))})"


def first_not_finite(**tensors: Tensor) -> str | None:
    """The name of the first of some tensors of one dtype that has a NaN or infinite entry; a GPU is waited for once."""
    named = {name: x.detach() for name, x in tensors.items() if x.numel()}
    if not named:
        return None
    extremes = torch.stack([extreme for x in named.values() for extreme in torch.aminmax(x)]).tolist()
    finite = [
        math.isfinite(low) and math.isfinite(high) for low, high in zip(extremes[::2], extremes[1::2], strict=True)
    ]
    return next((name for name, passed in zip(named, finite, strict=True) if not passed), None)


def pair(name: str, value: int | Sequence[int]) -> tuple[int, int]:
    """`value` for queries and for keys: two positive integers.

    Raises
    ------
    ValueError
        If it is neither an integer nor two, or below 1.
    """
    both = (value, value) if isinstance(value, int) else tuple(value)
    if len(both) != 2 or not all(isinstance(x, int) and x >= 1 for x in both):
        raise ValueError(f"{name}: a positive integer or two (queries, keys) expected, got {value}")
    return both
