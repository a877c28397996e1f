"""Keys drawn at random, the same for a pair of positions wherever and whenever it is drawn."""

import torch
from torch import Tensor

from sparselib.predictors.rows import Rows

#: Odd multipliers, as signed 64-bit integers: one each for seed, head, query and key, then the two of splitmix64.
_SEED, _HEAD, _QUERY, _KEY = -7046029254386353131, -3335678366873096957, -6884282663029611473, -1800455987208640293
_FIRST, _SECOND = -4658895280553007687, -7723592293110705685


def drawn_keys(rows: Rows, allowed: Tensor, count: int, seed: int) -> Tensor:
    """`count` of the allowed keys of each row and head, or all if they are fewer: those with the highest lots."""
    heads = torch.arange(rows.q.shape[1], device=rows.at.device)[None, :, None, None]
    lots, allowed = torch.broadcast_tensors(_lots(seed, heads, rows.at, rows.of), allowed)
    lots = lots.masked_fill(~allowed, torch.iinfo(torch.int64).min)
    winners = lots.topk(min(count, lots.shape[-1])).indices
    return torch.zeros_like(allowed).scatter_(-1, winners, True) & allowed


def _lots(seed: int, head: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
    """A pseudo-random int64 for each pair, by splitmix64 (Steele et al. 2014); products and sums are modulo 2**64."""
    x = torch.full_like(head, seed) * _SEED + head * _HEAD + q_idx * _QUERY + kv_idx * _KEY
    x = (x ^ _shifted(x, 30)) * _FIRST
    x = (x ^ _shifted(x, 27)) * _SECOND
    return x ^ _shifted(x, 31)


def _shifted(x: Tensor, bits: int) -> Tensor:
    """To the right, filling up with zeros: torch's own shift repeats the sign."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)
