"""How far a restriction of the attention moves a model's output."""

from collections.abc import Sequence
from contextlib import AbstractContextManager

import torch
from torch import Tensor, nn

from sparselib.huggingface.layers import Inputs
from sparselib.huggingface.probe import float_tensors


@torch.no_grad()
def drift_of(model: nn.Module, restriction: AbstractContextManager, batches: Sequence[Inputs]) -> float:
    """Return the relative change of the first output under a restriction, over the real tokens of all batches."""
    change, total = 0.0, 0.0
    for inputs in batches:
        inputs = {name: x.to(model.device) for name, x in inputs.items()}
        output = _first(model(**inputs))
        with restriction:
            restricted = _first(model(**inputs))
        real = inputs.get("attention_mask")
        if real is not None and real.shape == output.shape[:2]:
            output, restricted = output[real.bool()], restricted[real.bool()]
        change += (output.double() - restricted.double()).square().sum().item()
        total += output.double().square().sum().item()
    return (change / total) ** 0.5 if total else 0.0


def _first(output: object) -> Tensor:
    """Return the first float tensor of an output."""
    return next(iter(float_tensors(output, "output")))[1]
