"""What both character models are: causal layers over one segment after another, with a memory of what came before."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from sparselib.checks import at_least
from sparselib.predictors import Rows, RowWise

#: The inputs of every layer at the last positions, ``[B, <= M, d]`` each.
Memory = list[Tensor]
#: Is shown the attention weights ``[B, H, Q, K]`` of every layer; the last key is the last query's own position.
Observer = Callable[[int, Tensor], None]


class RecurrentModel(nn.Module, ABC):
    """Segment-level recurrence (Dai et al. 2019, section 3.2): layers attend to a segment and to a memory without gradient.

    Parameters
    ----------
    attentions : sequence of modules
        One per layer: ``(hidden [B, Q, d], context [B, K, d], positions) -> (output [B, Q, d], weights [B, H, Q, K])``, where
        the context ends with the segment itself.
    memory_length : int
        Positions of earlier segments that every layer keeps; may be changed after training.
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
        """Logits ``[B, Q, V]`` of the successors of ``ids [B, Q]``, and the memory for the segment that follows."""
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
        """``[B, Q] -> [B, Q, d]``."""
        return self.embedding(ids)

    @abstractmethod
    def positions(self, keys: int) -> object:
        """What every layer's attention shares and needs to know of the distances ``keys - 1, ..., 0``."""

    def penalty(self) -> Tensor | float:
        """What is added to the loss in training."""
        return 0.0

    def constrain(self) -> None:
        """Put parameters back where they are defined, after a step of the optimiser."""

    def measurements(self) -> dict[str, float]:
        """What is worth a column in the training log."""
        return {}


class Layer(nn.Module):
    """Attention and a feed-forward network, each added to its input and then normalised, as both papers have it."""

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
    """Queries, keys and values of all heads, and the way back, without biases as in both reference codes."""

    def __init__(self, dimension: int, heads: int):
        super().__init__()
        if dimension % heads:
            raise ValueError(f"dimension {dimension} is not a multiple of {heads} heads")
        self.heads = heads
        self.query, self.key, self.value, self.output = (nn.Linear(dimension, dimension, bias=False) for _ in range(4))

    def forward(self, hidden: Tensor, context: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """``q [B, H, Q, D]``, ``k`` and ``v [B, H, K, D]``."""
        return self.split(self.query(hidden)), self.split(self.key(context)), self.split(self.value(context))

    def split(self, tensor: Tensor) -> Tensor:
        """``[B, n, H * D] -> [B, H, n, D]``."""
        return tensor.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def merge(self, tensor: Tensor) -> Tensor:
        """``[B, H, n, D] -> [B, n, H * D]``, projected."""
        return self.output(tensor.transpose(1, 2).flatten(2))


def kept_by(form: RowWise, q: Tensor, k: Tensor, visible: Tensor, scores: Tensor, first: int = 0) -> Tensor:
    """The visible pairs that an attention form keeps, from ``q [B, H, Q, D]``, ``k [B, H, K, D]`` and ``scores [B, H, Q, K]``.

    Positions count from the oldest one in memory; ``first`` is that of the first key. ``visible`` and what is returned
    broadcast to ``[B, H, Q, K]``.
    """
    of_keys = torch.arange(first, first + k.shape[2], device=k.device)[None, None, None]
    of_queries = of_keys[..., k.shape[2] - q.shape[2] :].mT
    return form.pairs(Rows(q.detach(), k.detach(), visible, of_queries, of_keys, causal=True, scores=scores.detach()))


def distances(queries: int, keys: int, device: torch.device) -> Tensor:
    """How far back key j is from query i, ``[Q, K]``: the last query stands at the last key; negative in the future."""
    return torch.arange(keys - queries, keys, device=device)[:, None] - torch.arange(keys, device=device)


def relative_shift(by_distance: Tensor) -> Tensor:
    """From scores by distance to scores by key (Dai et al. 2019, appendix B), both ``[..., Q, K]``.

    Column c of the input belongs to the distance ``K - 1 - c``; entries in the future are left arbitrary. Row i moves left by
    ``Q - 1 - i``, which a column of padding and another reading of the same memory do at no cost.
    """
    *rest, queries, keys = by_distance.shape
    padded = nn.functional.pad(by_distance, (1, 0))
    return padded.reshape(*rest, keys + 1, queries)[..., 1:, :].reshape(*rest, queries, keys)
