"""The rule of quantization, clustering, routing and hashing: an edge is a shared bucket (Eq. 6)."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from sparselib.checks import Lengths
from sparselib.masks.visible import visible_pairs


class Bucketed(ABC):
    """A predictor that assigns queries and keys to buckets; subclasses implement :meth:`assign`.

    Examples
    --------
    >>> class BySign(Bucketed):
    ...     def assign(self, q, k, lengths=None):
    ...         return tuple(torch.cat([x < 0, x >= 0], dim=-1) for x in (q, k))
    >>> x = torch.tensor([-1.0, 2.0, 3.0]).view(1, 1, 3, 1)
    >>> BySign().predict(x, x)[0, 0].int().tolist()
    [[1, 0, 0], [0, 1, 1], [0, 1, 1]]
    """

    @abstractmethod
    def assign(self, q: Tensor, k: Tensor, lengths: Lengths = None) -> tuple[Tensor, Tensor]:
        """Return the buckets ``Bool[B, H, Q, C]`` and ``Bool[B, H, K, C]`` of queries and keys; padding is in no bucket.

        Raises
        ------
        ValueError
        """

    def predict(self, q: Tensor, k: Tensor, *, lengths: Lengths = None, causal: bool = False) -> Tensor:
        """Return the visible pairs that share a bucket; see :meth:`Predictor.predict`."""
        query_buckets, key_buckets = self.assign(q, k, lengths)
        visible = visible_pairs(q.shape[0], q.shape[2], k.shape[2], lengths, causal, q.device)
        return share_a_bucket(query_buckets, key_buckets) & visible


def share_a_bucket(query_buckets: Tensor, key_buckets: Tensor) -> Tensor:
    """Return the pairs ``Bool[B, H, Q, K]`` of queries and keys that share a bucket (Eq. 6).

    Parameters
    ----------
    query_buckets, key_buckets : Bool Tensor ``[B, H, Q, C]``, ``[B, H, K, C]``

    Examples
    --------
    >>> queries = torch.tensor([[True, False], [False, True]]).view(1, 1, 2, 2)
    >>> share_a_bucket(queries, queries.flip(2))[0, 0].int().tolist()
    [[0, 1], [1, 0]]
    """
    # The product counts shared buckets. Only zero or not matters, and float32 counts exactly.
    return (query_buckets.float() @ key_buckets.float().mT).bool()


def membership(ids: Tensor, count: int, real: Tensor) -> Tensor:
    """Convert bucket numbers ``[B, H, N, M]`` in 0..count-1 to ``Bool[B, H, N, count]``, all False where `real` is False."""
    buckets = torch.zeros(*ids.shape[:-1], count, dtype=torch.bool, device=ids.device)
    return buckets.scatter_(-1, ids, real.expand(ids.shape))
