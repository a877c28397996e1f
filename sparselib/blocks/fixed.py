"""The blocks that block-based methods visit whatever they predict: a window of three, the first and the last (BigBird's).

Lists of blocks are integers ``[..., W]``; where a list of N blocks has fewer than W entries, the others are N, one past the
last.
"""

import torch
from torch import Tensor

MOST_FIXED_BLOCKS = 5
"""First, left neighbour, itself, right neighbour, last."""


def fixed_blocks(limits: Tensor, last: Tensor) -> Tensor:
    """Fixed key blocks of every query block, ascending: ``[B, N, 5]``.

    Parameters
    ----------
    limits : int Tensor ``[B, N]``
        How many key blocks a query block may see, counted from the first: 0 in the padding, up to itself if causal.
    last : int Tensor ``[B]``
        The last real block of each sentence.

    >>> fixed_blocks(block_limits(torch.tensor([5]), 5, causal=False), torch.tensor([4]))[0, 2]
    tensor([0, 1, 2, 3, 4])
    """
    return distinct(fixed_columns(limits.shape[1], last), limits)


def fixed_columns(count: int, last: Tensor) -> Tensor:
    """The same of `count` blocks with repetitions and what may not be seen: ``[B, N, 5]``.

    >>> fixed_columns(5, torch.tensor([4]))[0, 1]
    tensor([0, 0, 1, 2, 4])
    """
    own = torch.arange(count, device=last.device)
    columns = torch.stack([torch.zeros_like(own), own - 1, own, own + 1], dim=-1)
    columns[0, 1] = count  # there is none on the left of the first
    last = last.clamp_min(0)  # -1 in a sentence without blocks, which may not see the first one either
    return torch.cat([columns.expand(len(last), -1, -1), last[:, None, None].expand(-1, count, 1)], dim=-1)


def distinct(lists: Tensor, limits: Tensor) -> Tensor:
    """Lists ``[..., N, W]`` ascending, each block below its row's limit ``[..., N]`` once, and N where nothing is left.

    Sorting and comparing neighbours takes the memory of the lists; a mask would take that of all N² pairs.

    >>> distinct(torch.tensor([[1, 0, 1], [0, 1, 0]]), torch.tensor([2, 1]))
    tensor([[0, 1, 2],
            [0, 2, 2]])
    """
    count = lists.shape[-2]
    ordered = lists.masked_fill(lists >= limits[..., None], count).sort(-1).values
    repeated = torch.zeros_like(ordered, dtype=torch.bool)
    repeated[..., 1:] = ordered[..., 1:] == ordered[..., :-1]
    return ordered.masked_fill(repeated, count).sort(-1).values


def block_limits(real: Tensor, count: int, causal: bool) -> Tensor:
    """How many key blocks, from the first, each of `count` query blocks may see: ``[B]`` real blocks -> ``[B, N]``.

    >>> block_limits(torch.tensor([2]), 3, causal=True)
    tensor([[1, 2, 0]])
    """
    own = torch.arange(count, device=real.device)
    seen = (own + 1).expand(len(real), count) if causal else real[:, None].expand(len(real), count)
    return seen.masked_fill(own >= real[:, None], 0)
