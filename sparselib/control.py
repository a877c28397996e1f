"""What the attention layers of one model do, and the handle by which it is changed while the model runs."""

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from torch import Tensor

from sparselib.blocks.kernel_arguments import token_rules
from sparselib.dense_attention import PLAIN, Scoring, attention_weights, gold_graph
from sparselib.kernels import BlockMask, block_sparse_entmax_attention
from sparselib.normalizers import Normalizer, alpha_of, entmax15

__all__ = ["AttentionControl", "LayerCall", "TokenPairs", "VisitedBlocks"]


@dataclass(frozen=True)
class LayerCall:
    """What one attention layer is about to do: what graphs and observers are given.

    Attributes
    ----------
    layer : int
        Layers are numbered in the order in which the model calls them.
    q, k : Tensor ``[B, H, Q, D]``, ``[B, H, K, D]``
        Queries and keys before scaling. In incremental decoding the queries are those of the new positions, the last ones.
    visible : Bool Tensor ``[B, 1, Q, K]``
        What the model lets the queries see.
    prefix : Tensor ``[B, H, K, D]``, optional
        Queries of the whole prefix, those of `q` last, for a graph that declares ``needs_prefix``.
    positions : integer Tensor ``[Q]``, optional
        Where the queries stand in a sentence of their own, in cross-attention (fairseq). In self-attention the keys tell.
    scoring : Scoring
        How the model makes scores of `q` and `k`.

    >>> q = k = 4 * torch.eye(3).view(1, 1, 3, 3)
    >>> LayerCall(0, q, k, visible=torch.ones(1, 1, 3, 3, dtype=torch.bool)).gold()[0, 0].int()
    tensor([[1, 0, 0],
            [0, 1, 0],
            [0, 0, 1]], dtype=torch.int32)
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
        """``[B, H, Q, K]``, computed once for all that a layer does with them."""
        return self.scoring.scores(self.q, self.k)

    def gold(self) -> Tensor:
        """The exact edges of 1.5-entmax under the model's own scores: ``Bool[B, H, Q, K]``, computed once."""
        return self._gold

    def split(self, sizes: Sequence[int]) -> list["LayerCall"]:
        """The calls of so many sentences each, one after the other; scores and gold edges are computed for all at once."""
        visible = self.visible.expand(len(self.q), -1, -1, -1)
        prefixes = [None] * len(sizes) if self.prefix is None else self.prefix.split(sizes)
        calls = []
        for q, k, seen, prefix, scores, gold in zip(
            *(x.split(sizes) for x in (self.q, self.k, visible)),
            prefixes,
            *(x.split(sizes) for x in (self.scores, self._gold)),
            strict=True,
        ):
            call = replace(self, q=q, k=k, visible=seen, prefix=prefix)
            vars(call).update(scores=scores, _gold=gold)  # where cached properties are kept
            calls.append(call)
        return calls

    @cached_property
    def _gold(self) -> Tensor:
        if self.q.dtype in (torch.float16, torch.bfloat16):
            return gold_graph(self.q, self.k, self.visible, scoring=self.scoring)
        with torch.no_grad():
            return self.scoring.weights(self.scores, self.visible, entmax15).bool()


#: Which pairs of a layer attend: from a :class:`LayerCall` to a Bool Tensor that broadcasts to ``[B, H, Q, K]``. A graph with a
#: true attribute ``needs_prefix`` is given the queries of the whole prefix in incremental decoding.
Graph = Callable[[LayerCall], Tensor]
#: Shown what a layer is about to do and its mask; what it returns is ignored.
Observer = Callable[[LayerCall, Tensor], None]
#: From (layer, q ``[B, H, n, D]``, k ``[B, G, n, D]``, lengths ``[B]`` or None) to the blocks to visit; None is all.
BlockGraph = Callable[[int, Tensor, Tensor, Tensor | None], BlockMask | None]


@dataclass(frozen=True)
class TokenPairs:
    """Dense attention over the pairs of a graph (None: all that are visible), with an observer or without.

    >>> TokenPairs(graph=lambda call: call.visible).observer is None
    True
    """

    graph: Graph | None = None
    observer: Observer | None = None


@dataclass(frozen=True)
class VisitedBlocks:
    """Block-sparse attention over the blocks of a graph; ``alpha`` None is that of the model's normaliser.

    >>> VisitedBlocks(blocks=lambda layer, q, k, lengths: None).alpha is None  # all blocks, with the model's own normaliser
    True
    """

    blocks: BlockGraph
    alpha: float | None = None


