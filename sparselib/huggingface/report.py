"""What sparsifying a model has come to: head by head, and for the model's output."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from sparselib.huggingface.layers import Inputs
from sparselib.huggingface.probe import numbers


@dataclass(frozen=True)
class HeadReport:
    """One head on the half of the text that it was calibrated on.

    Attributes
    ----------
    predictor : what it attends along; ``dense`` if nothing reaches the target at a sparsity worth having
    recall : mean share of the needed keys that are found
    bound : what the expected recall is not below, with the report's confidence
    sparsity : share of the visible pairs that is left out
    """

    layer: int
    head: int
    predictor: str
    recall: float
    bound: float
    sparsity: float


@dataclass
class Report:
    """Every head, and the drift: the distance of the restricted model's output from its own, as a share of its length."""

    heads: list[HeadReport]
    gold: str
    recall: float
    confidence: float
    drift: float = float("nan")

    @property
    def sparsity(self) -> float:
        """Mean over the heads that could be sparsified."""
        return sum(one.sparsity for one in self.heads) / len(self.heads)

    def __str__(self) -> str:
        head = f"{'layer':>5} {'head':>4}  {'predictor':<24} {'recall':>7} {'bound':>6} {'sparsity':>8}"
        rows = [
            f"{one.layer:>5} {one.head:>4}  {one.predictor:<24} {one.recall:>7.4f} {one.bound:>6.3f} {one.sparsity:>8.3f}"
            for one in self.heads
        ]
        dense = sum(one.predictor == "dense" for one in self.heads)
        end = (
            f"gold {self.gold}; each bound holds with confidence {self.confidence}; mean sparsity {self.sparsity:.3f}; "
            f"{dense} of {len(self.heads)} heads dense; the output drifts by {self.drift:.3f} of its length. "
            "Every score is still computed, unless blocks are visited (to_blocks)."
        )
        return "\n".join([head, *rows, end])


@torch.no_grad()
def drift_of(model: nn.Module, restriction: AbstractContextManager, batches: Sequence[Inputs]) -> float:
    """How far the first output moves under a restriction, over the real tokens of all batches."""
    moved, length = 0.0, 0.0
    for inputs in batches:
        inputs = {name: x.to(model.device) for name, x in inputs.items()}
        own = _first(model(**inputs))
        with restriction:
            restricted = _first(model(**inputs))
        real = inputs.get("attention_mask")
        if real is not None and real.shape == own.shape[:2]:
            own, restricted = own[real.bool()], restricted[real.bool()]
        moved += (own.double() - restricted.double()).square().sum().item()
        length += own.double().square().sum().item()
    return (moved / length) ** 0.5 if length else 0.0


def _first(output: object) -> Tensor:
    return next(iter(numbers(output, "output")))[1]
