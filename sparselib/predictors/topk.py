"""Top-k selection (Explicit Sparse Transformer, Extremely Sparse Transformer): each query's k best keys."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from sparselib.checks import integer_at_least
from sparselib.predictors.rows import Rows, RowWise


@dataclass(frozen=True)
class TopK(RowWise):
    """The `k` visible keys with the largest scores q.k per query, and all that tie with the k-th; also for cross-attention.

    Parameters
    ----------
    k : int, at least 1

    Examples
    --------
    >>> k = torch.tensor([0.3, 0.9, 0.1, 0.9]).view(1, 1, 4, 1)
    >>> TopK(1).predict(torch.ones(1, 1, 1, 1), k).int()  # ties are kept
    tensor([[[[0, 1, 0, 1]]]], dtype=torch.int32)
    """

    k: int
    cross: ClassVar[bool] = True

    def __post_init__(self) -> None:
        integer_at_least("k", self.k, 1)

    def pairs(self, rows: Rows) -> Tensor:
        return best_keys(rows, rows.visible, self.k)


def best_keys(rows: Rows, allowed: Tensor, count: int) -> Tensor:
    """Return each row's `count` best allowed keys, and all that tie with the last of them: ``Bool[B, H, Q, K]``."""
    scores = rows.q @ rows.k.mT if rows.scores is None else rows.scores.clone()
    scores.masked_fill_(~allowed, -torch.inf)
    last = scores.topk(min(count, scores.shape[-1])).values[..., -1:]
    return (scores >= last) & allowed  # `last` is -inf if fewer than `count` are allowed
