"""BigBird's random blocks, a baseline of the efficient versions of Sparsefinder (section 6.1)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from sparselib.blocks.fixed import fixed_blocks
from sparselib.blocks.predictors import checked_chunks
from sparselib.checks import Lengths, at_least


@dataclass(frozen=True)
class RandomBlocks:
    """Predictor of BigBird's random blocks, drawn uniformly outside window and global blocks.

    Parameters
    ----------
    count : int
        Blocks per query block and head. A query block with fewer to choose from takes all.
    seed : int
        Seed of every call. Sentences of equal length share the draw, so give each layer its own seed.

    Raises
    ------
    ValueError
        If `count` is below 1.
    """

    count: int
    seed: int = 0

    def __post_init__(self) -> None:
        at_least("count", self.count, 1)

    def predict(self, q: Tensor, k: Tensor, *, lengths: Lengths = None, causal: bool = False) -> Tensor:
        """Draw key blocks for each query block.

        Parameters
        ----------
        q, k : Tensor ``[B, H, N, R]``
            Chunks, of which only the shape matters.
        lengths : integers ``[B]``, optional
            Real chunks of each sentence; by default every chunk is real.
        causal : bool
            Whether later blocks are hidden.

        Returns
        -------
        int64 Tensor ``[B, H, N, min(count, N)]``
            Numbers of key blocks; N where fewer are available.

        Raises
        ------
        ValueError
            If inputs or lengths are malformed.
        """
        queries, _, limits = checked_chunks(q, k, lengths, causal)
        count = q.shape[2]
        fixed = fixed_blocks(limits, queries.real.sum(dim=(1, 2, 3)) - 1)  # [B, N, 5]
        available = limits - (fixed < count).sum(-1)  # [B, N]
        # Random numbers are drawn query block by query block, so that padding behind a sentence does not change its draw.
        generator = torch.Generator().manual_seed(self.seed)
        luck = torch.rand(count, q.shape[1], min(self.count, count), generator=generator, dtype=torch.float64)
        chosen = _sample(available[:, None], luck.transpose(0, 1).to(q.device))
        missing = chosen < 0
        # Skipping the fixed blocks in ascending order turns the r-th available block into its number.
        for block in fixed[:, None, :, None].unbind(-1):
            chosen += chosen >= block
        return chosen.masked_fill(missing, count)


def _sample(available: Tensor, luck: Tensor) -> Tensor:
    """Draw K distinct numbers below `available` ``[B, 1, N]``, uniformly, as ``[B, H, N, K]``.

    `luck` ``[H, N, K]`` has random numbers in 0 to 1. If fewer than K numbers are available, the others are -1. This is Floyd's
    algorithm (Bentley and Floyd 1987), which needs no permutation.
    """
    size = luck.shape[-1]
    chosen = torch.full((len(available), *luck.shape), -1, device=luck.device)
    for step in range(size):
        largest = available - size + step
        drawn = (luck[..., step] * (largest + 1)).long()
        drawn = torch.where((chosen == drawn[..., None]).any(-1), largest, drawn)
        chosen[..., step] = torch.where(largest >= 0, drawn, -1)
    return chosen
