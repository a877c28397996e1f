"""Adaptive Attention Span (Sukhbaatar et al. 2019): each head learns the length of its context."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from replication.char_lm.recurrent import HeadProjections, RecurrentModel, distances, kept_by, relative_shift
from sparselib.checks import at_least
from sparselib.dense_attention import Normalizer, weights_of
from sparselib.predictors import RowWise


class AdaptiveSpan(RecurrentModel):
    """Causal language model over characters with learned spans, called as a :class:`RecurrentModel`.

    A query attends to at most the ``maximal_span`` positions before it, never to its own (the paper's section 2.1). So the
    first character of a text has an empty row.

    Parameters
    ----------
    maximal_span : int
        The paper's S, in positions; also the length of the memory.
    ramp : int
        The paper's R: positions over which a head's mask falls from 1 to 0.
    span_penalty : float
        The paper's lambda (2e-6 there), on the sum over layers of the heads' mean span in positions.
    initial_span : float
        Initial spans as a share of S; 0 in the paper.
    normalizer : callable
        Function of scores to which the log of the span mask has been added. With softmax this is the paper's reweighted and
        renormalised softmax. With top-k softmax it equals the code of Extremely Sparse Transformer, which selects the largest
        reweighted weights and renormalises them.
    forms : sequence of RowWise
        Attention form of each layer: the positions within its span that it attends to.

    Raises
    ------
    ValueError
        If ``maximal_span`` or ``ramp`` is below 1, or ``initial_span`` is not between 0 and 1.
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
        # One embedding per distance 1 to S, which all heads and layers share.
        self.places = nn.Parameter(torch.randn(maximal_span, dimension // heads))

    def positions(self, keys: int) -> Tensor:
        """Return embeddings ``[K, D]`` of the distances K - 1 to 0, with zeros for the invisible distances 0 and beyond S."""
        beyond = max(0, keys - 1 - len(self.places))
        return nn.functional.pad(self.places, (0, 0, 1, beyond))[:keys].flip(0)

    def spans(self) -> Tensor:
        """Return the span z of every head in positions, ``[layers, H]``."""
        return torch.stack([layer.attention.spans() for layer in self.layers])

    def penalty(self) -> Tensor:
        """Return ``span_penalty`` times the sum over layers of the mean span."""
        return self.span_penalty * self.spans().mean(1).sum()

    @torch.no_grad()
    def constrain(self) -> None:
        """Clamp spans to 0 to S."""
        for layer in self.layers:
            layer.attention.share.clamp_(0, 1)

    @torch.no_grad()
    def measurements(self) -> dict[str, float]:
        """Return ``mean_span``: the mean over all heads in positions, with the ramp, as the authors' code logs it."""
        first = self.layers[0].attention
        return {"mean_span": (self.spans() + first.ramp).clamp_max(first.maximal_span).mean().item()}


class SpanAttention(nn.Module):
    """Attention with a learned span per head."""

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
            raise ValueError(f"`initial_span` must be a share of `maximal_span`, 0 to 1, got {initial_span}")
        self.project = HeadProjections(dimension, heads)
        self.maximal_span, self.ramp = maximal_span, ramp
        self.normalizer, self.form = normalizer, form
        # The parameter is a share of S, as in the authors' code, so that an optimiser step moves a span by many positions.
        self.share = nn.Parameter(torch.full((heads,), float(initial_span)))

    def spans(self) -> Tensor:
        """Return the spans ``[H]`` in positions."""
        return self.share * self.maximal_span

    def forward(self, hidden: Tensor, context: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        # Beyond the longest span every mask is 0, so leaving those keys out only saves time.
        reach = min(self.maximal_span, math.ceil(self.spans().max().item() + self.ramp))
        keys = min(context.shape[1], reach + hidden.shape[1])
        q, k, v = self.project(hidden, context[:, -keys:])
        distance = distances(q.shape[2], keys, q.device)
        mask = span_mask(distance.clamp_min(0), self.spans()[:, None, None], self.ramp)
        visible = (mask > 0) & (distance >= 1) & (distance <= self.maximal_span)
        scores = (q @ k.mT + relative_shift(q @ positions[-keys:].mT)) * q.shape[-1] ** -0.5
        # m * exp(s) = exp(s + log m). Masks of 0 are replaced first, because the gradient of their log would be NaN.
        scores = scores + mask.masked_fill(~visible, 1.0).log()
        kept = kept_by(self.form, q, k, visible[None], scores, first=context.shape[1] - keys)
        weights = weights_of(scores, kept, self.normalizer)
        return self.project.merge(weights @ v), weights


def span_mask(distance: Tensor, span: Tensor, ramp: int) -> Tensor:
    """Return ``m_z(x) = min(max((R + z - x) / R, 0), 1)`` for distances x and spans z (Sukhbaatar et al. 2019, section 2.2)."""
    return ((ramp + span - distance) / ramp).clamp(0, 1)
