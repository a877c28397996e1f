"""Buckets by quantization (Sparsefinder §4.4), with the fixed-size bins of the paper's results."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from sparselib.checks import integer_at_least
from sparselib.predictors.buckets import NumberedBuckets
from sparselib.predictors.inputs import Tokens
from sparselib.predictors.protocol import Needs


@dataclass(frozen=True)
class Quantization(NumberedBuckets):
    """Equally full bins of each dimension's values; an edge needs the same bin in any one dimension.

    Queries and keys are ranked separately, per sentence, head and dimension. Bins are filled in order of value with
    ceil(real length / bins) tokens each, so short sentences fill fewer bins, and a decoder token's bin depends on later tokens.

    Parameters
    ----------
    bins : int, per dimension, at least 1

    Examples
    --------
    >>> x = torch.tensor([3.0, 1.0, 2.0, 4.0]).view(1, 1, 4, 1)
    >>> Quantization(bins=2).predict(x, x)[0, 0].int().tolist()
    [[1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 1, 0], [1, 0, 0, 1]]
    """

    needs: ClassVar[Needs] = Needs(prefix=True)

    bins: int

    def __post_init__(self) -> None:
        integer_at_least("bins", self.bins, 1)

    @property
    def _buckets_per_way(self) -> int:
        return self.bins

    def _number(self, queries: Tokens, keys: Tokens) -> tuple[Tensor, Tensor]:
        return self._bins(queries), self._bins(keys)

    def _bins(self, tokens: Tokens) -> Tensor:
        """Return each token's bin in every dimension, ``[B, H, N, R]``."""
        values = tokens.vectors.masked_fill(~tokens.real, torch.inf).mT.contiguous()  # [B, H, R, N]
        order = values.argsort(dim=-1, stable=True)  # padding last
        lengths = tokens.real.sum(dim=2, keepdim=True)  # [B, 1, 1, 1]
        size = ((lengths + self.bins - 1) // self.bins).clamp_min(1)
        rank = torch.arange(values.shape[-1], device=values.device)
        bin_of_rank = (rank // size).clamp(max=self.bins - 1)  # only padding ranks past the last bin
        return torch.empty_like(order).scatter_(-1, order, bin_of_rank.expand_as(order)).mT
