"""Top-k selection (Explicit Sparse Transformer, Extremely Sparse Transformer): each query's k best keys."""

from dataclasses import dataclass

import torch
from torch import Tensor

from sparselib.checks import Lengths, at_least
from sparselib.predictors.inputs import checked_inputs
from sparselib.predictors.visible import visible_pairs


@dataclass(frozen=True)
class TopK:
    """The `k` visible keys with the largest scores q.k per query, and all that tie with the k-th.

    Padding and future are masked before selecting, and a query that sees k keys or fewer keeps them all. Works on
    raw queries and keys; the scale of the scores does not matter.

    Raises ValueError if k < 1.
    """

    k: int

    def __post_init__(self) -> None:
        at_least("k", self.k, 1)

    def predict(self, q: Tensor, k: Tensor, *, lengths: Lengths = None, causal: bool = False) -> Tensor:
        """`[B, H, Q, D]`, `[B, H, K, D]` -> `Bool[B, H, Q, K]`.

        Raises ValueError for malformed inputs or lengths.
        """
        queries, keys = checked_inputs(q, k, lengths)
        visible = visible_pairs(q.shape[0], q.shape[2], k.shape[2], lengths, causal, q.device)
        scores = (queries.vectors @ keys.vectors.mT).masked_fill_(~visible, -torch.inf)
        kth = scores.topk(min(self.k, k.shape[2])).values[..., -1:]
        return (scores >= kth) & visible  # where fewer than k are visible, the k-th is -inf
