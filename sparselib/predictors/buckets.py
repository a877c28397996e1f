"""The rule behind quantization, clustering, routing and hashing: an edge is a shared bucket (Eq. 6)."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from sparselib.checks import Lengths
from sparselib.masks.visible import visible_pairs


class Bucketed(ABC):
    """A predictor that puts each query and key in some buckets; subclasses say in which.

    >>> class BySign(Bucketed):
    ...     def assign(self, q, k, lengths=None):
    ...         return tuple(torch.cat([x < 0, x >= 0], dim=-1) for x in (q, k))
    >>> x = torch.tensor([-1.0, 2.0, 3.0]).view(1, 1, 3, 1)
    >>> BySign().predict(x, x)[0, 0].int()
    tensor([[1, 0, 0],
            [0, 1, 1],
            [0, 1, 1]], dtype=torch.int32)
    """

    @abstractmethod
    def assign(self, q: Tensor, k: Tensor, lengths: Lengths = None) -> tuple[Tensor, Tensor]:
        """Buckets of the queries ``Bool[B, H, Q, C]`` and of the keys ``Bool[B, H, K, C]``, none for padding.

        q, k: ``[B, H, N, R]``, projected. Raises ``ValueError`` for malformed inputs or lengths.
        """

    def predict(self, q: Tensor, k: Tensor, *, lengths: Lengths = None, causal: bool = False) -> Tensor:
        """``Bool[B, H, Q, K]``: visible pairs that share a bucket. Raises ``ValueError`` as `assign` does."""
        query_buckets, key_buckets = self.assign(q, k, lengths)
        visible = visible_pairs(q.shape[0], q.shape[2], k.shape[2], lengths, causal, q.device)
        return share_a_bucket(query_buckets, key_buckets) & visible


def share_a_bucket(query_buckets: Tensor, key_buckets: Tensor) -> Tensor:
    """Eq. 6: ``Bool[B, H, Q, C]``, ``Bool[B, H, K, C]`` -> ``Bool[B, H, Q, K]``.

    >>> queries = torch.tensor([[True, False], [False, True]]).view(1, 1, 2, 2)
    >>> share_a_bucket(queries, queries.flip(2))[0, 0].int()
    tensor([[0, 1],
            [1, 0]], dtype=torch.int32)
    """
    # The product counts the shared buckets: exact in float32, and only zero or not matters.
    return (query_buckets.float() @ key_buckets.float().mT).bool()


def membership(ids: Tensor, count: int, real: Tensor) -> Tensor:
    """Bucket ids ``[B, H, N, M]`` in 0..count-1 -> ``Bool[B, H, N, count]``, all False where `real` is."""
    buckets = torch.zeros(*ids.shape[:-1], count, dtype=torch.bool, device=ids.device)
    return buckets.scatter_(-1, ids, real.expand(ids.shape))
