"""Reformer (Kitaev et al. 2020) as Sparsefinder simulates it: hashing by random rotations."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from sparselib.checks import Lengths, at_least
from sparselib.predictors.buckets import Bucketed, membership
from sparselib.predictors.inputs import checked_inputs
from sparselib.predictors.protocol import Needs


@dataclass(frozen=True)
class Hashing(Bucketed):
    """Each token's query and key, concatenated, are hashed together into one of `buckets` buckets per round.

    The hash is argmax over [xM; -xM] with a Gaussian M per head and round. Query and key of a token share its
    bucket, so the graph is symmetric and holds the diagonal; an edge needs the same bucket in any round. The
    same seed gives the same M for every batch.

    Raises ``ValueError`` unless buckets is even and at least 2, and rounds at least 1.

    >>> x = torch.tensor([[1.0, 0.0], [2.0, 0.0], [-1.0, 0.0]]).view(1, 1, 3, 2)
    >>> Hashing(buckets=2).predict(x, x)[0, 0].int()
    tensor([[1, 1, 0],
            [1, 1, 0],
            [0, 0, 1]], dtype=torch.int32)
    """

    needs: ClassVar[Needs] = Needs(prefix=True, seed=True)

    buckets: int
    rounds: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        at_least("rounds", self.rounds, 1)
        if self.buckets < 2 or self.buckets % 2:
            raise ValueError(f"buckets must be even and at least 2, got {self.buckets}")

    def assign(self, q: Tensor, k: Tensor, lengths: Lengths = None) -> tuple[Tensor, Tensor]:
        """``[B, H, N, R]`` twice -> ``Bool[B, H, N, rounds * buckets]`` twice, the same tensor.

        Raises ``ValueError`` also for unequal numbers of queries and keys.
        """
        if q.shape != k.shape:
            raise ValueError(f"q and k are hashed together and need one shape, got {q.shape} and {k.shape}")
        queries, keys = checked_inputs(q, k, lengths)
        tokens = torch.cat([queries.vectors, keys.vectors], dim=-1)  # [B, H, N, 2R]
        rotated = torch.einsum("bhnd,hrdc->bhnrc", tokens, self._rotations(tokens))
        hashed = torch.cat([rotated, -rotated], dim=-1).argmax(-1)  # [B, H, N, rounds]
        ids = hashed + self.buckets * torch.arange(self.rounds, device=q.device)
        buckets = membership(ids, self.rounds * self.buckets, queries.real)
        return buckets, buckets

    def _rotations(self, tokens: Tensor) -> Tensor:
        """Gaussian ``[H, rounds, 2R, buckets / 2]``, drawn on the CPU: the same on every device."""
        _, heads, _, dimension = tokens.shape
        generator = torch.Generator().manual_seed(self.seed)
        return torch.randn(heads, self.rounds, dimension, self.buckets // 2, generator=generator).to(tokens)
