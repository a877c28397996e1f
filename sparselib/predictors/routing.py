"""Routing Transformer (Roy et al. 2021) as Sparsefinder simulates it: each centroid picks its tokens."""

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import normalize, one_hot

from sparselib.checks import Lengths, at_least, one_of
from sparselib.predictors.buckets import Bucketed
from sparselib.predictors.inputs import Tokens, check_centroids, check_points, checked_inputs, matching_centroids
from sparselib.predictors.protocol import Needs

_BATCH = 512  # points per update: one sentence of the papers' length


@dataclass(frozen=True, eq=False)
class Routing(Bucketed):
    """Every centroid of `centroids` ``[H, C, R]`` takes its `width` best queries and `width` best keys.

    Best means the largest dot product of centroid and normalised token, among the real tokens of the
    sentence; equal scores keep their order in the sentence. ``width=None`` is ceil(n / C), n the real length
    (Sparsefinder App. C.2). A token may be taken by several centroids or by none. ``membership="one"`` keeps
    only the first of those that took it, as the reference code does by accident.

    Raises ``ValueError`` for malformed centroids, width < 1 or an unknown membership.

    >>> x = torch.tensor([[1.0, 0.1], [0.9, 0.0], [0.0, 1.0], [0.1, 2.0]]).view(1, 1, 4, 2)
    >>> Routing(centroids=torch.eye(2).view(1, 2, 2)).predict(x, x)[0, 0].int()
    tensor([[1, 1, 0, 0],
            [1, 1, 0, 0],
            [0, 0, 1, 1],
            [0, 0, 1, 1]], dtype=torch.int32)
    """

    needs: ClassVar[Needs] = Needs(prefix=True, centroids="routing")

    centroids: Tensor = field(repr=False)
    width: int | None = None
    membership: str = "all"

    def __post_init__(self) -> None:
        check_centroids(self.centroids)
        one_of("membership", self.membership, ("all", "one"))
        if self.width is not None:
            at_least("width", self.width, 1)

    def assign(self, q: Tensor, k: Tensor, lengths: Lengths = None) -> tuple[Tensor, Tensor]:
        """``[B, H, Q, R]``, ``[B, H, K, R]`` -> ``Bool[B, H, Q, C]``, ``Bool[B, H, K, C]``."""
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
    """Where the `width` ``[B, 1, 1, 1]`` largest of `scores` ``[B, H, C, N]`` are, the first among equals.

    The same as a stable sort and a cut, in a third of the time.
    """
    best = scores.topk(max(1, int(width.max()))).values
    last = best.gather(-1, (width - 1).clamp_min(0).expand(*best.shape[:-1], 1))
    above, level = scores > last, scores == last
    room = width - above.sum(dim=-1, keepdim=True)
    return above | (level & (level.cumsum(dim=-1) <= room))


def fit_routing_centroids(points: Tensor, clusters: int, seed: int, decay: float = 0.999) -> Tensor:
    """Spherical k-means by moving average, for one epoch: ``[H, N, R]`` -> unit vectors ``[H, C, R]``.

    Centroids start at random points; each batch then moves every centroid by 1 - decay towards the mean
    direction of the points nearest to it ("routing_trained" in the reference code). At the published decay they stay
    close to where they start: that is the baseline.

    Raises ``ValueError`` if there are fewer points than clusters, NaN or infinite ones, or decay is not in 0..1.

    >>> fit_routing_centroids(torch.randn(4, 100, 8), clusters=6, seed=0).shape
    torch.Size([4, 6, 8])
    """
    check_points(points, clusters)
    if not 0 <= decay <= 1:
        raise ValueError(f"decay must be in 0..1, got {decay}")
    generator = torch.Generator().manual_seed(seed)
    directions = normalize(points.detach(), dim=-1)
    centroids = directions[:, torch.randperm(points.shape[1], generator=generator)[:clusters]]
    for batch in torch.randperm(points.shape[1], generator=generator).split(_BATCH):
        seen = directions[:, batch]
        nearest = one_hot((seen @ centroids.mT).argmax(-1), clusters).to(seen.dtype)  # [H, batch, C]
        mean = normalize(nearest.mT @ seen, dim=-1)  # zero, and so without effect, where no point is nearest
        centroids = normalize(decay * centroids + (1 - decay) * mean, dim=-1)
    return centroids
