"""What the attention layers of one model do, and the handle by which it is changed while the model runs."""

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor

from sparselib.blocks.kernel_arguments import token_rules
from sparselib.dense_attention import Normalizer, attention_weights
from sparselib.kernels import BlockMask, block_sparse_entmax_attention
from sparselib.normalizers import alpha_of

#: From (layer, q ``[B, H, Q, D]``, k ``[B, H, K, D]``, visible ``[B, 1, Q, K]``) to the graph to use, ``Bool[B, H, Q, K]``.
Graph = Callable[[int, Tensor, Tensor, Tensor], Tensor]
#: The same arguments and the mask that is used; what it returns is ignored.
Observer = Callable[[int, Tensor, Tensor, Tensor], None]
#: From (layer, q ``[B, H, n, D]``, k ``[B, G, n, D]``, lengths ``[B]`` or None) to the blocks to visit; None is all.
BlockGraph = Callable[[int, Tensor, Tensor, Tensor | None], BlockMask | None]


@dataclass
class AttentionControl:
    """What the attention layers of one model do. One object is shared by all of them."""

    #: Of every layer, or a sequence of one for each.
    normalizer: Normalizer | Sequence[Normalizer]
    layers: int = 0
    graph: Graph | None = None
    observer: Observer | None = None
    #: Whether ``graph`` needs the queries of the whole prefix in incremental decoding, not only the new one.
    past_queries: bool = False
    #: Whether ``graph`` takes a fifth argument in cross-attention (fairseq): the positions ``[Q]`` of its queries. In
    #: self-attention the keys tell them: the queries are the last ones.
    query_positions: bool = False
    block_graph: BlockGraph | None = None
    #: The alpha-entmax over the visited blocks; None is that of ``normalizer``.
    alpha: float | None = None
    #: The last mask of tokens, and what it says.
    _last_rules: tuple = field(default=(None, None), init=False, repr=False)

    def normalizer_of(self, layer: int) -> Normalizer:
        """The normaliser of one layer."""
        return self.normalizer[layer] if isinstance(self.normalizer, Sequence) else self.normalizer

    def visited(
        self, layer: int, q: Tensor, k: Tensor, v: Tensor, visible: Tensor | None, scale: float | None = None
    ) -> Tensor:
        """Output ``[B, H, n, E]`` of one layer over the blocks that ``block_graph`` says.

        Raises
        ------
        ValueError
            If ``visible`` says more than lengths and causality, or a graph or an observer of token pairs is there too.
        """
        if self.graph is not None or self.observer is not None:
            raise ValueError("a model visits blocks, or follows and shows graphs of token pairs: not both at once")
        causal, lengths = self._rules_of(layer, visible)
        alpha = alpha_of(self.normalizer_of(layer)) if self.alpha is None else self.alpha
        mask = self.block_graph(layer, q, k, lengths)
        return block_sparse_entmax_attention(q, k, v, mask, alpha=alpha, scale=scale, causal=causal, lengths=lengths)

    def _rules_of(self, layer: int, visible: Tensor | None) -> tuple[bool, Tensor | None]:
        """``token_rules``, which look at all pairs, once for the layers that are given one and the same mask."""
        if visible is None:
            return token_rules(None)
        seen, rules = self._last_rules
        if layer == 0 or seen is None or seen() is not visible:
            rules = token_rules(visible)
            self._last_rules = weakref.ref(visible), rules
        return rules

    def weights(
        self,
        layer: int,
        q: Tensor,
        k: Tensor,
        visible: Tensor | None,
        scale: float | None = None,
        prefix: Tensor | None = None,
        positions: Tensor | None = None,
    ) -> Tensor:
        """Attention weights ``[B, H, Q, K]`` of one layer, from queries and keys before scaling; ``visible`` None is all.

        ``prefix`` are the queries of the whole prefix, those of ``q`` last, for a graph that needs them, and
        ``positions`` those of ``q`` in a sentence of their own, for one that needs these.

        Raises
        ------
        ValueError
            Where blocks should be visited: there are no weights then.
        """
        if self.block_graph is not None:
            raise ValueError("weights: a model that visits blocks has none, and fairseq's models can't visit blocks")
        mask = visible
        if self.graph is not None or self.observer is not None:
            if visible is None:
                visible = q.new_ones(len(q), 1, q.shape[2], k.shape[2], dtype=torch.bool)
            if self.graph is not None:
                extra = () if positions is None else (positions,)
                mask = self.graph(layer, q if prefix is None else prefix, k, visible, *extra) & visible
            if self.observer is not None:
                self.observer(layer, q, k, visible if mask is None else mask)
        return attention_weights(q, k, mask, normalizer=self.normalizer_of(layer), scale=scale)

    @contextmanager
    def restricted_to(self, graph: Graph | None, past_queries: bool = False) -> Iterator[None]:
        """Inside, every layer attends only where ``graph`` says, in all heads at once (section 5, "replacing G by G-hat").

        None lifts any restriction.

        In incremental decoding (fairseq) ``graph`` gets the new query only, or with ``past_queries`` those of the whole
        prefix; either way it returns the rows of ``visible``.
        """
        before = self.graph, self.past_queries, self.query_positions
        self.graph, self.past_queries, self.query_positions = graph, past_queries, False
        try:
            yield
        finally:
            self.graph, self.past_queries, self.query_positions = before

    @contextmanager
    def visiting(self, block_graph: BlockGraph, alpha: float | None = None) -> Iterator[None]:
        """Inside, every layer computes block-sparse attention over the blocks that ``block_graph`` says, and nothing else.

        ``alpha`` replaces the model's own normaliser: 1 is softmax.
        """
        before = self.block_graph, self.alpha
        self.block_graph, self.alpha = block_graph, alpha
        try:
            yield
        finally:
            self.block_graph, self.alpha = before
            self._last_rules = (None, None)

    @contextmanager
    def observing(self, observer: Observer) -> Iterator[None]:
        """Inside, ``observer`` is called with every layer's index, q, k and mask before it attends."""
        before, self.observer = self.observer, observer
        try:
            yield
        finally:
            self.observer = before
