"""Which blocks of keys a block of queries attends to, from the vectors of their chunks (Sparsefinder §6.1).

Inputs are chunk vectors ``[B, H, N, R]`` (``sparselib.blocks.chunks``) and `lengths` counts chunks. A prediction is a list
of key blocks for every query block, integers ``[B, H, N, K]``; where there are fewer than K the rest is N, one past the
last. No list holds padding, the future or a block twice. Window and global blocks come later (:func:`sparselib.blocks.unite`).
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from sparselib.blocks.fixed import block_limits
from sparselib.checks import Lengths, at_least, one_of
from sparselib.predictors.inputs import Tokens, check_centroids, checked_inputs, matching_centroids

METRICS = ("sq_euclidean", "dot")
_SCORES = 1 << 22  # scores that NearestBlocks holds at a time, 16 MB of float32


@dataclass(frozen=True)
class NearestBlocks:
    """Version 1: every query chunk takes the `count` key chunks nearest to it.

    `metric`: "sq_euclidean" is the distance that the projections are trained for; "dot" is what the paper writes, the
    largest dot products. (The reference code ranks by 1 for a shared cluster plus a sigmoid that vanishes in rounding,
    so that its choice among the matched is arbitrary.) Which of equally near chunks are taken is left open.

    All N² scores are computed, some rows at a time. Raises ``ValueError`` if count < 1 or the metric is unknown.

    >>> x = torch.tensor([0.0, 5.0, 0.1]).view(1, 1, 3, 1)
    >>> NearestBlocks(count=2).predict(x, x)[0, 0]
    tensor([[0, 2],
            [1, 2],
            [2, 0]])
    """

    count: int
    metric: str = "sq_euclidean"

    def __post_init__(self) -> None:
        at_least("count", self.count, 1)
        one_of("metric", self.metric, METRICS)

    def predict(self, q: Tensor, k: Tensor, *, lengths: Lengths = None, causal: bool = False) -> Tensor:
        """``[B, H, N, R]`` twice -> int64 ``[B, H, N, min(count, N)]``. ``ValueError`` for malformed inputs or lengths."""
        queries, keys, limits = checked_chunks(q, k, lengths, causal)
        batch, heads, count, _ = q.shape
        # argmin ||q - k||² = argmax q.k - ||k||² / 2: the query's own norm is the same for every key.
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
    """Version 2: each centroid of `centroids` ``[H, C, R]`` picks its `count` nearest query and `count` nearest key chunks.

    A query chunk attends to the key chunks of the centroid that picked it, the first of them if there are several. One
    that no centroid picked has no learned block, only window and global blocks: in Routing Transformer, whose strategy
    this is, it would have none at all. (The reference code sends it to the first block, counted `count` times.)

    Memory is that of C N distances and N lists: linear in N. Under `causal` the future is dropped from the lists; which
    chunks a centroid picks still depends on the whole sentence.

    Raises ``ValueError`` for malformed centroids or count < 1.

    >>> x = torch.tensor([0.0, 5.0, 0.1]).view(1, 1, 3, 1)
    >>> ClusteredBlocks(torch.tensor([[[0.0], [5.0]]]), count=1).predict(x, x)[0, 0]  # 3: no block
    tensor([[0],
            [1],
            [3]])
    """

    centroids: Tensor = field(repr=False)
    count: int

    def __post_init__(self) -> None:
        check_centroids(self.centroids)
        at_least("count", self.count, 1)

    def predict(self, q: Tensor, k: Tensor, *, lengths: Lengths = None, causal: bool = False) -> Tensor:
        """``[B, H, N, R]`` twice -> int64 ``[B, H, N, min(count, N)]``. ``ValueError`` for malformed inputs or lengths."""
        queries, keys, limits = checked_chunks(q, k, lengths, causal)
        batch, heads, count, _ = q.shape
        picked = self._picked(queries)  # [B, H, C, K]
        clusters = picked.shape[2]
        centroid = torch.arange(clusters, device=q.device)[:, None].expand_as(picked)
        # Slot N takes what stands for "none"; a chunk that nobody picked keeps the number C, whose list is empty.
        owner = torch.full((batch, heads, count + 1), clusters, device=q.device)
        owner.scatter_reduce_(-1, picked.flatten(2), centroid.flatten(2), "amin")
        lists = torch.nn.functional.pad(self._picked(keys), (0, 0, 0, 1), value=count)  # [B, H, C + 1, K]
        chosen = lists.gather(2, owner[..., :count, None].expand(-1, -1, -1, lists.shape[-1]))
        return chosen.masked_fill(chosen >= limits[:, None, :, None], count)

    def _picked(self, chunks: Tokens) -> Tensor:
        """The real chunks nearest to each centroid, nearest first: ``[B, H, C, min(count, N)]``."""
        centroids = matching_centroids(self.centroids, chunks)
        scores = centroids @ chunks.vectors.mT - chunks.vectors.square().sum(-1)[:, :, None] / 2  # [B, H, C, N]
        return _largest(scores.masked_fill(~chunks.real.mT, -torch.inf), self.count)


def checked_chunks(q: Tensor, k: Tensor, lengths: Lengths, causal: bool) -> tuple[Tokens, Tokens, Tensor]:
    """Chunks to compute with, and how many key blocks each query block may see: ``[B, N]``."""
    if q.shape != k.shape:
        raise ValueError(f"blocks need q and k of one shape, got {tuple(q.shape)} and {tuple(k.shape)}")
    queries, keys = checked_inputs(q, k, lengths)
    return queries, keys, block_limits(queries.real.sum(dim=(1, 2, 3)), q.shape[2], causal)


def _largest(scores: Tensor, count: int) -> Tensor:
    """Indices of the `count` largest of `scores` ``[..., N]``, and N for those that are -inf: ``[..., min(count, N)]``."""
    best = scores.topk(min(count, scores.shape[-1]))
    return best.indices.masked_fill(best.values == -torch.inf, scores.shape[-1])
