"""Gradient checkpointing that recomputes each layer in the attention mode of its forward pass."""

import sys
from collections.abc import Callable

import torch
from torch import nn
from torch.utils.checkpoint import CheckpointFunction

from sparselib.control import captured_modes
from sparselib.control.open_blocks import backward_pass
from sparselib.huggingface.requested import recorded_outputs, recording

_FUNCTION = "_gradient_checkpointing_func"


class ModeKeepingCheckpoint:
    """A model's checkpointing function, which also keeps the modes of all controls and the requested outputs.

    Parameters
    ----------
    checkpoint : callable
        From a function and its arguments to the function's result, such as ``torch.utils.checkpoint.checkpoint``.
    """

    def __init__(self, checkpoint: Callable):
        self.checkpoint = checkpoint

    def __call__(self, function: Callable, *arguments, **options):
        reopened, recorded = captured_modes(), recorded_outputs()

        def in_same_modes(*inner_arguments, **inner_options):
            if backward_pass() == -1:
                return function(*inner_arguments, **inner_options)
            with reopened(), recording(recorded):
                return function(*inner_arguments, **inner_options)

        return self.checkpoint(in_same_modes, *arguments, **options)


def keep_modes(model: nn.Module) -> None:
    """Make every part of a model that supports gradient checkpointing keep modes, whenever checkpointing is enabled."""
    for module in model.modules():
        if hasattr(module, "gradient_checkpointing") and _wrap not in module._forward_pre_hooks.values():
            module.register_forward_pre_hook(_wrap)


def _wrap(module: nn.Module, arguments: tuple) -> None:
    """Wrap the checkpointing function, which ``gradient_checkpointing_enable`` sets anew each time."""
    checkpoint = getattr(module, _FUNCTION, None)
    if checkpoint is not None and not isinstance(checkpoint, ModeKeepingCheckpoint):
        setattr(module, _FUNCTION, ModeKeepingCheckpoint(checkpoint))


def may_be_recomputed(module: nn.Module) -> bool:
    """Return whether a gradient checkpoint may recompute a module's present call."""
    if torch.compiler.is_compiling():
        return False  # A compiled checkpoint computes its own graph again.
    if torch.is_grad_enabled() or module.training:
        return True
    # Reentrant checkpoints disable gradients as evaluations do, but appear among the callers.
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code is CheckpointFunction.forward.__code__:
            return True
        frame = frame.f_back
    return False
