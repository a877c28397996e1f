"""Sparsefinder's block selection as a token-pair predictor, comparable with third-party rules that select blocks."""

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
    """Predictor of all token pairs in the blocks that :class:`~sparselib.blocks.ClusteredBlocks` selects.

    The window and global blocks of that class are included. `q` and `k` must be projected tokens. The centroids must be fitted
    to concatenated chunks.

    Attributes
    ----------
    blocks : ClusteredBlocks
        The block predictor.
    block : int
        Tokens per block.
    """

    needs: ClassVar[Needs] = Needs(prefix=True)

    blocks: ClusteredBlocks
    block: int

    def predict(self, q: Tensor, k: Tensor, *, lengths: Lengths = None, causal: bool = False) -> Tensor:
        """Return the selected pairs ``Bool[B, H, n, n]`` of queries and keys ``[B, H, n, R]``."""
        chunks, n = Chunks(self.block), q.shape[2]
        real = real_positions(q.shape[0], n, lengths, q.device).sum(-1)
        q, k = chunks.vectors(q, lengths), chunks.vectors(k, lengths)
        chosen = self.blocks.predict(q, k, lengths=chunks.count(real), causal=causal)
        visited = unite(chosen, self.block, n, lengths, causal).to_dense()
        tokens = visited.repeat_interleave(self.block, 2).repeat_interleave(self.block, 3)[..., :n, :n]
        return tokens & visible_pairs(q.shape[0], n, n, lengths, causal, q.device)
