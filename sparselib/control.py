"""The handle that changes what a model's attention layers do while the model runs."""

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MethodType

import torch
from torch import Tensor

from sparselib.dense_attention import PLAIN, Scoring, attention_weights, gold_graph
from sparselib.kernels import BlockMask, block_sparse_entmax_attention
from sparselib.masks.visible import causal_and_lengths
from sparselib.normalizers import Normalizer, alpha_of, entmax15

__all__ = ["AttentionControl", "LayerCall", "TokenPairs", "VisitedBlocks", "captured_modes"]


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


Mode = TokenPairs | VisitedBlocks


@dataclass(frozen=True, eq=False)
class _Block:
    """An open ``with`` block of a control, and the backward pass in which it was opened (-1: none)."""

    control: "AttentionControl"
    mode: Mode
    backward: int


@dataclass(frozen=True)
class _OpenBlocks:
    """The open ``with`` blocks of one thread or task, the innermost last.

    `backward` is the backward pass for which these blocks are the ones of the forward pass (-1: none).
    """

    blocks: tuple[_Block, ...] = ()
    backward: int = -1


# Each thread and each asyncio task has its own value, so a block in one of them does not change another's forward pass.
_OPEN: ContextVar[_OpenBlocks] = ContextVar("open_blocks", default=_OpenBlocks())  # noqa: B039


def captured_modes() -> Callable[[], AbstractContextManager]:
    """Return a function that opens the present ``with`` blocks of all controls again, for the recomputation of a checkpoint.

    Autograd may recompute in another thread and after the blocks were left.

    Examples
    --------
    >>> control = AttentionControl()
    >>> with control.restricted_to(lambda call: call.visible):
    ...     reopened = captured_modes()
    >>> with reopened():
    ...     control.active_mode.graph is None
    False
    """
    captured, captured_in = _OPEN.get(), _backward()
    is_exact = captured_in in (-1, captured.backward)

    @contextmanager
    def reopened() -> Iterator[None]:
        before, backward = _OPEN.get(), _backward()
        # In a nested checkpoint, the blocks that the outer recomputation opened belong to the inner one too.
        blocks = [
            replace(block, backward=backward) if block.backward == captured_in != -1 else block
            for block in captured.blocks
        ]
        _OPEN.set(_OpenBlocks(tuple(blocks), backward if is_exact else -1))
        try:
            yield
        finally:
            _OPEN.set(before)

    return reopened


def _backward() -> int:
    """Return the number of the backward pass that this thread is computing, or -1."""
    return torch._C._current_graph_task_id()


def _is_same(first: Mode, second: Mode) -> bool:
    """Return whether two modes have the same rule, which is never compared by value, because it may hold tensors."""
    if isinstance(first, TokenPairs) and isinstance(second, TokenPairs):
        rules = first.graph, second.graph
    elif isinstance(first, VisitedBlocks) and isinstance(second, VisitedBlocks) and first.alpha == second.alpha:
        rules = first.blocks, second.blocks
    else:
        return False
    return rules[0] is rules[1] or (isinstance(rules[0], MethodType) and rules[0] == rules[1])


