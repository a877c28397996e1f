"""The blocks that every block-based method visits: a window of three, the first and the last (as in BigBird)."""
# Lists of blocks are integers [..., W]; a list with fewer than W of the N blocks is filled up with N, one past the last.

import torch
from torch import Tensor

MOST_FIXED_BLOCKS = 5
"""First, left neighbour, itself, right neighbour, last."""


def fixed_blocks(limits: Tensor, last: Tensor) -> Tensor:
    """Return each query block's distinct fixed key blocks below its limit ``[B, N]``, ascending: ``[B, N, 5]``."""
    return distinct(fixed_columns(limits.shape[1], last), limits)


def fixed_columns(count: int, last: Tensor) -> Tensor:
    """Return the fixed key blocks of `count` query blocks, including repeated and invisible ones: ``[B, N, 5]``."""
    block = torch.arange(count, device=last.device)
    columns = torch.stack([torch.zeros_like(block), block - 1, block, block + 1], dim=-1)
    columns[0, 1] = count  # the first block has no left neighbour
    last = last.clamp_min(0)  # -1 in a sentence without blocks, whose limits hide the first block too
    return torch.cat([columns.expand(len(last), -1, -1), last[:, None, None].expand(-1, count, 1)], dim=-1)


def distinct(lists: Tensor, limits: Tensor) -> Tensor:
    """Sort lists ``[..., N, W]``, keep each block below its row's limit ``[..., N]`` once, and fill up with N."""
    # This needs memory for the lists only; a mask would need it for all N² pairs.
    count = lists.shape[-2]
    ordered = lists.masked_fill(lists >= limits[..., None], count).sort(-1).values
    repeated = torch.zeros_like(ordered, dtype=torch.bool)
    repeated[..., 1:] = ordered[..., 1:] == ordered[..., :-1]
    return ordered.masked_fill(repeated, count).sort(-1).values


def block_limits(real: Tensor, count: int, causal: bool) -> Tensor:
    """Return how many key blocks, from the first, each of `count` query blocks may attend to: ``[B]`` real -> ``[B, N]``."""
    block = torch.arange(count, device=real.device)
    limits = (block + 1).expand(len(real), count) if causal else real[:, None].expand(len(real), count)
    return limits.masked_fill(block >= real[:, None], 0)
