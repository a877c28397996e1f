"""Keys drawn at random, the same for a pair of positions wherever and whenever it is drawn."""

import torch
from torch import Tensor

from sparselib.masks.lots import lots
from sparselib.predictors.rows import Rows


def drawn_keys(rows: Rows, allowed: Tensor, count: int, seed: int) -> Tensor:
    """`count` of the allowed keys of each row and head, or all if they are fewer: those with the highest lots."""
    heads = torch.arange(rows.q.shape[1], device=rows.at.device)[None, :, None, None]
    drawn, allowed = torch.broadcast_tensors(lots(seed, heads, rows.at, rows.of), allowed)
    drawn = drawn.masked_fill(~allowed, torch.iinfo(torch.int64).min)
    winners = drawn.topk(min(count, drawn.shape[-1])).indices
    return torch.zeros_like(allowed).scatter_(-1, winners, True) & allowed
