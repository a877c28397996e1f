"""Whether a model's caller requested attention weights, without which kernels compute the output."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from sparselib.control.open_blocks import backward_pass

try:
    from transformers.utils.output_capturing import _active_collector as _COLLECTOR
except ImportError:  # A version of transformers without it never tells, so weights are always computed.
    _COLLECTOR = None

#: The recorded outputs of a running model, by name; None outside of models that record with hooks.
Recorded = dict[str, list] | None


def recorded_outputs() -> Recorded:
    """Return the dictionary in which the running model records outputs, or None."""
    return None if _COLLECTOR is None or torch.compiler.is_compiling() else _COLLECTOR.get()


def weights_requested(options: dict[str, object], records: bool) -> bool:
    """Return whether a call must return the weights: if `output_attentions` is true, or the model does not say.

    Parameters
    ----------
    options : dict, the arguments that the model passed to its attention
    records : bool, whether the model's forward pass records outputs, for the recomputation of a checkpoint outside of the model
    """
    requested, recorded = options.get("output_attentions"), recorded_outputs()
    if recorded is None and records and backward_pass() != -1:
        recorded = {}
    if recorded is None:
        return requested is None or bool(requested) or torch.compiler.is_compiling()
    return bool(requested) or any("attentions" in name for name in recorded)


@contextmanager
def recording(recorded: Recorded) -> Iterator[None]:
    """Record the outputs of the same names again, and drop them, while a checkpoint recomputes a layer."""
    if recorded is None:
        yield
        return
    token = _COLLECTOR.set({name: [] for name in recorded})
    try:
        yield
    finally:
        _COLLECTOR.reset(token)
