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
    if weights_named(options):
        return True
    if recorded_outputs() is not None or (records and backward_pass() != -1):
        return False
    return options.get("output_attentions") is None or torch.compiler.is_compiling()


def weights_named(options: dict[str, object]) -> bool:
    """Return whether a call's caller asked for the weights by name, which takes the arguments of :func:`weights_requested`."""
    return bool(options.get("output_attentions")) or any("attentions" in name for name in recorded_outputs() or ())


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
