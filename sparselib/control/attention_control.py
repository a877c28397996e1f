"""The handle that changes what a model's attention layers do while the model runs."""

import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial

import torch
from torch import Tensor

from sparselib.control.block_attention import attend_to_blocks
from sparselib.control.calls import (
    BlockGraph,
    Graph,
    LayerCall,
    Mode,
    Observer,
    TokenPairs,
    VisitedBlocks,
    checked_pairs,
    is_same,
)
from sparselib.control.certified import CertifiedRows
from sparselib.control.compiled import compiled_mode, register
from sparselib.control.open_blocks import OPEN, Block, backward_pass
from sparselib.dense_attention import PLAIN, Scoring, attention_output, attention_weights
from sparselib.exact_output import has_kernel
from sparselib.masks.visible import Description, described
from sparselib.normalizers import Normalizer, alpha_of, entmax15


@dataclass
class AttentionControl:
    """The mode of a model's attention, shared by all of its attention layers.

    The context managers below change the mode in the current thread or asyncio task only. A new thread starts without their
    changes; run its function with ``contextvars.copy_context().run`` to pass them on. A gradient checkpoint recomputes a
    forward pass in the mode of that pass. A compiled model raises ``RuntimeError`` if another thread is inside a block.

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
    #: Weak references to the last two masks under which blocks were visited, between which layers may alternate, and their
    #: descriptions. Descriptions may hold their mask, so no more are kept.
    _last_masks: deque = field(default_factory=partial(deque, maxlen=2), init=False, repr=False, compare=False)
    #: The different modes of forward passes that a checkpoint may recompute; two are enough to know that there are several.
    _forward_modes: list[Mode] = field(default_factory=list, init=False, repr=False, compare=False)
    #: The ``with`` blocks that are open in any thread.
    _open: list[Block] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        #: For compiled graphs: an empty tensor, and the number by which they find this control.
        self.witness, self.number = torch.empty(0), register(self)

    def __getstate__(self) -> dict[str, object]:
        return vars(self) | {"_last_masks": deque(maxlen=2), "_forward_modes": [], "_open": []}

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state)
        self.number = register(self)

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
        if torch.compiler.is_compiling():
            return compiled_mode(self)
        block, backward = self.innermost_block, backward_pass()
        mode = self.mode if block is None else block.mode
        if backward == -1:
            return mode
        if backward != OPEN.get().backward and (block is None or block.backward != backward):
            mode = self._only_forward_mode()
        return replace(mode, observer=None) if isinstance(mode, TokenPairs) else mode

    @property
    def is_open(self) -> bool:
        """Whether any thread is inside a ``with`` block of this control."""
        return bool(self._open)

    @property
    def innermost_block(self) -> Block | None:
        """The innermost ``with`` block of this thread or task."""
        return next((block for block in reversed(OPEN.get().blocks) if block.control is self), None)

    @property
    def last_block(self) -> Block | None:
        """The open ``with`` block that was entered last in any thread."""
        return self._open[-1] if self._open else None

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
    def visiting(
        self, blocks: BlockGraph, alpha: float | None = None, certify: bool = False
    ) -> Iterator[CertifiedRows | None]:
        """Compute attention over the given blocks only, under the model's own mask and scores; see :class:`VisitedBlocks`.

        With `certify`, yield the :class:`CertifiedRows`, to which each call adds the rows that provably equal full attention.
        Bounds of all blocks are computed for it in each call, and softmax certifies only rows that visit all blocks.

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
        found = CertifiedRows() if certify else None
        with self._in_mode(VisitedBlocks(blocks, alpha, found)):
            yield found

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
        mask, call = self._pairs(layer, q, k, visible, scoring, prefix, positions, recomputable, scored=True)
        normalizer = self.normalizer_of(layer)
        if call is not None:
            return scoring.weights(call.scores, mask, normalizer)
        return attention_weights(q, k, mask, normalizer=normalizer, scoring=scoring)

    def output(
        self,
        layer: int,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        visible: Tensor | None,
        scoring: Scoring = PLAIN,
        prefix: Tensor | None = None,
        positions: Tensor | None = None,
        recomputable: bool = True,
    ) -> Tensor:
        """Return one layer's output ``[B, H, Q, E]`` over token pairs, by the fastest exact method.

        Other arguments are those of :meth:`weights`.
        """
        call, normalizer = (scoring, prefix, positions, recomputable), self.normalizer_of(layer)
        if not (scoring.is_product and has_kernel(q, k, v, normalizer)):
            return self.weights(layer, q, k, visible, *call).to(v.dtype) @ v
        mask, _ = self._pairs(layer, q, k, visible, *call, scored=False)
        return attention_output(q, k, v, mask, normalizer=normalizer, scoring=scoring)

    def _pairs(
        self,
        layer: int,
        q: Tensor,
        k: Tensor,
        visible: Tensor | None,
        scoring: Scoring,
        prefix: Tensor | None,
        positions: Tensor | None,
        recomputable: bool,
        scored: bool,
    ) -> tuple[Tensor | None, LayerCall | None]:
        """Return the pairs that attend, and the call that a graph or an observer got; `scored` if its scores are used later."""
        pairs = self._token_pairs(self.active_mode)
        if recomputable:
            self._note_mode(pairs)
        if pairs.graph is None and pairs.observer is None:
            return visible, None
        if visible is None:
            visible = q.new_ones(len(q), 1, q.shape[2], k.shape[2], dtype=torch.bool)
        is_cross = layer in self.cross_layers
        call = LayerCall(layer, q, k, visible, prefix, positions, scoring, is_cross, self.normalizer_of(layer))
        if scored:
            _ = call.scores  # cached before a graph computes them, which may run without gradients
        mask = visible if pairs.graph is None else checked_pairs(pairs.graph(call), call) & visible
        if pairs.observer is not None:
            pairs.observer(call, mask)
        return mask, call

    def visited(
        self,
        layer: int,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        visible: Tensor | None,
        scoring: Scoring = PLAIN,
        recomputable: bool = True,
        padded_queries: bool = True,
    ) -> Tensor:
        """Return one layer's output ``[B, H, Q, E]`` under a scoring without sinks.

        Padding on the right neither attends nor is attended to, and the block graph gets its lengths. In `cross_layers`, only
        keys are padding, so all queries attend, and the block graph gets no lengths. Pass `padded_queries` as False for a mask
        of pairs, whose queries may be tokens where no query sees the key. For `recomputable`, see :meth:`weights`.
        """
        mode = self.active_mode
        if recomputable:
            self._note_mode(mode)
        is_cross = layer in self.cross_layers
        description = self._described(layer, visible, padded_queries or is_cross)
        alpha = alpha_of(self.normalizer_of(layer)) if mode.alpha is None else mode.alpha
        blocks = mode.blocks(layer, q, k, None if is_cross else description.lengths)
        certify = mode.certified is not None and backward_pass() == -1  # a checkpoint recomputes what was certified
        output, rows = attend_to_blocks(q, k, v, blocks, visible, description, scoring, alpha, is_cross, certify)
        if certify:
            mode.certified.calls.append((layer, rows))
        return output

    def _described(self, layer: int, visible: Tensor | None, padded_queries: bool) -> Description:
        """Return the mask as ``described``, which reads all pairs, once for the layers that share a mask or alternate."""
        if visible is None:
            return described(None)
        if layer == 0:  # another forward pass, before which a mask may have changed in its place
            self._last_masks.clear()
        for mask, description in tuple(self._last_masks):  # other threads may add to them
            if mask() is visible:
                return description
        description = described(visible, padded_queries)
        self._last_masks.append((weakref.ref(visible), description))
        return description

    def _mode_around(self) -> Mode:
        """Return the mode outside a block that replaces its rule, even in a recomputation that does not tell its mode."""
        block = self.innermost_block
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
        if torch.compiler.is_compiling():
            return
        if backward_pass() == -1 and len(self._forward_modes) < 2:
            if not any(is_same(mode, noted) for noted in self._forward_modes):
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
        block = Block(self, mode, backward_pass())
        OPEN.set(replace(OPEN.get(), blocks=(*OPEN.get().blocks, block)))
        self._open.append(block)
        try:
            with self.around():
                yield
        finally:
            self._open.remove(block)
            OPEN.set(replace(OPEN.get(), blocks=tuple(other for other in OPEN.get().blocks if other is not block)))
            self._last_masks.clear()