@dataclass
class AttentionControl:
    """The mode of a model's attention, shared by all of its attention layers.

    The context managers below change the mode in the current thread or asyncio task only. A new thread starts without their
    changes; run its function with ``contextvars.copy_context().run`` to pass them on. A gradient checkpoint recomputes a
    forward pass in the mode of that pass.

    Parameters
    ----------
    normalizer : callable or sequence of callables, for every layer or one per layer
    layers : int, the number of attention layers
    mode : TokenPairs or VisitedBlocks, the mode outside the context managers, in all threads
    around : callable, which returns a context manager that is entered with every mode, so that a model can prepare or refuse
    cross_layers : frozenset of int, the layers whose keys come from another sequence than their queries

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
    mode: Mode = field(default_factory=TokenPairs)
    around: Callable[[], AbstractContextManager] = nullcontext
    cross_layers: frozenset[int] = frozenset()
    #: A weak reference to the last mask under which blocks were visited, and its (causal, lengths).
    _last_mask: tuple = field(default=(None, None), init=False, repr=False, compare=False)
    #: The different modes of forward passes that a checkpoint may recompute; two are enough to know that there are several.
    _forward_modes: list[Mode] = field(default_factory=list, init=False, repr=False, compare=False)
    #: The ``with`` blocks that are open in any thread.
    _open: list[_Block] = field(default_factory=list, init=False, repr=False, compare=False)

    def __getstate__(self) -> dict[str, object]:
        return vars(self) | {"_last_mask": (None, None), "_forward_modes": [], "_open": []}

    def normalizer_of(self, layer: int) -> Normalizer:
        """Return the normaliser of a layer."""
        return self.normalizer[layer] if isinstance(self.normalizer, Sequence) else self.normalizer

    @property
    def active_mode(self) -> Mode:
        """The mode of this thread's innermost ``with`` block, or else `mode`.

        When a gradient checkpoint recomputes a forward pass, it is the mode of that pass without its observer.

        Raises
        ------
        ValueError
            In a recomputation that does not keep the mode, such as ``torch.utils.checkpoint``'s, after forward passes in
            several modes.
        """
        block, backward = self._innermost_block(), _backward()
        mode = self.mode if block is None else block.mode
        if backward == -1:
            return mode
        if backward != _OPEN.get().backward and (block is None or block.backward != backward):
            mode = self._only_forward_mode()
        return replace(mode, observer=None) if isinstance(mode, TokenPairs) else mode

    @property
    def is_open(self) -> bool:
        """Whether any thread is inside a ``with`` block of this control."""
        return bool(self._open)

    @property
    def needs_prefix(self) -> bool:
        """Whether the graph needs the queries of the whole prefix in incremental decoding."""
        mode = self.active_mode
        return isinstance(mode, TokenPairs) and getattr(mode.graph, "needs_prefix", False)

    @contextmanager
    def restricted_to(self, graph: Graph | None) -> Iterator[None]:
        """Restrict all layers to a graph (None: all visible pairs) inside ``with``, but not in :meth:`visiting` (section 5)."""
        with self._in_mode(replace(self._token_pairs(self._mode_around()), graph=graph)):
            yield

    @contextmanager
    def observing(self, observer: Observer) -> Iterator[None]:
        """Call `observer` with each layer's :class:`LayerCall` and mask inside ``with``, but not inside :meth:`visiting`."""
        with self._in_mode(replace(self._token_pairs(self.active_mode), observer=observer)):
            yield

    @contextmanager
    def visiting(self, blocks: BlockGraph, alpha: float | None = None) -> Iterator[None]:
        """Compute block-sparse attention over the given blocks only, inside ``with``; see :class:`VisitedBlocks`.

        Raises
        ------
        ValueError
            Inside :meth:`restricted_to` or :meth:`observing`.
        """
        mode = self._mode_around()
        if isinstance(mode, TokenPairs) and (mode.graph is not None or mode.observer is not None):
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
        recomputable: bool = True,
    ) -> Tensor:
        """Return one layer's attention weights ``[B, H, Q, K]`` over token pairs; a `visible` of None hides none.

        Pass `recomputable` as False if no gradient checkpoint can recompute this call.
        """
        pairs, normalizer = self._token_pairs(self.active_mode), self.normalizer_of(layer)
        if recomputable:
            self._note_mode(pairs)
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
        self,
        layer: int,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        visible: Tensor | None,
        scale: float | None = None,
        recomputable: bool = True,
    ) -> Tensor:
        """Return one layer's output ``[B, H, n, E]``; `visible` may hide only padding on the right and later keys.

        Padding neither attends nor is attended to. In `cross_layers`, only keys are padding, so all queries attend, and the
        block graph gets no lengths. For `recomputable`, see :meth:`weights`.
        """
        mode = self.active_mode
        if recomputable:
            self._note_mode(mode)
        causal, lengths = self._causal_and_lengths(layer, visible)
        alpha = alpha_of(self.normalizer_of(layer)) if mode.alpha is None else mode.alpha
        if layer in self.cross_layers and lengths is not None:
            mask = mode.blocks(layer, q, k, None)
            return _attend_to_real_keys(q, k, v, mask, lengths.expand(len(q)), alpha, scale)
        mask = mode.blocks(layer, q, k, lengths)
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

    def _innermost_block(self) -> _Block | None:
        return next((block for block in reversed(_OPEN.get().blocks) if block.control is self), None)

    def _mode_around(self) -> Mode:
        """Return the mode outside a block that replaces its rule, even in a recomputation that does not tell its mode."""
        block = self._innermost_block()
        return self.mode if block is None else block.mode

    def _token_pairs(self, mode: Mode) -> TokenPairs:
        if isinstance(mode, VisitedBlocks):
            raise ValueError(
                "`visiting()` computes neither weights nor graphs of token pairs, so `weights()`, `restricted_to()` and "
                "`observing()` cannot be used inside it; leave it first"
            )
        return mode

    def _note_mode(self, mode: Mode) -> None:
        """Note the mode of a forward pass, for checkpoints that do not keep it."""
        if _backward() == -1 and len(self._forward_modes) < 2:
            if not any(_is_same(mode, noted) for noted in self._forward_modes):
                self._forward_modes.append(replace(mode, observer=None) if isinstance(mode, TokenPairs) else mode)

    def _only_forward_mode(self) -> Mode:
        """Return the mode of all forward passes that a checkpoint may recompute, or raise ``ValueError`` if it varied."""
        if len(self._forward_modes) != 1:
            raise ValueError(
                "`torch.utils.checkpoint` must not recompute attention of a model that ran in several modes of its control, "
                "because the recomputation cannot tell which mode was its own; use model.gradient_checkpointing_enable(), or "
                "enter the `with` block inside the checkpointed function"
            )
        return self._forward_modes[0]

    @contextmanager
    def _in_mode(self, mode: Mode) -> Iterator[None]:
        block = _Block(self, mode, _backward())
        _OPEN.set(replace(_OPEN.get(), blocks=(*_OPEN.get().blocks, block)))
        self._open.append(block)
        try:
            with self.around():
                yield
        finally:
            self._open.remove(block)
            _OPEN.set(replace(_OPEN.get(), blocks=tuple(other for other in _OPEN.get().blocks if other is not block)))
            self._last_mask = (None, None)


def _attend_to_real_keys(
    q: Tensor, k: Tensor, v: Tensor, mask: BlockMask | None, lengths: Tensor, alpha: float, scale: float | None
) -> Tensor:
    """Return the output of all queries over the first ``lengths [B]`` keys, with one kernel call per different length."""
    parts, order = [], []
    for length in lengths.unique().tolist():
        rows = (lengths == length).nonzero()[:, 0]
        keys = max(length, 1)
        part = block_sparse_entmax_attention(
            q[rows],
            k[rows, :, :keys],
            v[rows, :, :keys],
            None if mask is None else _first_keys(mask, rows, keys),
            alpha=alpha,
            scale=scale,
        )
        parts.append(part if length else torch.zeros_like(part))
        order.append(rows)
    return torch.cat(parts)[torch.cat(order).argsort()]


def _first_keys(mask: BlockMask, rows: Tensor, keys: int) -> BlockMask:
    """Return the block mask of some of the batch's sequences over the first keys."""
    dense = mask.to_dense()
    dense = dense[..., : -(-keys // mask.block_size[1])]
    return BlockMask.from_dense(dense if len(dense) == 1 else dense[rows], mask.block_size, (mask.length[0], keys))
