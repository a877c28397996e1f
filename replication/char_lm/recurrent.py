"""The base of the character models: causal layers that read one segment after another, with a memory of earlier ones."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from sparselib.checks import at_least
from sparselib.predictors import Rows, RowWise

#: Each layer's inputs at the last positions, ``[B, <= M, d]``.
Memory = list[Tensor]
#: Callback with a layer's number and attention weights ``[B, H, Q, K]``; the last key is the position of the last query.
Observer = Callable[[int, Tensor], None]


class RecurrentModel(nn.Module, ABC):
    """Segment-level recurrence (Dai et al. 2019, section 3.2): layers attend to a segment, and to a memory without gradient.

    Parameters
    ----------
    vocab_size, dimension, inner : int
        Symbol ids, size of hidden states, and size of the feed-forward layers.
    attentions : sequence of modules
        One per layer: ``(hidden [B, Q, d], context [B, K, d], positions) -> (output [B, Q, d], weights [B, H, Q, K])``. The
        context ends with the segment itself.
    memory_length : int
        Positions of earlier segments that every layer keeps; may be changed after training.
    dropout : float
        Dropout probability.

    Raises
    ------
    ValueError
        If ``memory_length`` is negative.
    """

    def __init__(
        self,
        vocab_size: int,
        dimension: int,
        inner: int,
        attentions: Sequence[nn.Module],
        *,
        memory_length: int,
        dropout: float,
    ):
        super().__init__()
        at_least("memory_length", memory_length, 0)
        self.memory_length = memory_length
        self.embedding = nn.Embedding(vocab_size, dimension)
        self.layers = nn.ModuleList(Layer(attention, dimension, inner, dropout) for attention in attentions)
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(dimension, vocab_size)

    def forward(
        self, ids: Tensor, memory: Memory | None = None, observe: Observer | None = None
    ) -> tuple[Tensor, Memory]:
        """Return the logits ``[B, Q, V]`` of the successors of ``ids [B, Q]``, and the memory for the next segment."""
        hidden = self.dropout(self.embed(ids))
        kept: Memory = []
        for number, layer in enumerate(self.layers):
            context = hidden if memory is None else torch.cat([memory[number], hidden], dim=1)
            kept.append(context[:, max(0, context.shape[1] - self.memory_length) :].detach())
            hidden, weights = layer(hidden, context, self.positions(context.shape[1]))
            if observe is not None:
                observe(number, weights)
        return self.output(hidden), kept

    def embed(self, ids: Tensor) -> Tensor:
        """Return the embeddings ``[B, Q, d]`` of ``ids [B, Q]``."""
        return self.embedding(ids)

    @abstractmethod
    def positions(self, keys: int) -> object:
        """Return the encoding of the distances ``keys - 1, ..., 0`` that all layers share."""

    def penalty(self) -> Tensor | float:
        """Return the term that training adds to the loss."""
        return 0.0

    def constrain(self) -> None:
        """Clamp parameters to their range, after an optimiser step."""

    def measurements(self) -> dict[str, float]:
        """Return further columns of the training log."""
        return {}


class Layer(nn.Module):
    """Attention and a feed-forward network, each with a residual connection and then layer normalisation, as in both papers."""

    def __init__(self, attention: nn.Module, dimension: int, inner: int, dropout: float):
        super().__init__()
        self.attention = attention
        self.attention_norm = nn.LayerNorm(dimension)
        self.feed_forward = nn.Sequential(
            nn.Linear(dimension, inner), nn.ReLU(), nn.Dropout(dropout), nn.Linear(inner, dimension)
        )
        self.feed_forward_norm = nn.LayerNorm(dimension)
        self.dropout = nn.Dropout(dropout)

    def forward(self, hidden: Tensor, context: Tensor, positions: object) -> tuple[Tensor, Tensor]:
        attended, weights = self.attention(hidden, context, positions)
        hidden = self.attention_norm(hidden + self.dropout(attended))
        return self.feed_forward_norm(hidden + self.dropout(self.feed_forward(hidden))), weights


class HeadProjections(nn.Module):
    """Projections to queries, keys and values of all heads and back, without biases as in both reference codes.

    Raises
    ------
    ValueError
        If ``dimension`` is not a multiple of ``heads``.
    """

    def __init__(self, dimension: int, heads: int):
        super().__init__()
        if dimension % heads:
            raise ValueError(f"`dimension` must be a multiple of `heads` {heads}, got {dimension}")
        self.heads = heads
        self.query, self.key, self.value, self.output = (nn.Linear(dimension, dimension, bias=False) for _ in range(4))

    def forward(self, hidden: Tensor, context: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return ``q [B, H, Q, D]`` of the hidden states, and ``k`` and ``v [B, H, K, D]`` of the context."""
        return self.split(self.query(hidden)), self.split(self.key(context)), self.split(self.value(context))

    def split(self, tensor: Tensor) -> Tensor:
        """Reshape ``[B, n, H * D]`` to ``[B, H, n, D]``."""
        return tensor.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def merge(self, tensor: Tensor) -> Tensor:
        """Join heads ``[B, H, n, D]`` and project them to ``[B, n, d]``."""
        return self.output(tensor.transpose(1, 2).flatten(2))


def kept_by(form: RowWise, q: Tensor, k: Tensor, visible: Tensor, scores: Tensor, first: int = 0) -> Tensor:
    """Return the visible pairs that an attention form keeps.

    Parameters
    ----------
    form : RowWise
        The attention form.
    q, k : Tensor ``[B, H, Q, D]``, ``[B, H, K, D]``
    visible : Bool Tensor that broadcasts to ``[B, H, Q, K]``
    scores : Tensor ``[B, H, Q, K]``
    first : int
        Position of the first key, counted from the oldest position in memory.

    Returns
    -------
    Bool Tensor that broadcasts to ``[B, H, Q, K]``
    """
    key_places = torch.arange(first, first + k.shape[2], device=k.device)[None, None, None]
    query_places = key_places[..., k.shape[2] - q.shape[2] :].mT
    return form.pairs(
        Rows(q.detach(), k.detach(), visible, query_places, key_places, causal=True, scores=scores.detach())
    )


def distances(queries: int, keys: int, device: torch.device) -> Tensor:
    """Return the distance ``[Q, K]`` from each query back to each key, negative in the future.

    The last query is at the position of the last key.
    """
    return torch.arange(keys - queries, keys, device=device)[:, None] - torch.arange(keys, device=device)


def relative_shift(by_distance: Tensor) -> Tensor:
    """Turn scores by distance into scores by key (Dai et al. 2019, appendix B), both ``[..., Q, K]``.

    Column c of the input has the distance ``K - 1 - c``. Entries in the future are arbitrary.

    Notes
    -----
    Row i moves left by ``Q - 1 - i``. A column of padding and a reshape do that without copying row by row.
    """
    *rest, queries, keys = by_distance.shape
    padded = nn.functional.pad(by_distance, (1, 0))
    return padded.reshape(*rest, keys + 1, queries)[..., 1:, :].reshape(*rest, queries, keys)
