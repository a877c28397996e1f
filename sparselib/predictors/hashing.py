"""Reformer (Kitaev et al. 2020) as simulated by Sparsefinder: hashing by random rotations."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from sparselib.checks import integer_at_least
from sparselib.predictors.buckets import NumberedBuckets
from sparselib.predictors.inputs import Tokens
from sparselib.predictors.protocol import Needs


@dataclass(frozen=True)
class Hashing(NumberedBuckets):
    """Hash buckets of each token's query and key, concatenated; an edge needs the same bucket in any round.

    The hash is argmax over [xM; -xM] with a Gaussian M per head and round. A token's query and key share a bucket, so the graph
    is symmetric and contains the diagonal.

    Parameters
    ----------
    buckets : int, per round, even and at least 2
    rounds : int, the number of hashes, at least 1
    seed : int, of M, which is the same for every batch

    Raises
    ------
    ValueError

    Examples
    --------
    >>> x = torch.tensor([[1.0, 0.0], [2.0, 0.0], [-1.0, 0.0]]).view(1, 1, 3, 2)
    >>> Hashing(buckets=2).predict(x, x)[0, 0].int().tolist()
    [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
    """

    needs: ClassVar[Needs] = Needs(prefix=True, seed=True)

    buckets: int
    rounds: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        integer_at_least("rounds", self.rounds, 1)
        integer_at_least("buckets", self.buckets, 2)
        if self.buckets % 2:
            raise ValueError(f"`buckets` must be even, since buckets come in pairs, got {self.buckets}")

    @property
    def _buckets_per_way(self) -> int:
        return self.buckets

    def _number(self, queries: Tokens, keys: Tokens) -> tuple[Tensor, Tensor]:
        q, k = queries.vectors, keys.vectors
        if q.shape != k.shape:
            raise ValueError(
                f"`q` and `k` must have one shape to be hashed together, got {tuple(q.shape)} and {tuple(k.shape)}"
            )
        tokens = torch.cat([q, k], dim=-1)  # [B, H, N, 2R]
        # Drawn on the CPU, so that rotations are the same on every device.
        generator = torch.Generator().manual_seed(self.seed)
        shape = (q.shape[1], self.rounds, tokens.shape[-1], self.buckets // 2)
        rotations = torch.randn(shape, generator=generator).to(tokens)
        # One head at a time, whose products stay in the cache.
        numbers = torch.stack([self._hashed(*head) for head in zip(tokens.unbind(1), rotations, strict=True)], dim=1)
        return numbers, numbers

    def _hashed(self, tokens: Tensor, rotations: Tensor) -> Tensor:
        """Return one head's buckets ``[B, N, rounds]``."""
        rotated = torch.einsum("bnd,rdc->bnrc", tokens, rotations)
        # The largest of [xM; -xM] is where |xM| is largest. That needs half of the memory.
        largest = rotated.abs().argmax(-1, keepdim=True)
        return (largest + self.buckets // 2 * (rotated.gather(-1, largest) < 0)).squeeze(-1)
