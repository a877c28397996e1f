"""Buckets by clustering (Sparsefinder §4.5): each token is in the cluster of its nearest k-means centroid."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from sparselib.checks import integer_at_least, one_of
from sparselib.predictors.buckets import NumberedBuckets
from sparselib.predictors.inputs import Tokens, check_centroids, check_points, matching_centroids
from sparselib.predictors.protocol import Needs


@dataclass(frozen=True, eq=False)
class Clustering(NumberedBuckets):
    """Tokens in the clusters of their nearest centroids (Eqs. 8-9).

    Parameters
    ----------
    centroids : Tensor ``[H, C, R]``, finite
    top_k : int, the clusters per token, 1 to C, of which the first of equally near ones is taken
    match : str
        ``"intersection"``: any shared cluster is an edge, as in the paper. ``"rank_aligned"``: only clusters of equal rank are
        compared, nearest with nearest and so on, as in the reference code's perplexity runs.

    Raises
    ------
    ValueError

    Examples
    --------
    >>> x = torch.tensor([0.0, 0.2, 5.0]).view(1, 1, 3, 1)
    >>> Clustering(centroids=torch.tensor([[[0.0], [4.0]]])).predict(x, x)[0, 0].int().tolist()
    [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
    """

    needs: ClassVar[Needs] = Needs(centroids="kmeans")

    centroids: Tensor = field(repr=False)
    top_k: int = 1
    match: str = "intersection"

    def __post_init__(self) -> None:
        check_centroids(self.centroids)
        one_of("match", self.match, ("intersection", "rank_aligned"))
        integer_at_least("top_k", self.top_k, 1)
        if self.top_k > self.centroids.shape[1]:
            clusters = self.centroids.shape[1]
            raise ValueError(f"`top_k` must be in 1..{clusters}, the number of clusters, got {self.top_k}")

    @property
    def _ways_share(self) -> bool:
        return self.match == "intersection"

    @property
    def _buckets_per_way(self) -> int:
        return self.centroids.shape[1]

    def _number(self, queries: Tokens, keys: Tokens) -> tuple[Tensor, Tensor]:
        return self._nearest(queries), self._nearest(keys)

    def _nearest(self, tokens: Tokens) -> Tensor:
        centroids = matching_centroids(self.centroids, tokens)
        # argmin ||x - c||² = argmax x.c - ||c||² / 2, because the token's norm is the same for every centroid.
        closeness = tokens.vectors @ centroids.mT - centroids.square().sum(-1)[:, None] / 2  # [B, H, N, C]
        return _best(closeness, self.top_k)


def _best(scores: Tensor, count: int) -> Tensor:
    # For the paper's counts, 1 and 2, repeated argmax is faster than a stable sort; topk would not define ties.
    chosen = []
    for _ in range(count):
        chosen.append(scores.argmax(dim=-1, keepdim=True))
        scores = scores.scatter(-1, chosen[-1], -torch.inf)
    return torch.cat(chosen, dim=-1)


def fit_centroids(points: Sequence[Tensor], clusters: int, seed: int) -> Tensor:
    """Fit k-means centroids, float32 ``[H, C, R]``, separately for each head's queries and keys together, as in App. C.

    Parameters
    ----------
    points : sequence of H Tensors ``[N, R]``, each head's projected queries and keys, N at least C
    clusters : int, the number C of centroids, at least 1
    seed : int

    Examples
    --------
    >>> fit_centroids([torch.tensor([[0.0], [0.2], [5.0], [5.2]])], clusters=2, seed=0).flatten().sort().values
    tensor([0.1000, 5.1000])
    """
    from sklearn.cluster import KMeans  # here, because the import takes a second and only fitting needs it
    from threadpoolctl import threadpool_limits

    # In float64, because scikit-learn converts float32 points for every distance that k-means++ computes.
    per_head = [torch.as_tensor(head).detach().cpu().double() for head in points]
    for head in per_head:
        check_points(head, clusters)
    kmeans = KMeans(clusters, init="k-means++", n_init=3, max_iter=300, random_state=seed)
    # One OpenMP thread: several add partial sums in order of arrival, so the last bits would vary.
    with threadpool_limits(1, user_api="openmp"):
        centers = [torch.from_numpy(kmeans.fit(head.numpy()).cluster_centers_) for head in per_head]
    return torch.stack(centers).float()