@dataclass
class AttentionControl:
    """What the attention layers of one model do. One object is shared by all of them.

    >>> from transformers import RobertaConfig, RobertaModel
    >>> from sparselib.huggingface.attention import use_attention
    >>> tiny = {"num_hidden_layers": 2, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 16, "vocab_size": 99}
    >>> model = RobertaModel(RobertaConfig(**tiny)).eval()
    >>> control, seen = use_attention(model), []
    >>> with control.observing(lambda call, mask: seen.append(call.layer)), control.restricted_to(lambda call: call.visible):
    ...     output = model(torch.tensor([[5, 6, 7]]))
    >>> control.layers, seen
    (2, [0, 1])
    """

    #: Of every layer, or a sequence of one for each.
    normalizer: Normalizer | Sequence[Normalizer] = entmax15
    layers: int = 0
    mode: TokenPairs | VisitedBlocks = field(default_factory=TokenPairs)
    #: Entered with every mode: what the model's integration has to do then, or to refuse.
    around: Callable[[], AbstractContextManager] = nullcontext
    #: The last mask of tokens that blocks were visited under, and what it says.
    _last_rules: tuple = field(default=(None, None), init=False, repr=False)

    def normalizer_of(self, layer: int) -> Normalizer:
        """The normaliser of one layer."""
        return self.normalizer[layer] if isinstance(self.normalizer, Sequence) else self.normalizer

    @property
    def needs_prefix(self) -> bool:
        """Whether the graph wants the queries of the whole prefix in incremental decoding."""
        return isinstance(self.mode, TokenPairs) and getattr(self.mode.graph, "needs_prefix", False)

    @contextmanager
    def restricted_to(self, graph: Graph | None) -> Iterator[None]:
        """Inside, every layer attends only where ``graph`` says, in all heads at once (section 5, "replacing G by G-hat").

        None lifts any restriction.

        Raises ``ValueError`` if the model visits blocks.
        """
        with self._in_mode(replace(self._token_pairs(), graph=graph)):
            yield

    @contextmanager
    def observing(self, observer: Observer) -> Iterator[None]:
        """Inside, ``observer`` is shown what every layer is about to do, and its mask.

        Raises ``ValueError`` if the model visits blocks.
        """
        with self._in_mode(replace(self._token_pairs(), observer=observer)):
            yield

    @contextmanager
    def visiting(self, blocks: BlockGraph, alpha: float | None = None) -> Iterator[None]:
        """Inside, every layer computes block-sparse attention over the blocks that ``blocks`` says, and nothing else.

        ``alpha`` replaces the model's own normaliser: 1 is softmax.

        Raises ``ValueError`` if the model follows a graph of token pairs or shows its own.
        """
        if isinstance(self.mode, TokenPairs) and self.mode != TokenPairs():
            raise ValueError("a model visits blocks, or follows and shows graphs of token pairs: not both at once")
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
        """Attention weights ``[B, H, Q, K]`` of one layer over pairs of tokens; ``visible`` None is all.

        The other arguments are those of :class:`LayerCall`.

        Raises ``ValueError`` if the model visits blocks: there are no weights then.
        """
        pairs, normalizer = self._token_pairs(), self.normalizer_of(layer)
        if pairs.graph is not None or pairs.observer is not None:
            if visible is None:
                visible = q.new_ones(len(q), 1, q.shape[2], k.shape[2], dtype=torch.bool)
            call = LayerCall(layer, q, k, visible, prefix, positions, scoring)
            scores = call.scores  # before a graph asks for them, which may do so without gradients
            mask = visible if pairs.graph is None else pairs.graph(call) & visible
            if pairs.observer is not None:
                pairs.observer(call, mask)
            return scoring.weights(scores, mask, normalizer)
        return attention_weights(q, k, visible, normalizer=normalizer, scoring=scoring)

    def visited(
        self, layer: int, q: Tensor, k: Tensor, v: Tensor, visible: Tensor | None, scale: float | None = None
    ) -> Tensor:
        """Output ``[B, H, n, E]`` of one layer over the blocks that it visits.

        Raises ``ValueError`` if ``visible`` says more than lengths and causality.
        """
        causal, lengths = self._rules_of(layer, visible)
        alpha = alpha_of(self.normalizer_of(layer)) if self.mode.alpha is None else self.mode.alpha
        mask = self.mode.blocks(layer, q, k, lengths)
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

    def _token_pairs(self) -> TokenPairs:
        if isinstance(self.mode, VisitedBlocks):
            raise ValueError("a model that visits blocks has neither weights nor graphs of token pairs")
        return self.mode

    @contextmanager
    def _in_mode(self, mode: TokenPairs | VisitedBlocks) -> Iterator[None]:
        before, self.mode = self.mode, mode
        try:
            with self.around():
                yield
        finally:
            self.mode, self._last_rules = before, (None, None)
