"""BigBird's random blocks, which the efficient versions of Sparsefinder are compared with (section 6.1)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from sparselib.blocks.fixed import fixed_blocks
from sparselib.blocks.predictors import checked_chunks
from sparselib.checks import Lengths, at_least


@dataclass(frozen=True)
class RandomBlocks:
    """BigBird's random blocks: `count` per query block and head, drawn uniformly outside window and global blocks.

    A query block with fewer to choose from takes all. Every call draws anew from `seed`, and sentences of equal length
    share the draw: give each layer its own seed. Raises ``ValueError`` if count < 1.
    """

    count: int
    seed: int = 0

    def __post_init__(self) -> None:
        at_least("count", self.count, 1)

    def predict(self, q: Tensor, k: Tensor, *, lengths: Lengths = None, causal: bool = False) -> Tensor:
        """``[B, H, N, R]`` twice, of which only the shape matters -> int64 ``[B, H, N, min(count, N)]``.

        Raises ``ValueError`` for malformed inputs or lengths.
        """
        queries, _, limits = checked_chunks(q, k, lengths, causal)
        count = q.shape[2]
        fixed = fixed_blocks(limits, queries.real.sum(dim=(1, 2, 3)) - 1)  # [B, N, 5]
        available = limits - (fixed < count).sum(-1)  # [B, N]
        # A number per query block, in its order: what follows a sentence does not change its draw.
        generator = torch.Generator().manual_seed(self.seed)
        luck = torch.rand(count, q.shape[1], min(self.count, count), generator=generator, dtype=torch.float64)
        chosen = _sample(available[:, None], luck.transpose(0, 1).to(q.device))
        missing = chosen < 0
        for block in fixed[:, None, :, None].unbind(-1):  # ascending: the r-th block outside them, one by one
            chosen += chosen >= block
        return chosen.masked_fill(missing, count)


def _sample(available: Tensor, luck: Tensor) -> Tensor:
    """K distinct numbers below `available` ``[B, 1, N]``, uniformly, by `luck` ``[H, N, K]`` in 0..1: ``[B, H, N, K]``.

    Floyd's algorithm (Bentley and Floyd 1987), which needs no permutation. Where fewer than K are available, the rest is -1.
    """
    size = luck.shape[-1]
    chosen = torch.full((len(available), *luck.shape), -1, device=luck.device)
    for step in range(size):
        largest = available - size + step
        drawn = (luck[..., step] * (largest + 1)).long()
        drawn = torch.where((chosen == drawn[..., None]).any(-1), largest, drawn)
        chosen[..., step] = torch.where(largest >= 0, drawn, -1)
    return chosen
