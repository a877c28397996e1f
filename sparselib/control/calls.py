"""One attention call of a model, and the modes in which a control may compute it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from types import MethodType

import torch
from torch import Tensor

from sparselib.control.certified import CertifiedRows
from sparselib.dense_attention import PLAIN, Scoring, gold_graph
from sparselib.kernels import BlockMask
from sparselib.normalizers import Normalizer, entmax15


@dataclass(frozen=True)
class LayerCall:
    """Inputs of one attention call, as passed to graphs and observers.

    Parameters
    ----------
    layer : int, by the order in which the model calls its layers
    q, k : Tensor ``[B, H, Q, D]``, ``[B, H, K, D]``, before scaling
        In incremental decoding, `q` holds the new positions only, which are the last ones.
    visible : Bool Tensor ``[B, 1, Q, K]``, the model's own mask
    prefix : Tensor ``[B, H, K, D]``, optional
        Queries of the whole prefix, ending with `q`, for a graph that declares ``needs_prefix``.
    positions : integer Tensor ``[Q]``, optional
        Positions of the queries in their own sentence, in fairseq's cross-attention. In self-attention the keys give them.
    scoring : Scoring
    cross : bool, whether the keys come from another sequence than the queries, in Hugging Face's cross-attention
    normalizer : callable, the layer's own

    Examples
    --------
    >>> q = k = 4 * torch.eye(3).view(1, 1, 3, 3)
    >>> LayerCall(0, q, k, visible=torch.ones(1, 1, 3, 3, dtype=torch.bool)).gold()[0, 0].int().tolist()
    [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    """

    layer: int
    q: Tensor
    k: Tensor
    visible: Tensor
    prefix: Tensor | None = None
    positions: Tensor | None = None
    scoring: Scoring = PLAIN
    cross: bool = False
    normalizer: Normalizer = entmax15
    # Not cached properties, whose lock Dynamo cannot trace.
    _computed: dict[str, Tensor] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def scores(self) -> Tensor:
        """The scores ``[B, H, Q, K]``, computed once."""
        if "scores" not in self._computed:
            self._computed["scores"] = self.scoring.scores(self.q, self.k)
        return self._computed["scores"]

    def gold(self) -> Tensor:
        """Return the exact edges ``Bool[B, H, Q, K]`` under the model's own scores and normaliser, computed once."""
        if "gold" not in self._computed:
            self._computed["gold"] = self._gold()
        return self._computed["gold"]

    def split(self, sizes: Sequence[int]) -> list["LayerCall"]:
        """Return one call per group of `sizes` sentences, in order; scores and gold edges are computed for all at once."""
        visible = self.visible.expand(len(self.q), -1, -1, -1)
        prefixes = [None] * len(sizes) if self.prefix is None else self.prefix.split(sizes)
        calls = []
        for q, k, visible_part, prefix, scores, gold in zip(
            *(x.split(sizes) for x in (self.q, self.k, visible)),
            prefixes,
            *(x.split(sizes) for x in (self.scores, self.gold())),
            strict=True,
        ):
            call = replace(self, q=q, k=k, visible=visible_part, prefix=prefix)
            call._computed.update(scores=scores, gold=gold)
            calls.append(call)
        return calls

    def _gold(self) -> Tensor:
        if self.q.dtype in (torch.float16, torch.bfloat16):
            return gold_graph(self.q, self.k, self.visible, normalizer=self.normalizer, scoring=self.scoring)
        with torch.no_grad():
            return self.scoring.edges(self.scores, self.visible, self.normalizer)


def checked_pairs(pairs: object, call: LayerCall) -> Tensor:
    """Return a graph's pairs, or raise ``ValueError``, which names the layer, unless they broadcast to ``Bool[B, H, Q, K]``.

    Three dimensions could be sentences or heads, so they are refused.
    """
    shape = (*call.q.shape[:3], call.k.shape[2])
    if isinstance(pairs, Tensor) and pairs.dtype == torch.bool and pairs.dim() in (2, 4):
        if all(size in (1, whole) for size, whole in zip(reversed(pairs.shape), reversed(shape), strict=False)):
            return pairs
    what = f"{pairs.dtype} {list(pairs.shape)}" if isinstance(pairs, Tensor) else type(pairs).__name__
    raise ValueError(f"the graph of layer {call.layer} must be a bool tensor [B, H, Q, K] = {list(shape)}, got {what}")


#: Returns the pairs that attend, as a Bool Tensor ``[B, H, Q, K]``; sizes of 1 are for all. A graph with a true attribute
#: ``needs_prefix`` gets the queries of the whole prefix in incremental decoding.
Graph = Callable[[LayerCall], Tensor]
#: Called with the inputs of an attention call and its mask; the return value is ignored.
Observer = Callable[[LayerCall, Tensor], None]
#: Maps (layer, q ``[B, H, n, D]``, k ``[B, G, n, D]``, lengths ``[B]`` or None) to the blocks to visit; None visits all.
#: Lengths describe padding on the right; with padding on the left, a block graph gets None and takes padding for tokens.
BlockGraph = Callable[[int, Tensor, Tensor, Tensor | None], BlockMask | None]


@dataclass(frozen=True)
class TokenPairs:
    """The mode of dense attention over token pairs.

    Parameters
    ----------
    graph : callable, optional, from a :class:`LayerCall` to the pairs that attend (default: all visible pairs)
    observer : callable, optional, called with each :class:`LayerCall` and its mask

    Examples
    --------
    >>> TokenPairs(graph=lambda call: call.visible).observer is None
    True
    """

    graph: Graph | None = None
    observer: Observer | None = None


@dataclass(frozen=True)
class VisitedBlocks:
    """The mode of block-sparse attention.

    Parameters
    ----------
    blocks : callable
        Maps a layer's number, queries, keys and lengths to a :class:`~sparselib.kernels.BlockMask`, or to None for all blocks.
    alpha : float, optional, instead of the alpha of the model's normaliser
    certified : CertifiedRows, optional, to which each call adds its certified rows

    Examples
    --------
    >>> VisitedBlocks(blocks=lambda layer, q, k, lengths: None).alpha is None  # all blocks, with the model's own normaliser
    True
    """

    blocks: BlockGraph
    alpha: float | None = None
    certified: CertifiedRows | None = None


Mode = TokenPairs | VisitedBlocks


def is_same(first: Mode, second: Mode) -> bool:
    """Return whether two modes have the same rule, which is never compared by value, because it may hold tensors."""
    if isinstance(first, TokenPairs) and isinstance(second, TokenPairs):
        rules = first.graph, second.graph
    elif isinstance(first, VisitedBlocks) and isinstance(second, VisitedBlocks) and first.alpha == second.alpha:
        rules = first.blocks, second.blocks
    else:
        return False
    return rules[0] is rules[1] or (isinstance(rules[0], MethodType) and rules[0] == rules[1])
