"""Transformer-XL (Dai et al. 2019): segment recurrence with relative positions, and any normalizer."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from replication.char_lm.recurrent import HeadProjections, RecurrentModel, distances, kept_by, relative_shift
from sparselib.dense_attention import Normalizer, weights_of
from sparselib.predictors import RowWise


@dataclass(frozen=True)
class RelativePositions:
    """Inputs that all layers share.

    ``sinusoids [K, d]`` encode the distances K - 1 to 0. ``content`` and ``place``, both ``[H, 1, D]``, are the paper's biases
    u and v.
    """

    sinusoids: Tensor
    content: Tensor
    place: Tensor


class TransformerXL(RecurrentModel):
    """Causal language model over characters, called as a :class:`RecurrentModel`.

    A query sees its segment up to itself and the whole memory. With ``memory_length=0`` this is the paper's baseline of
    separate segments. As in the paper's section 3.3, all layers share u and v, and each layer projects the sinusoids itself.

    Parameters
    ----------
    normalizer : callable
        From scores ``[..., K]``, masked by ``-inf``, to weights: softmax in the paper, top-k softmax in its explicit sparse
        variant.
    forms : sequence of RowWise
        Attention form of each layer: the visible positions that it attends to.
    """

    def __init__(
        self,
        vocab_size: int,
        *,
        layers: int,
        dimension: int,
        heads: int,
        inner: int,
        memory_length: int,
        dropout: float,
        normalizer: Normalizer,
        forms: Sequence[RowWise],
    ):
        attentions = [
            RelativeAttention(dimension, heads, normalizer, form) for _, form in zip(range(layers), forms, strict=True)
        ]
        super().__init__(vocab_size, dimension, inner, attentions, memory_length=memory_length, dropout=dropout)
        self.content_bias, self.place_bias = (nn.Parameter(torch.zeros(heads, 1, dimension // heads)) for _ in range(2))

    def positions(self, keys: int) -> RelativePositions:
        return RelativePositions(
            sinusoids(torch.arange(keys - 1, -1, -1).to(self.content_bias), self.embedding.embedding_dim),
            self.content_bias,
            self.place_bias,
        )


class RelativeAttention(nn.Module):
    """Attention by content and distance, each with a bias that all queries share (Dai et al. 2019, section 3.3)."""

    def __init__(self, dimension: int, heads: int, normalizer: Normalizer, form: RowWise):
        super().__init__()
        self.project = HeadProjections(dimension, heads)
        self.project_place = nn.Linear(dimension, dimension, bias=False)
        self.normalizer, self.form = normalizer, form

    def forward(self, hidden: Tensor, context: Tensor, positions: RelativePositions) -> tuple[Tensor, Tensor]:
        q, k, v = self.project(hidden, context)
        place = self.project.split(self.project_place(positions.sinusoids)[None])
        scores = (q + positions.content) @ k.mT + relative_shift((q + positions.place) @ place.mT)
        visible = distances(q.shape[2], k.shape[2], q.device)[None, None] >= 0
        kept = kept_by(self.form, q, k, visible, scores)
        weights = weights_of(scores * q.shape[-1] ** -0.5, kept, self.normalizer)
        return self.project.merge(weights @ v), weights


def sinusoids(places: Tensor, dimension: int) -> Tensor:
    """Return sinusoidal encodings ``[K, d]`` of places ``[K]``.

    All sines come before all cosines; the order does not matter, because a learned projection follows.
    """
    frequency = 10_000 ** (-torch.arange(0, dimension, 2, device=places.device) / dimension)
    angle = places[:, None] * frequency.to(places)
    return torch.cat([angle.sin(), angle.cos()], dim=-1)[:, :dimension]
