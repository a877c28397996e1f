"""Routing Transformer (Roy et al. 2021) as simulated by Sparsefinder: each centroid picks its tokens."""

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import normalize, one_hot

from sparselib.checks import Lengths, integer_at_least, one_of
from sparselib.masks.visible import visible_pairs
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

    def predict(self, q: Tensor, k: Tensor, *, lengths: Lengths = None, causal: bool = False) -> Tensor:
        if self.membership != "all" or self.width is not None:
            return super().predict(q, k, lengths=lengths, causal=causal)
        # C centroids pick (n / C)² pairs each, so all of them n² / C, while sharing a bucket takes n² C multiplications.
        query, key = (self._picked(tokens) for tokens in checked_inputs(q, k, lengths))
        queries, keys = q.shape[2], k.shape[2]
        pairs = query[..., :, None] * (keys + 1) + key[..., None, :]  # [B, H, C, width, width]
        picked = torch.zeros(*q.shape[:2], (queries + 1) * (keys + 1), dtype=torch.bool, device=q.device)
        picked = picked.scatter_(-1, pairs.flatten(2), True).view(*q.shape[:2], queries + 1, keys + 1)
        return picked[..., :-1, :-1] & visible_pairs(q.shape[0], queries, keys, lengths, causal, q.device)

    def _buckets(self, tokens: Tokens) -> Tensor:
        picked, length = self._picked(tokens), tokens.vectors.shape[2]
        members = torch.zeros(*picked.shape[:3], length + 1, dtype=torch.bool, device=picked.device)
        members = members.scatter_(-1, picked, True)[..., :-1].mT  # [B, H, N, C]
        return members if self.membership == "all" else members & (members.cumsum(-1) == 1)

    def _picked(self, tokens: Tokens) -> Tensor:
        """Return the tokens ``[B, H, C, width]`` that each centroid picks, and N in place of those that a sentence lacks."""
        centroids = matching_centroids(self.centroids, tokens)
        scores = centroids @ normalize(tokens.vectors, dim=-1).mT  # [B, H, C, N]
        scores.masked_fill_(~tokens.real.mT, -torch.inf)
        lengths = tokens.real.sum(dim=2, keepdim=True)  # [B, 1, 1, 1]
        clusters = centroids.shape[1]
        width = (lengths + clusters - 1) // clusters if self.width is None else lengths.clamp(max=self.width)
        return _first_largest(scores, width)


def _first_largest(scores: Tensor, width: Tensor) -> Tensor:
    """Return the places ``[B, H, C, W]`` of the `width` ``[B, 1, 1, 1]`` largest of `scores`, and N where W is larger."""
    most, length = int(width.max()), scores.shape[-1]
    values, places = scores.topk(min(most + 1, length))
    # topk may take any of equal scores. That matters where the last one that is taken equals the next.
    ends = torch.cat([width - 1, width], dim=-1).clamp(0, values.shape[-1] - 1)
    last, following = values.gather(-1, ends.expand(*values.shape[:-1], 2)).unbind(-1)
    tied = (last == following) & (0 < width[..., 0]) & (width[..., 0] < length)
    places = places[..., :most]
    if tied.any():
        places[tied] = scores[tied].sort(dim=-1, descending=True, stable=True).indices[:, :most]
    return places.masked_fill(torch.arange(most, device=scores.device) >= width, length)


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
