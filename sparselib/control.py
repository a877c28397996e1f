"""The handle that changes what a model's attention layers do while the model runs."""

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from torch import Tensor

from sparselib.dense_attention import PLAIN, Scoring, attention_weights, gold_graph
from sparselib.kernels import BlockMask, block_sparse_entmax_attention
from sparselib.masks.visible import causal_and_lengths
from sparselib.normalizers import Normalizer, alpha_of, entmax15

__all__ = ["AttentionControl", "LayerCall", "TokenPairs", "VisitedBlocks"]


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

    @cached_property
    def scores(self) -> Tensor:
        """The scores ``[B, H, Q, K]``, computed once."""
        return self.scoring.scores(self.q, self.k)

    def gold(self) -> Tensor:
        """Return the exact edges ``Bool[B, H, Q, K]`` of 1.5-entmax under the model's own scores, computed once."""
        return self._gold

    def split(self, sizes: Sequence[int]) -> list["LayerCall"]:
        """Return one call per group of `sizes` sentences, in order; scores and gold edges are computed for all at once."""
        visible = self.visible.expand(len(self.q), -1, -1, -1)
        prefixes = [None] * len(sizes) if self.prefix is None else self.prefix.split(sizes)
        calls = []
        for q, k, visible_part, prefix, scores, gold in zip(
            *(x.split(sizes) for x in (self.q, self.k, visible)),
            prefixes,
            *(x.split(sizes) for x in (self.scores, self._gold)),
            strict=True,
        ):
            call = replace(self, q=q, k=k, visible=visible_part, prefix=prefix)
            vars(call).update(scores=scores, _gold=gold)  # fills the caches of the cached properties
            calls.append(call)
        return calls

    @cached_property
    def _gold(self) -> Tensor:
        if self.q.dtype in (torch.float16, torch.bfloat16):
            return gold_graph(self.q, self.k, self.visible, scoring=self.scoring)
        with torch.no_grad():
            return self.scoring.weights(self.scores, self.visible, entmax15).bool()


