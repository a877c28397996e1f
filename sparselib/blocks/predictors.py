"""Predictors of the key blocks that a query block attends to, from chunk vectors (Sparsefinder section 6.1)."""
# Lists of key blocks hold no padding, future or block twice, and are filled up with N, one past the last.

from dataclasses import dataclass, field

import torch
from torch import Tensor

from sparselib.blocks.fixed import block_limits
from sparselib.checks import Lengths, integer_at_least, one_of
from sparselib.predictors.inputs import Tokens, check_centroids, checked_inputs, matching_centroids

METRICS = ("sq_euclidean", "dot")
_SCORES = 1 << 22  # scores in memory at a time in NearestBlocks, 16 MB of float32


@dataclass(frozen=True)
class NearestBlocks:
    """Version 1: every query chunk takes the `count` key chunks nearest to it.

    All N² scores are computed, and any of equally near chunks may be taken. The reference code ranks by 1 for a shared cluster
    plus a sigmoid that vanishes in rounding, so its choice among chunks with a shared cluster is arbitrary.

    Parameters
    ----------
    count : int, the key chunks per query chunk, at least 1
    metric : ``"sq_euclidean"``, as the projections are trained, or ``"dot"``, the largest dot products, as the paper writes

    Examples
    --------
    >>> x = torch.tensor([0.0, 5.0, 0.1]).view(1, 1, 3, 1)
    >>> NearestBlocks(count=2).predict(x, x)[0, 0].tolist()
    [[0, 2], [1, 2], [2, 0]]
    """

    count: int
    metric: str = "sq_euclidean"

    def __post_init__(self) -> None:
        integer_at_least("count", self.count, 1)
        one_of("metric", self.metric, METRICS)

    def predict(self, q: Tensor, k: Tensor, *, lengths: Lengths = None, causal: bool = False) -> Tensor:
        """Return key blocks, int64 ``[B, H, N, min(count, N)]``, for chunk vectors ``[B, H, N, R]`` and `lengths` in chunks."""
        queries, keys, limits = checked_chunks(q, k, lengths, causal)
        batch, heads, count, _ = q.shape
        # argmin ||q - k||² = argmax q.k - ||k||² / 2, because the query's norm is the same for every key.
        shift = keys.vectors.square().sum(-1)[:, :, None] / 2 if self.metric == "sq_euclidean" else 0
        step = max(1, _SCORES // (batch * heads * count))
        parts = []
        for start in range(0, count, step):
            rows = slice(start, start + step)
            scores = queries.vectors[:, :, rows] @ keys.vectors.mT - shift  # [B, H, step, N]
            hidden = torch.arange(count, device=q.device) >= limits[:, None, rows, None]
            parts.append(_largest(scores.masked_fill(hidden, -torch.inf), self.count))
        return torch.cat(parts, dim=2)


@dataclass(frozen=True, eq=False)
class ClusteredBlocks:
    """Version 2: each centroid picks its `count` nearest query chunks and `count` nearest key chunks, in memory linear in N.

    A query chunk attends to the key chunks of the first centroid that picked it, or to no predicted block if none did (in the
    reference code to the first block). Under `causal`, picks still depend on the whole sentence.

    Parameters
    ----------
    centroids : Tensor ``[H, C, R]``, finite
    count : int, the chunks per centroid, at least 1

    Examples
    --------
    >>> x = torch.tensor([0.0, 5.0, 0.1]).view(1, 1, 3, 1)
    >>> ClusteredBlocks(torch.tensor([[[0.0], [5.0]]]), count=1).predict(x, x)[0, 0].tolist()  # 3: no block
    [[0], [1], [3]]
    """

    centroids: Tensor = field(repr=False)
    count: int

    def __post_init__(self) -> None:
        check_centroids(self.centroids)
        integer_at_least("count", self.count, 1)

    def predict(self, q: Tensor, k: Tensor, *, lengths: Lengths = None, causal: bool = False) -> Tensor:
        """Return key blocks, int64 ``[B, H, N, min(count, N)]``; see :meth:`NearestBlocks.predict`."""
        queries, keys, limits = checked_chunks(q, k, lengths, causal)
        batch, heads, count, _ = q.shape
        picked = self._picked(queries)  # [B, H, C, K]
        clusters = picked.shape[2]
        centroid = torch.arange(clusters, device=q.device)[:, None].expand_as(picked)
        # Slot N absorbs the fill value; a chunk that no centroid picked keeps the number C, whose list is empty.
        owner = torch.full((batch, heads, count + 1), clusters, device=q.device)
        owner.scatter_reduce_(-1, picked.flatten(2), centroid.flatten(2), "amin")
        lists = torch.nn.functional.pad(self._picked(keys), (0, 0, 0, 1), value=count)  # [B, H, C + 1, K]
        chosen = lists.gather(2, owner[..., :count, None].expand(-1, -1, -1, lists.shape[-1]))
        return chosen.masked_fill(chosen >= limits[:, None, :, None], count)

    def _picked(self, chunks: Tokens) -> Tensor:
        centroids = matching_centroids(self.centroids, chunks)
        scores = centroids @ chunks.vectors.mT - chunks.vectors.square().sum(-1)[:, :, None] / 2  # [B, H, C, N]
        return _largest(scores.masked_fill(~chunks.real.mT, -torch.inf), self.count)


def checked_chunks(q: Tensor, k: Tensor, lengths: Lengths, causal: bool) -> tuple[Tokens, Tokens, Tensor]:
    if q.shape != k.shape:
        raise ValueError(
            f"`q` and `k` must have one shape to predict blocks, got {tuple(q.shape)} and {tuple(k.shape)}"
        )
    queries, keys = checked_inputs(q, k, lengths)
    return queries, keys, block_limits(queries.real.sum(dim=(1, 2, 3)), q.shape[2], causal)


def _largest(scores: Tensor, count: int) -> Tensor:
    best = scores.topk(min(count, scores.shape[-1]))
    return best.indices.masked_fill(best.values == -torch.inf, scores.shape[-1])
