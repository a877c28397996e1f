"""Predictors that decide each query's row from that row alone."""
# So they work with padding on either side, in incremental decoding and, where the rule is defined there, in cross-attention.

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from sparselib.checks import Lengths
from sparselib.masks.visible import visible_pairs
from sparselib.predictors.inputs import checked_inputs
from sparselib.predictors.protocol import Needs


class Rows(NamedTuple):
    """Queries with all keys of their sentences. Sizes of 1 in `visible`, `at` and `of` broadcast.

    Parameters
    ----------
    q, k : Tensor ``[B, H, Q, D]``, ``[B, H, K, D]``
    visible : Bool Tensor ``[B, 1, Q, K]``
    at, of : integer Tensor ``[B, 1, Q, 1]``, ``[B, 1, 1, K]``, the positions among their sentence's real tokens
    causal : bool, whether the rows are a decoder's, which `visible` does not show for a single row
    scores : Tensor ``[B, H, Q, K]``, optional, of a model that computes more than q.k

    Examples
    --------
    >>> q, visible = torch.randn(1, 1, 2, 4), torch.ones(1, 1, 2, 2, dtype=torch.bool).tril()
    >>> rows = Rows(q, q, visible, at=torch.tensor([[0], [1]]), of=torch.tensor([[0, 1]]), causal=True)
    >>> (rows.at - rows.of).tolist()  # how far back each key lies
    [[0, -1], [1, 0]]
    """

    q: Tensor
    k: Tensor
    visible: Tensor
    at: Tensor
    of: Tensor
    causal: bool
    scores: Tensor | None = None


class RowWise(ABC):
    """A predictor of single rows; if `cross` is True, queries and keys may belong to different sentences.

    Examples
    --------
    >>> class Before(RowWise):
    ...     def pairs(self, rows):
    ...         return (rows.at - rows.of == 1) & rows.visible
    >>> x = torch.zeros(1, 1, 3, 4)
    >>> Before().predict(x, x, causal=True)[0, 0].int().tolist()
    [[0, 0, 0], [1, 0, 0], [0, 1, 0]]
    """

    needs: ClassVar[Needs] = Needs(prefix=True)

    cross: ClassVar[bool] = False

    @abstractmethod
    def pairs(self, rows: Rows) -> Tensor:
        """Return the predicted visible pairs, a Bool Tensor that broadcasts to ``[B, H, Q, K]``."""

    def predict(self, q: Tensor, k: Tensor, *, lengths: Lengths = None, causal: bool = False) -> Tensor:
        """Return the predicted pairs of a whole sequence, where Q = K unless `cross` is True; see :meth:`Predictor.predict`.

        Raises
        ------
        ValueError
        """
        queries, keys = checked_inputs(q, k, lengths)
        if not self.cross and q.shape[2] != k.shape[2]:
            raise ValueError(
                f"`q` must have as many queries as keys for {type(self).__name__}, which is for self-attention, "
                f"got {q.shape[2]} queries and {k.shape[2]} keys"
            )
        visible = visible_pairs(q.shape[0], q.shape[2], k.shape[2], lengths, causal, q.device)
        query_positions = torch.arange(q.shape[2], device=q.device)[None, None, :, None]
        key_positions = torch.arange(k.shape[2], device=q.device)[None, None, None]
        rows = Rows(queries.vectors, keys.vectors, visible, query_positions, key_positions, causal)
        return self.pairs(rows).expand(*q.shape[:3], k.shape[2])
