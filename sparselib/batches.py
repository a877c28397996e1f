"""Queries and keys of one attention layer, and the gold graph that follows from them."""

from dataclasses import dataclass

from torch import Tensor

from sparselib.dense_attention import gold_graph
from sparselib.masks.visible import visible_pairs


@dataclass(frozen=True)
class Batch:
    """Sequences of one layer, padded on the right.

    Attributes
    ----------
    q, k : Tensor ``[B, H, n, D]``
        Before scaling.
    lengths : integer Tensor ``[B]``
        Real tokens of each sequence.
    causal : bool
    """

    q: Tensor
    k: Tensor
    lengths: Tensor
    causal: bool = False

    @property
    def visible(self) -> Tensor:
        """``Bool[B, 1, n, n]``: pairs of real positions, not in the future if the model is causal."""
        return visible_pairs(len(self.q), self.q.shape[2], self.k.shape[2], self.lengths, self.causal)

    @property
    def gold(self) -> Tensor:
        """``Bool[B, H, n, n]``: the exact edges of 1.5-entmax (section 4.1)."""
        return gold_graph(self.q, self.k, self.visible) & self.visible
