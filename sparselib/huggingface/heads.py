"""The predictor settings of each head as data, and the layer's predictor made from them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from sparselib.checks import Lengths, one_of
from sparselib.huggingface.nearest import Nearest
from sparselib.masks import combine
from sparselib.predictors import Clustering, Distance, Needs, Predictor

DENSE = "dense"
#: Families that predict pairs, the one that predicts blocks, whose projections are learned for blocks, and the caller's.
PAIRS, BLOCKS, OWN = ("distance", "kmeans", "window"), "blocks", "own"
CLUSTERS, TOP_K = (4, 8, 16), (1, 2)
SHARES = (0.875, 0.75, 0.625, 0.5, 0.4375, 0.375, 0.3125, 0.25, 0.1875, 0.125, 0.0625, 0.03125)
WINDOWS = (255, 127, 63, 31, 15, 7)


@dataclass(frozen=True, eq=False)
class Own:
    """A caller's predictor of all heads of a layer; equal to itself alone, because its tensors cannot be compared."""

    predictor: Predictor

    def __str__(self) -> str:
        given = {name: x for name, x in vars(self.predictor).items() if isinstance(x, int | float | str)}
        return f"{type(self.predictor).__name__}({', '.join(f'{name}={x}' for name, x in given.items())})"


@dataclass(frozen=True)
class Setting:
    """One head's predictor: its family, the family's numbers, and the total width of the window added to it.

    The family ``"blocks"`` visits, for each query block of `size` tokens, the nearest `share` of the key blocks, and no window.

    Raise ``ValueError`` for an unknown family or numbers that it cannot have.
    """

    family: str
    window: int = 0
    threshold: float = 0.0
    clusters: int = 0
    top_k: int = 0
    share: float = 0.0
    size: int = 0
    own: Own | None = None

    def __post_init__(self):
        one_of("family", self.family, (DENSE, *PAIRS, BLOCKS) if self.own is None else (OWN,))
        if not isinstance(self.own, Own | None):
            raise ValueError(f"`own` must be a predictor, got {self.own!r}")
        for name in ("window", "clusters", "top_k", "size"):
            value = getattr(self, name)
            if type(value) is not int or value < 0:
                raise ValueError(f"`{name}` must be a whole number of at least 0, got {value!r}")
        if type(self.threshold) not in (int, float) or not 0 <= self.threshold < math.inf:
            raise ValueError(f"`threshold` must be a finite number of at least 0, got {self.threshold!r}")
        if self.family == "kmeans" and not 1 <= self.top_k <= self.clusters:
            raise ValueError(f"`top_k` must be from 1 to the {self.clusters} clusters, got {self.top_k}")
        if type(self.share) not in (int, float) or not 0 <= self.share <= 1:
            raise ValueError(f"`share` must be a number from 0 to 1, got {self.share!r}")
        if self.family == BLOCKS and not (self.share and self.size):
            raise ValueError(f"`share` and `size` must be above 0 for blocks, got {self.share} and {self.size}")

    def __str__(self) -> str:
        if self.family == BLOCKS:
            return f"nearest {self.share:.4g} of the blocks of {self.size}"
        if self.family == "distance":
            return f"distance of {self.threshold:.3g}"
        if self.family == "kmeans":
            return f"top {self.top_k} of {self.clusters} clusters"
        if self.family == OWN:
            return str(self.own)
        return f"window of {self.window}" if self.family == "window" else self.family


def settings(family: str, window: int, thresholds: Sequence[float], clusters: Sequence[int]) -> list[Setting]:
    """Return a family's settings for one head in the order of testing, from dense to sparse.

    Raise ``ValueError`` for an unknown family of pairs.
    """
    one_of("predictors", family, PAIRS)
    if family == "distance":
        sparse = [Setting(family, window, threshold=threshold) for threshold in thresholds]
    elif family == "kmeans":
        sparse = [Setting(family, window, clusters=count, top_k=top_k) for count in clusters for top_k in TOP_K]
    else:
        sparse = [Setting(family, width) for width in WINDOWS if width >= window]
    return [Setting(DENSE), *sparse]


def block_settings(size: int) -> list[Setting]:
    """Return the settings that predict blocks of `size` tokens, in the order of testing, from dense to sparse."""
    return [Setting(DENSE), *(Setting(BLOCKS, share=share, size=size) for share in SHARES)]


def own_settings(predictors: Sequence[Predictor], window: int) -> list[Setting]:
    """Return the settings of a caller's predictors; those of one class are a family, whose first setting is dense."""
    families: dict[type, list[Setting]] = {}
    for predictor in predictors:
        families.setdefault(type(predictor), [Setting(DENSE)]).append(Setting(OWN, window, own=Own(predictor)))
    return [setting for family in families.values() for setting in family]


@dataclass(frozen=True, eq=False)
class PerHead:
    """A predictor of groups of heads: each has the heads' numbers ``[G]``, a predictor or None, and a window's total width."""

    needs: ClassVar[Needs] = Needs()

    groups: tuple[tuple[Tensor, Predictor | Own | None, int], ...]

    def predict(self, q: Tensor, k: Tensor, *, lengths: Lengths = None, causal: bool = False) -> Tensor:
        """Return the predicted pairs, ``Bool[B, H, Q, K]``, including windows; see :meth:`Predictor.predict`."""
        pairs = torch.zeros(*q.shape[:3], k.shape[2], dtype=torch.bool, device=q.device)
        for heads, predictor, window in self.groups:
            predicted = pairs[:, heads]
            if isinstance(predictor, Own):
                predicted = predictor.predictor.predict(q, k, lengths=lengths, causal=causal)[:, heads]
            elif predictor is not None:
                predicted = predictor.predict(q[:, heads], k[:, heads], lengths=lengths, causal=causal)
            pairs[:, heads] = combine(predicted, window, "none", lengths, causal)
        return pairs


def per_head(chosen: Sequence[Setting], centroids: Mapping[int, Tensor]) -> PerHead:
    """Return a layer's predictor from each head's setting and the layer's centroids, ``{clusters: [H, C, R]}``."""
    members: dict[tuple, list[int]] = {}
    for head, setting in enumerate(chosen):
        key = (setting.family, setting.window, setting.clusters, setting.top_k, setting.size, setting.own)
        members.setdefault(key, []).append(head)
    groups = []
    for (family, window, clusters, top_k, size, own), group in members.items():
        heads = torch.tensor(group)
        if family == "kmeans":
            predictor = Clustering(centroids[clusters][heads], top_k)
        elif family == "window":
            predictor = None  # The predictor Nothing refuses fewer queries than keys, as in decoding from a cache.
        elif family == "distance":
            predictor = Distance(torch.tensor([chosen[head].threshold for head in group]))
        elif family == BLOCKS:
            predictor = Nearest(torch.tensor([chosen[head].share for head in group]), size)
        elif family == OWN:
            predictor = own
        else:
            predictor = Distance(torch.inf)
        groups.append((heads, predictor, window))
    return PerHead(tuple(groups))
