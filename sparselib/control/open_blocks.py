"""The ``with`` blocks that are open in each thread or task, and in the recomputation of a gradient checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch

from sparselib.control.calls import Mode

if TYPE_CHECKING:
    from sparselib.control.attention_control import AttentionControl


@dataclass(frozen=True, eq=False)
class Block:
    """An open ``with`` block of a control, and the backward pass in which it was opened (-1: none)."""

    control: AttentionControl
    mode: Mode
    backward: int


@dataclass(frozen=True)
class OpenBlocks:
    """The open ``with`` blocks of one thread or task, the innermost last.

    `backward` is the backward pass for which these blocks are the ones of the forward pass (-1: none).
    """

    blocks: tuple[Block, ...] = ()
    backward: int = -1


# Each thread and each asyncio task has its own value, so a block in one of them does not change another's forward pass.
OPEN: ContextVar[OpenBlocks] = ContextVar("open_blocks", default=OpenBlocks())  # noqa: B039


def captured_modes() -> Callable[[], AbstractContextManager]:
    """Return a function that opens the present ``with`` blocks of all controls again, for the recomputation of a checkpoint.

    Autograd may recompute in another thread and after the blocks were left.

    Examples
    --------
    >>> from sparselib.control import AttentionControl
    >>> control = AttentionControl()
    >>> with control.restricted_to(lambda call: call.visible):
    ...     reopened = captured_modes()
    >>> with reopened():
    ...     control.active_mode.graph is None
    False
    """
    captured, captured_in = OPEN.get(), backward_pass()
    is_exact = captured_in in (-1, captured.backward)

    @contextmanager
    def reopened() -> Iterator[None]:
        before, backward = OPEN.get(), backward_pass()
        # In a nested checkpoint, the blocks that the outer recomputation opened belong to the inner one too.
        blocks = [
            replace(block, backward=backward) if block.backward == captured_in != -1 else block
            for block in captured.blocks
        ]
        OPEN.set(OpenBlocks(tuple(blocks), backward if is_exact else -1))
        try:
            yield
        finally:
            OPEN.set(before)

    return reopened


def backward_pass() -> int:
    """Return the number of the backward pass that this thread is computing, or -1; compiled code computes none."""
    return -1 if torch.compiler.is_compiling() else torch._C._current_graph_task_id()
