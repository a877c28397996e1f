"""Lots: numbers drawn at random that are the same for the same places, wherever and whenever they are drawn."""

import torch
from torch import Tensor

#: Odd multipliers, as signed 64-bit integers: one each for seed, head, query and key, then the two of splitmix64.
_SEED, _HEAD, _QUERY, _KEY = -7046029254386353131, -3335678366873096957, -6884282663029611473, -1800455987208640293
_FIRST, _SECOND = -4658895280553007687, -7723592293110705685


def lots(seed: int, head: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
    """A pseudo-random int64 for each place, by splitmix64 (Steele et al. 2014), of integer tensors that broadcast.

    >>> lots(0, torch.tensor(0), torch.arange(2), torch.tensor(0)).tolist()
    [0, 9071725088682436940]
    """
    # Products and sums are modulo 2**64.
    x = torch.full_like(head, seed) * _SEED + head * _HEAD + q_idx * _QUERY + kv_idx * _KEY
    x = (x ^ _shifted(x, 30)) * _FIRST
    x = (x ^ _shifted(x, 27)) * _SECOND
    return x ^ _shifted(x, 31)


def _shifted(x: Tensor, bits: int) -> Tensor:
    """To the right, filling up with zeros: torch's own shift repeats the sign."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)
