"""How each head of a layer predicts, as data, and the one predictor of the layer that follows from it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from sparselib.checks import Lengths, one_of
from sparselib.masks import combine
from sparselib.predictors import Clustering, Distance, Needs, Nothing, Predictor

DENSE = "dense"
FAMILIES = ("distance", "kmeans", "window")
CLUSTERS, TOP_K = (4, 8, 16), (1, 2)
WINDOWS = (255, 127, 63, 31, 15, 7)


@dataclass(frozen=True)
class Setting:
    """How one head predicts: a family, its numbers, and the total width of the window beside it."""

    family: str
    window: int = 0
    threshold: float = 0.0
    clusters: int = 0
    top_k: int = 0

    def __str__(self) -> str:
        if self.family == "distance":
            return f"distance of {self.threshold:.3g}"
        if self.family == "kmeans":
            return f"top {self.top_k} of {self.clusters} clusters"
        return f"window of {self.window}" if self.family == "window" else self.family


def settings(family: str, window: int, thresholds: Sequence[float], clusters: Sequence[int]) -> list[Setting]:
    """The settings of a family for one head, in the order in which they are tested: the densest first.

    Raises ``ValueError`` for an unknown family.
    """
    one_of("predictors", family, FAMILIES)
    if family == "distance":
        found = [Setting(family, window, threshold=threshold) for threshold in thresholds]
    elif family == "kmeans":
        found = [Setting(family, window, clusters=count, top_k=top_k) for count in clusters for top_k in TOP_K]
    else:
        found = [Setting(family, width) for width in WINDOWS if width >= window]
    return [Setting(DENSE), *found]


@dataclass(frozen=True, eq=False)
class PerHead:
    """Groups of heads ``[G]``, each with a predictor and the total width of a window of its own."""

    needs: ClassVar[Needs] = Needs()

    groups: tuple[tuple[Tensor, Predictor, int], ...]

    def predict(self, q: Tensor, k: Tensor, *, lengths: Lengths = None, causal: bool = False) -> Tensor:
        """``[B, H, Q, R]``, ``[B, H, K, R]`` -> ``Bool[B, H, Q, K]``, windows included."""
        found = torch.zeros(*q.shape[:3], k.shape[2], dtype=torch.bool, device=q.device)
        for heads, predictor, window in self.groups:
            predicted = predictor.predict(q[:, heads], k[:, heads], lengths=lengths, causal=causal)
            found[:, heads] = combine(predicted, window, "none", lengths, causal)
        return found


def per_head(chosen: Sequence[Setting], centroids: Mapping[int, Tensor]) -> PerHead:
    """The predictor of a layer, from the setting of each head and the layer's ``centroids``, ``{clusters: [H, C, R]}``."""
    groups: dict[tuple, list[int]] = {}
    for head, one in enumerate(chosen):
        groups.setdefault((one.family, one.window, one.clusters, one.top_k), []).append(head)
    made = []
    for (family, window, clusters, top_k), members in groups.items():
        heads = torch.tensor(members)
        if family == "kmeans":
            predictor = Clustering(centroids[clusters][heads], top_k)
        elif family == "window":
            predictor = Nothing()
        elif family == "distance":
            predictor = Distance(torch.tensor([chosen[head].threshold for head in members]))
        else:
            predictor = Distance(torch.inf)
        made.append((heads, predictor, window))
    return PerHead(tuple(made))
