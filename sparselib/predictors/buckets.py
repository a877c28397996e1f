"""The rule of quantization, clustering, routing and hashing: an edge is a shared bucket (Eq. 6)."""

from abc import ABC, abstractmethod
from itertools import product

import torch
from torch import Tensor

from sparselib.checks import Lengths
from sparselib.masks.visible import visible_pairs
from sparselib.predictors.inputs import Tokens, checked_inputs


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


class NumberedBuckets(Bucketed):
    """A predictor that puts each token into one bucket in each of M ways; an edge needs the same bucket in any way.

    Subclasses implement :meth:`_number`, and say in `_buckets_per_way` how many buckets a way has.
    """

    @property
    def _ways_share(self) -> bool:
        """Whether all ways have the same buckets: one way of a query may have the bucket of another way of a key."""
        return False

    @property
    @abstractmethod
    def _buckets_per_way(self) -> int:
        """The number of buckets that tokens are distributed over in each way."""

    @abstractmethod
    def _number(self, queries: Tokens, keys: Tokens) -> tuple[Tensor, Tensor]:
        """Return the bucket numbers, ``int64[B, H, Q, M]`` and ``int64[B, H, K, M]``; those of padding are ignored."""

    def assign(self, q: Tensor, k: Tensor, lengths: Lengths = None) -> tuple[Tensor, Tensor]:
        queries, keys = checked_inputs(q, k, lengths)
        query_numbers, key_numbers = self._number(queries, keys)
        return self._buckets(query_numbers, queries), self._buckets(key_numbers, keys)

    def predict(self, q: Tensor, k: Tensor, *, lengths: Lengths = None, causal: bool = False) -> Tensor:
        numbers = [x.unbind(-1) for x in self._number(*checked_inputs(q, k, lengths))]
        ways = list(product(*numbers) if self._ways_share else zip(*numbers, strict=True))
        # With 512 tokens, the product over buckets takes as long as three comparisons, and one more for every eight buckets.
        if len(ways) > 3 + self._buckets_per_way // 8:
            return super().predict(q, k, lengths=lengths, causal=causal)
        compact = torch.int16 if self._buckets_per_way < 2**15 else torch.int32
        shared = torch.zeros(*q.shape[:3], k.shape[2], dtype=torch.bool, device=q.device)
        for query_number, key_number in ways:
            shared |= query_number.to(compact)[..., :, None] == key_number.to(compact)[..., None, :]
        return shared & visible_pairs(q.shape[0], q.shape[2], k.shape[2], lengths, causal, q.device)

    def _buckets(self, numbers: Tensor, tokens: Tokens) -> Tensor:
        ways = 1 if self._ways_share else numbers.shape[-1]
        first = self._buckets_per_way * torch.arange(ways, device=numbers.device)
        buckets = torch.zeros(
            *numbers.shape[:-1], ways * self._buckets_per_way, dtype=torch.bool, device=numbers.device
        )
        return buckets.scatter_(-1, numbers + first, tokens.real.expand(numbers.shape))


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
