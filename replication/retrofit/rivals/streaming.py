"""StreamingLLM (Xiao et al. 2024): attention sinks at the first tokens, and a window."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from sparselib.checks import Lengths, at_least
from sparselib.masks import visible_pairs
from sparselib.predictors import Needs


@dataclass(frozen=True)
class StreamingLLM:
    """Predictor of the first `sinks` keys and a window.

    The window covers the `window` keys up to the query and, in a bidirectional model, as many from the query on.
    """

    needs: ClassVar[Needs] = Needs(positions=True)

    sinks: int
    window: int

    def __post_init__(self) -> None:
        at_least("sinks", self.sinks, 0)
        at_least("window", self.window, 1)

    def predict(self, q: Tensor, k: Tensor, *, lengths: Lengths = None, causal: bool = False) -> Tensor:
        """Return the selected pairs ``Bool[B, H, n, n]`` of queries and keys ``[B, H, n, D]``."""
        position = torch.arange(q.shape[2], device=q.device)
        near = (position[:, None] - position).abs() < self.window
        visible = visible_pairs(q.shape[0], q.shape[2], k.shape[2], lengths, causal, q.device)
        return ((near | (position < self.sinks)) & visible).expand(-1, q.shape[1], -1, -1)
