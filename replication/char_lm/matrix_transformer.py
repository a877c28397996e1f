"""The transformer of Sparse Transformers (Child et al. 2019, section 5): positions are rows and columns of a matrix."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from replication.char_lm.recurrent import HeadProjections, RecurrentModel, distances, kept_by
from sparselib.checks import at_least
from sparselib.dense_attention import Normalizer, weights_of
from sparselib.predictors import RowWise


class MatrixTransformer(RecurrentModel):
    """Causal model of segments of one length, an image or a stretch of text each; see :class:`RecurrentModel`.

    A position is told by two learned embeddings, of its row and of its column in a matrix of ``width`` columns, as the paper
    does for text and audio (for images they are those of the picture). It has no memory: segments are read one by one.

    Parameters
    ----------
    length : int
        The longest segment.
    width : int
        Of the matrix: the stride of factorised attention, or the pixels of a line.
    normalizer : callable
        From scores ``[..., K]`` to weights.
    forms : sequence of RowWise
        What each layer attends to: everything, or a factorised pattern.
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
        """Of symbol, row and column. Raises ``ValueError`` for a segment that is too long."""
        if ids.shape[1] > self.length:
            raise ValueError(f"a segment of {ids.shape[1]}: this model knows {self.length} positions")
        places = torch.arange(ids.shape[1], device=ids.device)
        return super().embed(ids) + self.rows(places // self.width) + self.columns(places % self.width)

    def positions(self, keys: int) -> None:
        """Nothing: symbols bring their places along."""


class FormAttention(nn.Module):
    """Scaled dot-product attention to what a form keeps."""

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
