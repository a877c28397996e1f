"""The nearest key blocks of each query block, by the means of their projected tokens (Sparsefinder section 6.1, version 1)."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from sparselib.blocks import NearestBlocks
from sparselib.blocks.chunks import Chunks
from sparselib.checks import Lengths
from sparselib.masks import visible_pairs
from sparselib.predictors import Needs


@dataclass(frozen=True, eq=False)
class Nearest:
    """All pairs of each query block and its nearest key blocks, in a bidirectional model.

    Parameters
    ----------
    shares : Tensor ``[H]``
        Share of a sequence's blocks that each head's query blocks attend to, in (0, 1], rounded up to whole blocks.
    size : int
        Tokens per block.

    Examples
    --------
    >>> x = torch.tensor([0.0, 0.2, 5.0, 5.2]).view(1, 1, 4, 1)
    >>> Nearest(torch.tensor([0.5]), size=2).predict(x, x)[0, 0].int().tolist()
    [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]]
    """

    needs: ClassVar[Needs] = Needs()

    shares: Tensor
    size: int

    @property
    def chunks(self) -> Chunks:
        """The blocks, whose vectors are the means of their tokens."""
        return Chunks(self.size, "mean")

    def blocks(self, q: Tensor, k: Tensor, lengths: Lengths = None) -> Tensor:
        """Return each query block's nearest key blocks ``Bool[B, H, N, N]`` for projected tokens ``[B, H, n, R]``."""
        q, k = (self.chunks.vectors(x, lengths) for x in (q, k))
        blocks = q.shape[2]
        real = None if lengths is None else self.chunks.count(torch.as_tensor(lengths, device=q.device))
        available = torch.full((len(q),), blocks, device=q.device) if real is None else real
        counts = self.counts(available)
        lists = NearestBlocks(int(counts.max())).predict(q, k, lengths=real)  # the nearest first
        place = torch.arange(lists.shape[-1], device=q.device)
        lists = lists.masked_fill(place >= counts[:, :, None, None], blocks)
        visited = torch.zeros(*q.shape[:3], blocks + 1, dtype=torch.bool, device=q.device)
        return visited.scatter_(-1, lists, True)[..., :blocks]

    def counts(self, blocks: Tensor) -> Tensor:
        """Return the key blocks per query block ``[B, H]`` of sequences with so many blocks ``[B]``."""
        # With a margin for rounding, so that a fifth of 5 blocks is 1 and not 2.
        shares = self.shares.to(blocks.device, torch.float64)
        return (blocks[:, None] * shares - 1e-6).ceil().long().clamp_min(1)

    def predict(self, q: Tensor, k: Tensor, *, lengths: Lengths = None, causal: bool = False) -> Tensor:
        """Return the pairs of all nearest blocks, ``Bool[B, H, n, n]``; raise ``ValueError`` if `causal`."""
        if causal:
            raise ValueError("`causal` must be False, because a block's vector depends on all of its tokens, got True")
        tokens = q.shape[2]
        pairs = self.blocks(q, k, lengths).repeat_interleave(self.size, 2).repeat_interleave(self.size, 3)
        return pairs[:, :, :tokens, :tokens] & visible_pairs(q.shape[0], tokens, tokens, lengths, False, q.device)
