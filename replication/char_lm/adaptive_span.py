"""Adaptive Attention Span (Sukhbaatar et al. 2019): every head learns how far back it looks."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from replication.char_lm.recurrent import HeadProjections, RecurrentModel, distances, kept_by, relative_shift
from sparselib.checks import at_least
from sparselib.dense_attention import Normalizer, weights_of
from sparselib.predictors import RowWise


class AdaptiveSpan(RecurrentModel):
    """Causal language model over characters with learned spans; see :class:`RecurrentModel` for how it is called.

    A query attends to at most the ``maximal_span`` positions before it, never to its own (the paper's section 2.1), so that
    the first character of a text attends to nothing.

    Parameters
    ----------
    maximal_span : int
        S; the memory holds as many positions.
    ramp : int
        R, over how many positions a head's mask falls from 1 to 0.
    span_penalty : float
        The paper's lambda (2e-6 there), on the sum over layers of the heads' mean span in positions.
    initial_span : float
        Spans at the beginning, as a share of S; the paper starts with 0.
    normalizer : callable
        Over scores to which the log of the span mask has been added. ``softmax`` then is the paper's reweighted and
        renormalised softmax, and top-k softmax is what the code of Extremely Sparse Transformer does by selecting the
        largest reweighted weights and renormalising them.
    forms : sequence of RowWise
        Which of the positions within its span each layer attends to, one form per layer.
    """

    def __init__(
        self,
        vocab_size: int,
        *,
        layers: int,
        dimension: int,
        heads: int,
        inner: int,
        maximal_span: int,
        ramp: int,
        span_penalty: float,
        initial_span: float,
        dropout: float,
        normalizer: Normalizer,
        forms: Sequence[RowWise],
    ):
        at_least("maximal_span", maximal_span, 1)
        attentions = [
            SpanAttention(dimension, heads, maximal_span, ramp, initial_span, normalizer, form)
            for _, form in zip(range(layers), forms, strict=True)
        ]
        super().__init__(vocab_size, dimension, inner, attentions, memory_length=maximal_span, dropout=dropout)
        self.span_penalty = span_penalty
        # One embedding per distance 1 to S, the same for all heads and layers.
        self.places = nn.Parameter(torch.randn(maximal_span, dimension // heads))

    def positions(self, keys: int) -> Tensor:
        """Embeddings ``[K, D]`` of the distances K - 1 to 0; those of 0 and beyond S are never used, and 0."""
        beyond = max(0, keys - 1 - len(self.places))
        return nn.functional.pad(self.places, (0, 0, 1, beyond))[:keys].flip(0)

    def spans(self) -> Tensor:
        """z of every head, ``[layers, H]``, in positions."""
        return torch.stack([layer.attention.spans() for layer in self.layers])

    def penalty(self) -> Tensor:
        return self.span_penalty * self.spans().mean(1).sum()

    @torch.no_grad()
    def constrain(self) -> None:
        for layer in self.layers:
            layer.attention.share.clamp_(0, 1)

    @torch.no_grad()
    def measurements(self) -> dict[str, float]:
        """``mean_span`` over all heads, with the ramp, as the authors' code logs it."""
        first = self.layers[0].attention
        return {"mean_span": (self.spans() + first.ramp).clamp_max(first.maximal_span).mean().item()}


class SpanAttention(nn.Module):
    """Attention of heads that each have their own span."""

    def __init__(
        self,
        dimension: int,
        heads: int,
        maximal_span: int,
        ramp: int,
        initial_span: float,
        normalizer: Normalizer,
        form: RowWise,
    ):
        super().__init__()
        at_least("ramp", ramp, 1)
        if not 0 <= initial_span <= 1:
            raise ValueError(f"initial_span must be a share of the maximal span, 0 to 1, got {initial_span}")
        self.project = HeadProjections(dimension, heads)
        self.maximal_span, self.ramp = maximal_span, ramp
        self.normalizer, self.form = normalizer, form
        # A share of S, as in the authors' code: a step of the optimiser then moves spans by many positions.
        self.share = nn.Parameter(torch.full((heads,), float(initial_span)))

    def spans(self) -> Tensor:
        return self.share * self.maximal_span

    def forward(self, hidden: Tensor, context: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        # Further back than the longest span every mask is 0, so leaving those keys out changes nothing but the time.
        reach = min(self.maximal_span, math.ceil(self.spans().max().item() + self.ramp))
        keys = min(context.shape[1], reach + hidden.shape[1])
        q, k, v = self.project(hidden, context[:, -keys:])
        distance = distances(q.shape[2], keys, q.device)
        mask = span_mask(distance.clamp_min(0), self.spans()[:, None, None], self.ramp)
        visible = (mask > 0) & (distance >= 1) & (distance <= self.maximal_span)
        scores = (q @ k.mT + relative_shift(q @ positions[-keys:].mT)) * q.shape[-1] ** -0.5
        # m * exp(s) = exp(s + log m); where m is 0 the log is not taken, whose gradient would be NaN.
        scores = scores + mask.masked_fill(~visible, 1.0).log()
        kept = kept_by(self.form, q, k, visible[None], scores, first=context.shape[1] - keys)
        weights = weights_of(scores, kept, self.normalizer)
        return self.project.merge(weights @ v), weights


def span_mask(distance: Tensor, span: Tensor, ramp: int) -> Tensor:
    """``m_z(x) = min(max((R + z - x) / R, 0), 1)`` (Sukhbaatar et al. 2019, section 2.2) of distances x and spans z."""
    return ((ramp + span - distance) / ramp).clamp(0, 1)
