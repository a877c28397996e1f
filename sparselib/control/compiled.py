"""The mode of a compiled model's control.

Dynamo cannot trace ``ContextVar.get``, so a compiled model reads the block that was entered last in any thread. An operator in
the graph checks on every run that this block is the running thread's own.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import torch
from torch import Tensor

if TYPE_CHECKING:
    from sparselib.control.attention_control import AttentionControl
    from sparselib.control.calls import Mode

_NUMBERS = count()
_CONTROLS: WeakValueDictionary[int, AttentionControl] = WeakValueDictionary()


def register(control: AttentionControl) -> int:
    """Return a new number, by which a compiled graph finds a control."""
    number = next(_NUMBERS)
    _CONTROLS[number] = control
    return number


def compiled_mode(control: AttentionControl) -> Mode:
    """Return the mode of the ``with`` block that any thread entered last, while a model is traced.

    The compiled model raises ``RuntimeError`` in a thread that is not inside this block.
    """
    # An exported program has no control, and keeps the mode in which it was exported.
    if not torch.compiler.is_exporting():
        check_thread(control.witness, control.number)
    block = control.last_block
    return control.mode if block is None else block.mode


# It declares a change of its argument, because compilers remove operators without results.
@torch.library.custom_op("sparselib::check_thread", mutates_args=("witness",))
def check_thread(witness: Tensor, number: int) -> None:
    """Raise ``RuntimeError`` if another thread entered or left a control's blocks last."""
    control = _CONTROLS[number]
    if control.innermost_block is not control.last_block:
        raise RuntimeError(
            "a compiled model must not run while another thread is inside `restricted_to()`, `observing()` or `visiting()` of "
            "its control; leave that block first, or run the model without torch.compile"
        )


@check_thread.register_fake
def _(witness: Tensor, number: int) -> None:
    """Compute nothing while the graph is traced."""
