"""Sparsefinder's efficient version 2 as a predictor of pairs of tokens, to stand beside rivals that choose blocks too."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from sparselib.blocks import Chunks, ClusteredBlocks, unite
from sparselib.checks import Lengths
from sparselib.masks import visible_pairs
from sparselib.masks.visible import real_positions
from sparselib.predictors import Needs


@dataclass(frozen=True)
class TokensOfBlocks:
    """All pairs of the blocks that :class:`~sparselib.blocks.ClusteredBlocks` picks, with its window and global blocks.

    `q` and `k` are projected tokens; the centroids are those of concatenated chunks.
    """

    needs: ClassVar[Needs] = Needs(prefix=True)

    blocks: ClusteredBlocks
    block: int

    def predict(self, q: Tensor, k: Tensor, *, lengths: Lengths = None, causal: bool = False) -> Tensor:
        """``[B, H, n, R]`` twice -> ``Bool[B, H, n, n]``."""
        chunks, n = Chunks(self.block), q.shape[2]
        real = real_positions(q.shape[0], n, lengths, q.device).sum(-1)
        q, k = chunks.vectors(q, lengths), chunks.vectors(k, lengths)
        chosen = self.blocks.predict(q, k, lengths=chunks.count(real), causal=causal)
        visited = unite(chosen, self.block, n, lengths, causal).to_dense()
        tokens = visited.repeat_interleave(self.block, 2).repeat_interleave(self.block, 3)[..., :n, :n]
        return tokens & visible_pairs(q.shape[0], n, n, lengths, causal, q.device)
