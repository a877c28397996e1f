"""Predictors that decide each query's row by itself, from what that query may see.

So they take any visible pairs (padding on either side), one step of incremental decoding and, where their rule has a meaning
there, cross-attention: what a model needs that is trained under a predictor and decodes with it.
"""

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from sparselib.checks import Lengths
from sparselib.masks.visible import visible_pairs
from sparselib.predictors.inputs import checked_inputs
from sparselib.predictors.protocol import Needs


class Rows(NamedTuple):
    """Queries with all the keys of their sentences: `q` ``[B, H, Q, D]``, `k` ``[B, H, K, D]``, `visible` ``Bool[B, 1, Q, K]``.

    `at` ``[B, 1, Q, 1]`` and `of` ``[B, 1, 1, K]`` are the positions of queries and keys among the real tokens of their
    sentence; any of `visible`, `at` and `of` may have sizes of 1 that broadcast. `causal`: whether the rows are those of a
    decoder, which a single row does not tell. `scores` ``[B, H, Q, K]`` are for models in which they are more than q.k.

    >>> visible = torch.ones(1, 1, 2, 2, dtype=torch.bool).tril()
    >>> q = k = torch.randn(1, 1, 2, 4)
    >>> rows = Rows(q, k, visible, at=torch.tensor([[0], [1]]), of=torch.tensor([[0, 1]]), causal=True)
    >>> rows.at - rows.of  # how far back each key lies
    tensor([[ 0, -1],
            [ 1,  0]])
    """

    q: Tensor
    k: Tensor
    visible: Tensor
    at: Tensor
    of: Tensor
    causal: bool
    scores: Tensor | None = None


class RowWise(ABC):
    """A predictor that implements `pairs`; `cross` says whether queries may come from another sentence than keys.

    >>> class Before(RowWise):
    ...     def pairs(self, rows):
    ...         return (rows.at - rows.of == 1) & rows.visible
    >>> x = torch.zeros(1, 1, 3, 4)
    >>> Before().predict(x, x, causal=True)[0, 0].int()
    tensor([[0, 0, 0],
            [1, 0, 0],
            [0, 1, 0]], dtype=torch.int32)
    """

    needs: ClassVar[Needs] = Needs(prefix=True)

    cross: ClassVar[bool] = False

    @abstractmethod
    def pairs(self, rows: Rows) -> Tensor:
        """The predicted pairs, `Bool` that broadcasts to ``[B, H, Q, K]``, none of them invisible."""

    def predict(self, q: Tensor, k: Tensor, *, lengths: Lengths = None, causal: bool = False) -> Tensor:
        """``[B, H, Q, D]``, ``[B, H, K, D]`` -> ``Bool[B, H, Q, K]``.

        Raises ``ValueError`` for malformed inputs or lengths, and for unequal numbers of queries and keys unless `cross`.
        """
        queries, keys = checked_inputs(q, k, lengths)
        if not self.cross and q.shape[2] != k.shape[2]:
            raise ValueError(
                f"{type(self).__name__} is for self-attention, got {q.shape[2]} queries, {k.shape[2]} keys"
            )
        visible = visible_pairs(q.shape[0], q.shape[2], k.shape[2], lengths, causal, q.device)
        at = torch.arange(q.shape[2], device=q.device)[None, None, :, None]
        of = torch.arange(k.shape[2], device=q.device)[None, None, None]
        return self.pairs(Rows(queries.vectors, keys.vectors, visible, at, of, causal)).expand(*q.shape[:3], k.shape[2])
