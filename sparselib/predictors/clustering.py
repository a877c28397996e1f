"""Buckets through clustering (Sparsefinder §4.5): each token in its nearest of some k-means centroids."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from sparselib.checks import Lengths, one_of
from sparselib.predictors.buckets import Bucketed, membership
from sparselib.predictors.inputs import Tokens, check_centroids, check_points, checked_inputs, matching_centroids
from sparselib.predictors.protocol import Needs


@dataclass(frozen=True, eq=False)
class Clustering(Bucketed):
    """Tokens in the clusters of their `top_k` nearest `centroids` ``[H, C, R]`` (Eqs. 8-9).

    `match`: "intersection" gives an edge to any shared cluster, as the paper says. "rank_aligned" compares
    the nearest cluster with the nearest, the second with the second, and so on: what the reference code did
    in its perplexity runs. They differ for top_k > 1 only. Of equally near centroids the first is
    taken.

    Raises ``ValueError`` for malformed centroids, top_k outside 1..C or an unknown match.

    >>> x = torch.tensor([0.0, 0.2, 5.0]).view(1, 1, 3, 1)
    >>> Clustering(centroids=torch.tensor([[[0.0], [4.0]]])).predict(x, x)[0, 0].int()
    tensor([[1, 1, 0],
            [1, 1, 0],
            [0, 0, 1]], dtype=torch.int32)
    """

    needs: ClassVar[Needs] = Needs(centroids="kmeans")

    centroids: Tensor = field(repr=False)
    top_k: int = 1
    match: str = "intersection"

    def __post_init__(self) -> None:
        check_centroids(self.centroids)
        one_of("match", self.match, ("intersection", "rank_aligned"))
        if not 1 <= self.top_k <= self.centroids.shape[1]:
            raise ValueError(f"top_k must be in 1..{self.centroids.shape[1]}, the clusters; got {self.top_k}")

    def assign(self, q: Tensor, k: Tensor, lengths: Lengths = None) -> tuple[Tensor, Tensor]:
        """``[B, H, Q, R]``, ``[B, H, K, R]`` -> ``Bool[B, H, Q, C]``, ``Bool[B, H, K, C]``; rank-aligned: k * C."""
        queries, keys = checked_inputs(q, k, lengths)
        return self._buckets(queries), self._buckets(keys)

    def _buckets(self, tokens: Tokens) -> Tensor:
        centroids = matching_centroids(self.centroids, tokens)
        # argmin ||x - c||² = argmax x.c - ||c||² / 2: the token's own norm is the same for every centroid.
        closeness = tokens.vectors @ centroids.mT - centroids.square().sum(-1)[:, None] / 2  # [B, H, N, C]
        nearest = _best(closeness, self.top_k)
        if self.match == "intersection":
            return membership(nearest, centroids.shape[1], tokens.real)
        rank = torch.arange(self.top_k, device=nearest.device)
        return membership(nearest + centroids.shape[1] * rank, centroids.shape[1] * self.top_k, tokens.real)


def _best(scores: Tensor, count: int) -> Tensor:
    """Indices of the `count` largest scores, best first and the first among equals: -> ``[..., count]``."""
    # For the papers' counts, 1 and 2, argmax passes beat a stable sort; topk would leave ties open.
    chosen = []
    for _ in range(count):
        chosen.append(scores.argmax(dim=-1, keepdim=True))
        scores = scores.scatter(-1, chosen[-1], -torch.inf)
    return torch.cat(chosen, dim=-1)


def fit_centroids(points: Sequence[Tensor], clusters: int, seed: int) -> Tensor:
    """k-means, one fit per head, of projected queries and keys together: H tensors ``[N, R]`` -> float32 `[H,
    C, R]`.

    scikit-learn with the settings of the paper's App. C: k-means++, 10 initialisations, 300 iterations. The
    same seed gives the same centroids.

    Raises ``ValueError`` if a head has fewer points than clusters, or NaN or infinite ones.

    >>> points = [torch.tensor([[0.0], [0.2], [5.0], [5.2]])]
    >>> fit_centroids(points, clusters=2, seed=0).sort(1).values
    tensor([[[0.1000],
             [5.1000]]])
    """
    from sklearn.cluster import KMeans  # here, because it takes a second to import and only fitting needs it
    from threadpoolctl import threadpool_limits

    per_head = [torch.as_tensor(head).detach().cpu().float() for head in points]
    for head in per_head:
        check_points(head, clusters)
    kmeans = KMeans(clusters, init="k-means++", n_init=10, max_iter=300, random_state=seed)
    # One OpenMP thread: with several, partial sums are added in the order of arrival, and the last bits vary.
    with threadpool_limits(1, user_api="openmp"):
        return torch.stack([torch.from_numpy(kmeans.fit(head.numpy()).cluster_centers_) for head in per_head])
