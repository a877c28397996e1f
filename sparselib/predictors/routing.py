"""Routing Transformer (Roy et al. 2021) as simulated by Sparsefinder: each centroid picks its tokens."""

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import normalize, one_hot

from sparselib.checks import Lengths, integer_at_least, one_of
from sparselib.predictors.buckets import Bucketed
from sparselib.predictors.inputs import Tokens, check_centroids, check_points, checked_inputs, matching_centroids
from sparselib.predictors.protocol import Needs

_BATCH = 512  # points per update: one sentence of the paper's length


@dataclass(frozen=True, eq=False)
class Routing(Bucketed):
    """Tokens picked by each centroid: its best queries and its best keys. Several centroids, or none, may pick a token.

    Best means the largest dot product of centroid and normalised real token; equal scores keep their order in the sentence.

    Parameters
    ----------
    centroids : Tensor ``[H, C, R]``, finite
    width : int, optional, queries and keys per centroid, at least 1, by default ceil(real length / C) (Sparsefinder App. C.2)
    membership : ``"all"``, or ``"one"`` to keep only a token's first centroid, as the reference code does by accident

    Examples
    --------
    >>> x = torch.tensor([[1.0, 0.1], [0.9, 0.0], [0.0, 1.0], [0.1, 2.0]]).view(1, 1, 4, 2)
    >>> Routing(centroids=torch.eye(2).view(1, 2, 2)).predict(x, x)[0, 0].int().tolist()
    [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]]
    """

    needs: ClassVar[Needs] = Needs(prefix=True, centroids="routing")

    centroids: Tensor = field(repr=False)
    width: int | None = None
    membership: str = "all"

    def __post_init__(self) -> None:
        check_centroids(self.centroids)
        one_of("membership", self.membership, ("all", "one"))
        if self.width is not None:
            integer_at_least("width", self.width, 1)

    def assign(self, q: Tensor, k: Tensor, lengths: Lengths = None) -> tuple[Tensor, Tensor]:
        queries, keys = checked_inputs(q, k, lengths)
        return self._buckets(queries), self._buckets(keys)

    def _buckets(self, tokens: Tokens) -> Tensor:
        centroids = matching_centroids(self.centroids, tokens)
        scores = centroids @ normalize(tokens.vectors, dim=-1).mT  # [B, H, C, N]
        scores = scores.masked_fill(~tokens.real.mT, -torch.inf)
        lengths = tokens.real.sum(dim=2, keepdim=True)  # [B, 1, 1, 1]
        clusters = centroids.shape[1]
        width = (lengths + clusters - 1) // clusters if self.width is None else lengths.clamp(max=self.width)
        members = _first_largest(scores, width).mT  # [B, H, N, C]
        return members if self.membership == "all" else members & (members.cumsum(-1) == 1)


def _first_largest(scores: Tensor, width: Tensor) -> Tensor:
    """Return where the `width` ``[B, 1, 1, 1]`` largest of `scores` ``[B, H, C, N]`` are, in less time than a stable sort."""
    best = scores.topk(max(1, int(width.max()))).values
    last = best.gather(-1, (width - 1).clamp_min(0).expand(*best.shape[:-1], 1))
    above, tied = scores > last, scores == last
    room = width - above.sum(dim=-1, keepdim=True)
    return above | (tied & (tied.cumsum(dim=-1) <= room))


def fit_routing_centroids(points: Tensor, clusters: int, seed: int, decay: float = 0.999) -> Tensor:
    """Fit unit centroids ``[H, C, R]`` by one epoch of spherical k-means with a moving average.

    Parameters
    ----------
    points : Tensor ``[H, N, R]``, each head's projected queries and keys, N at least C
    clusters : int, the number C of centroids, at least 1
    seed : int, of the start points and of the order of batches
    decay : float, 0 to 1
        Each batch moves a centroid by 1 - decay towards the mean direction of its nearest points.

    Raises
    ------
    ValueError

    Examples
    --------
    >>> fit_routing_centroids(torch.randn(4, 100, 8), clusters=6, seed=0).shape
    torch.Size([4, 6, 8])
    """
    # "routing_trained" in the reference code. At the published decay, centroids stay close to their random start points.
    check_points(points, clusters)
    if not 0 <= decay <= 1:
        raise ValueError(f"`decay` must be between 0 and 1, got {decay}")
    generator = torch.Generator().manual_seed(seed)
    directions = normalize(points.detach(), dim=-1)
    centroids = directions[:, torch.randperm(points.shape[1], generator=generator)[:clusters]]
    for batch in torch.randperm(points.shape[1], generator=generator).split(_BATCH):
        drawn = directions[:, batch]
        nearest = one_hot((drawn @ centroids.mT).argmax(-1), clusters).to(drawn.dtype)  # [H, batch, C]
        mean = normalize(nearest.mT @ drawn, dim=-1)  # zero, which changes no direction, for a centroid without points
        centroids = normalize(decay * centroids + (1 - decay) * mean, dim=-1)
    return centroids
