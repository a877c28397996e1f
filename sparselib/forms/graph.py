"""Attention forms inside models, in training and when decoding step by step.

>>> graph = FormGraph([form("Window", 8)] * control.layers, causal=True)
>>> with control.restricted_to(graph): model(ids)

A factorised pattern is a form too: ``[factorised("strided", 16, layer=n) for n in range(control.layers)]``.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from sparselib.predictors.rows import Rows, RowWise


@dataclass(frozen=True)
class FormGraph:
    """A ``sparselib.integrations.control.Graph`` of one form per layer; ``causal`` for the self-attention of a decoder.

    Positions count the real tokens of a sentence, so padding on the left moves no block and no global token. Cross-attention
    of Hugging Face models tells no positions of queries: Random draws other keys there when decoding than in training.
    """

    forms: Sequence[RowWise]
    causal: bool

    def __call__(self, layer: int, q: Tensor, k: Tensor, visible: Tensor, positions: Tensor | None = None) -> Tensor:
        """``[B, H, Q, D]``, ``[B, H, K, D]``, ``visible [B, 1, Q, K]`` -> Bool that broadcasts to ``[B, H, Q, K]``.

        Without ``positions [Q]`` this is self-attention, and the queries are those of the last keys.

        Raises
        ------
        ValueError
            For cross-attention in a form that has none, as far as it is seen.
        """
        form = self.forms[layer]
        of = (visible.any(dim=2, keepdim=True).cumsum(-1) - 1).clamp(min=0)  # padding has no position; any will do
        if positions is not None:
            at = positions[:, None]
        elif q.shape[2] <= k.shape[2]:
            at = of[..., k.shape[2] - q.shape[2] :].mT
        else:
            at = torch.arange(q.shape[2], device=q.device)[:, None]
        if not form.cross and (positions is not None or q.shape[2] > k.shape[2]):
            raise ValueError(f"{type(form).__name__} is for self-attention, not for {q.shape[2]} queries of other keys")
        precise = torch.promote_types(q.dtype, torch.float32)
        return form.pairs(Rows(q.detach().to(precise), k.detach().to(precise), visible, at, of, self.causal))
