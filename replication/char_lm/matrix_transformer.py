"""Transformer with positions as rows and columns of a matrix, as in Sparse Transformers (Child et al. 2019, section 5)."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from replication.char_lm.recurrent import HeadProjections, RecurrentModel, distances, kept_by
from sparselib.checks import at_least
from sparselib.dense_attention import Normalizer, weights_of
from sparselib.predictors import RowWise


class MatrixTransformer(RecurrentModel):
    """Causal model of segments, each an image or a stretch of text, without memory; called as a :class:`RecurrentModel`.

    A position has two learned embeddings: of its row and of its column in a matrix of ``width`` columns, as in the paper for
    text and audio. For images, the matrix is the picture.

    Parameters
    ----------
    length : int
        Longest segment.
    width : int
        Columns of the matrix: the stride of factorised attention, or an image's width in pixels.
    normalizer : callable
        From scores ``[..., K]`` to weights.
    forms : sequence of RowWise
        Attention form of each layer: full, or a factorised pattern.
    """

    def __init__(
        self,
        vocab_size: int,
        *,
        layers: int,
        dimension: int,
        heads: int,
        inner: int,
        length: int,
        width: int,
        dropout: float,
        normalizer: Normalizer,
        forms: Sequence[RowWise],
    ):
        at_least("length", length, 1)
        at_least("width", width, 1)
        attentions = [
            FormAttention(dimension, heads, normalizer, form) for _, form in zip(range(layers), forms, strict=True)
        ]
        super().__init__(vocab_size, dimension, inner, attentions, memory_length=0, dropout=dropout)
        self.length, self.width = length, width
        self.rows = nn.Embedding(-(-length // width), dimension)
        self.columns = nn.Embedding(width, dimension)

    def embed(self, ids: Tensor) -> Tensor:
        """Return the sum of symbol, row and column embeddings ``[B, Q, d]`` of ``ids [B, Q]``.

        Raises
        ------
        ValueError
            If the segment is too long.
        """
        if ids.shape[1] > self.length:
            raise ValueError(f"`ids` must have at most {self.length} positions per segment, got {ids.shape[1]}")
        places = torch.arange(ids.shape[1], device=ids.device)
        return super().embed(ids) + self.rows(places // self.width) + self.columns(places % self.width)

    def positions(self, keys: int) -> None:
        """Return None, because the embeddings encode the positions."""


class FormAttention(nn.Module):
    """Scaled dot-product attention to the pairs that a form keeps."""

    def __init__(self, dimension: int, heads: int, normalizer: Normalizer, form: RowWise):
        super().__init__()
        self.project = HeadProjections(dimension, heads)
        self.normalizer, self.form = normalizer, form

    def forward(self, hidden: Tensor, context: Tensor, positions: None) -> tuple[Tensor, Tensor]:
        q, k, v = self.project(hidden, context)
        scores = q @ k.mT * q.shape[-1] ** -0.5
        visible = distances(q.shape[2], k.shape[2], q.device)[None, None] >= 0
        weights = weights_of(scores, kept_by(self.form, q, k, visible, scores), self.normalizer)
        return self.project.merge(weights @ v), weights