#: Returns the pairs that attend, as a Bool Tensor that broadcasts to ``[B, H, Q, K]``. A graph with a true attribute
#: ``needs_prefix`` gets the queries of the whole prefix in incremental decoding.
Graph = Callable[[LayerCall], Tensor]
#: Called with the inputs of an attention call and its mask; the return value is ignored.
Observer = Callable[[LayerCall, Tensor], None]
#: Maps (layer, q ``[B, H, n, D]``, k ``[B, G, n, D]``, lengths ``[B]`` or None) to the blocks to visit; None visits all.
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

    Examples
    --------
    >>> VisitedBlocks(blocks=lambda layer, q, k, lengths: None).alpha is None  # all blocks, with the model's own normaliser
    True
    """

    blocks: BlockGraph
    alpha: float | None = None


@dataclass
class AttentionControl:
    """The mode of a model's attention, shared by all of its attention layers.

    Parameters
    ----------
    normalizer : callable or sequence of callables, for every layer or one per layer
    layers : int, the number of attention layers
    mode : TokenPairs or VisitedBlocks, changed by the context managers below
    around : callable, which returns a context manager that is entered with every mode, so that a model can prepare or refuse

    Examples
    --------
    >>> control, q = AttentionControl(layers=1), torch.zeros(1, 1, 3, 4)
    >>> with control.restricted_to(lambda call: call.visible.tril()):
    ...     weights = control.weights(0, q, q, visible=None)
    >>> weights[0, 0, 1]
    tensor([0.5000, 0.5000, 0.0000])
    """

    normalizer: Normalizer | Sequence[Normalizer] = entmax15
    layers: int = 0
    mode: TokenPairs | VisitedBlocks = field(default_factory=TokenPairs)
    around: Callable[[], AbstractContextManager] = nullcontext
    #: A weak reference to the last mask under which blocks were visited, and its (causal, lengths).
    _last_mask: tuple = field(default=(None, None), init=False, repr=False)

    def normalizer_of(self, layer: int) -> Normalizer:
        """Return the normaliser of a layer."""
        return self.normalizer[layer] if isinstance(self.normalizer, Sequence) else self.normalizer

    @property
    def needs_prefix(self) -> bool:
        """Whether the graph needs the queries of the whole prefix in incremental decoding."""
        return isinstance(self.mode, TokenPairs) and getattr(self.mode.graph, "needs_prefix", False)

    @contextmanager
    def restricted_to(self, graph: Graph | None) -> Iterator[None]:
        """Restrict all layers to a graph (None: all visible pairs) inside ``with``, but not in :meth:`visiting` (section 5)."""
        with self._in_mode(replace(self._token_pairs(), graph=graph)):
            yield

    @contextmanager
    def observing(self, observer: Observer) -> Iterator[None]:
        """Call `observer` with each layer's :class:`LayerCall` and mask inside ``with``, but not inside :meth:`visiting`."""
        with self._in_mode(replace(self._token_pairs(), observer=observer)):
            yield

    @contextmanager
    def visiting(self, blocks: BlockGraph, alpha: float | None = None) -> Iterator[None]:
        """Compute block-sparse attention over the given blocks only, inside ``with``; see :class:`VisitedBlocks`.

        Raises
        ------
        ValueError
            Inside :meth:`restricted_to` or :meth:`observing`.
        """
        if isinstance(self.mode, TokenPairs) and self.mode != TokenPairs():
            raise ValueError(
                "`visiting()` cannot be combined with `restricted_to()` or `observing()`; leave these first"
            )
        with self._in_mode(VisitedBlocks(blocks, alpha)):
            yield

    def weights(
        self,
        layer: int,
        q: Tensor,
        k: Tensor,
        visible: Tensor | None,
        scoring: Scoring = PLAIN,
        prefix: Tensor | None = None,
        positions: Tensor | None = None,
    ) -> Tensor:
        """Return one layer's attention weights ``[B, H, Q, K]`` over token pairs; a `visible` of None hides none."""
        pairs, normalizer = self._token_pairs(), self.normalizer_of(layer)
        if pairs.graph is not None or pairs.observer is not None:
            if visible is None:
                visible = q.new_ones(len(q), 1, q.shape[2], k.shape[2], dtype=torch.bool)
            call = LayerCall(layer, q, k, visible, prefix, positions, scoring)
            scores = call.scores  # cached before a graph computes them, which may run without gradients
            mask = visible if pairs.graph is None else pairs.graph(call) & visible
            if pairs.observer is not None:
                pairs.observer(call, mask)
            return scoring.weights(scores, mask, normalizer)
        return attention_weights(q, k, visible, normalizer=normalizer, scoring=scoring)

    def visited(
        self, layer: int, q: Tensor, k: Tensor, v: Tensor, visible: Tensor | None, scale: float | None = None
    ) -> Tensor:
        """Return one layer's output ``[B, H, n, E]``; `visible` may hide only padding on the right and later keys."""
        causal, lengths = self._causal_and_lengths(layer, visible)
        alpha = alpha_of(self.normalizer_of(layer)) if self.mode.alpha is None else self.mode.alpha
        mask = self.mode.blocks(layer, q, k, lengths)
        return block_sparse_entmax_attention(q, k, v, mask, alpha=alpha, scale=scale, causal=causal, lengths=lengths)

    def _causal_and_lengths(self, layer: int, visible: Tensor | None) -> tuple[bool, Tensor | None]:
        """Return ``causal_and_lengths``, which reads all pairs, once for consecutive layers that share a mask."""
        if visible is None:
            return causal_and_lengths(None)
        last_mask, description = self._last_mask
        if layer == 0 or last_mask is None or last_mask() is not visible:
            description = causal_and_lengths(visible)
            self._last_mask = weakref.ref(visible), description
        return description

    def _token_pairs(self) -> TokenPairs:
        if isinstance(self.mode, VisitedBlocks):
            raise ValueError(
                "`visiting()` computes neither weights nor graphs of token pairs, so `weights()`, `restricted_to()` and "
                "`observing()` cannot be used inside it; leave it first"
            )
        return self.mode

    @contextmanager
    def _in_mode(self, mode: TokenPairs | VisitedBlocks) -> Iterator[None]:
        before, self.mode = self.mode, mode
        try:
            with self.around():
                yield
        finally:
            self.mode, self._last_mask = before, (None, None)
