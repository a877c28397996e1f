"""The nine forms of attention that Extremely Sparse Transformer compares, at a budget of k attended positions.

The paper describes them in prose; where it leaves a choice open, the form says what is done here. A row at the edge of its
sentence is cut, not shifted, and a budget larger than the row keeps whatever of the row the form can reach (Top-k and Random:
all of it). All masks are constants for the gradient, which is that of softmax over the pairs they keep.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from sparselib import masks
from sparselib.checks import Lengths, at_least, one_of
from sparselib.masks.lots import lots
from sparselib.predictors.rows import Rows, RowWise
from sparselib.predictors.topk import TopK, best_keys

#: The paper gives none; 2 is usual.
DILATION = 2


@dataclass(frozen=True)
class Full(RowWise):
    """Every visible key. For cross-attention too."""

    cross: ClassVar[bool] = True

    def pairs(self, rows: Rows) -> Tensor:
        return rows.visible


@dataclass(frozen=True)
class Positions(RowWise):
    """Any pattern of positions, such as a factorised one: ``Positions(masks.combined(parts, "per_head"))``.

    >>> x = torch.zeros(1, 1, 4, 8)
    >>> Positions(masks.sliding_window(3)).predict(x, x, causal=True)[0, 0].int()
    tensor([[1, 0, 0, 0],
            [1, 1, 0, 0],
            [0, 1, 1, 0],
            [0, 0, 1, 1]], dtype=torch.int32)
    """

    rule: masks.Pattern

    def pairs(self, rows: Rows) -> Tensor:
        return follows(self.rule, rows) & rows.visible


@dataclass(frozen=True)
class Budgeted(RowWise):
    """A form at a budget of `k` positions. Raises ``ValueError`` if k < 1."""

    k: int

    def __post_init__(self) -> None:
        at_least("k", self.k, 1)


class Patterned(Budgeted):
    """A form that is a pattern of positions, possibly another one in decoders."""

    pattern: ClassVar[Callable[[int, bool], masks.Pattern]]  # of the budget, in a decoder or not

    def pairs(self, rows: Rows) -> Tensor:
        return follows(type(self).pattern(self.k, rows.causal), rows) & rows.visible


class Block(Patterned):
    """The query's own block of k positions; blocks count from the first real token."""

    pattern = staticmethod(lambda k, causal: masks.block(k))


class Window(Patterned):
    """The k nearest positions, the query's own included: offsets -floor((k-1)/2) to floor(k/2), in decoders -(k-1) to 0.

    `predict` raises ``ValueError`` if the window is wider than the sequence. (In a model, where a batch may hold short
    sentences, the window is cut.)
    """

    pattern = staticmethod(lambda k, causal: _around(k, causal))

    def predict(self, q: Tensor, k: Tensor, *, lengths: Lengths = None, causal: bool = False) -> Tensor:
        """As in :class:`RowWise`."""
        predicted = super().predict(q, k, lengths=lengths, causal=causal)
        if self.k > predicted.shape[-1]:
            raise ValueError(f"k: a window of {self.k} is wider than the sequence of {predicted.shape[-1]}")
        return predicted


class Dilated(Patterned):
    """The window's offsets times 2: k positions, the query's own included."""

    pattern = staticmethod(lambda k, causal: _around(k, causal, DILATION))


class Global(Patterned):
    """The first k positions: everyone attends to them, and they to everyone."""

    pattern = staticmethod(lambda k, causal: _first(k))


@dataclass(frozen=True)
class Random(Budgeted):
    """k distinct keys per row and head, uniform among those that the query sees. For cross-attention too.

    A pair's lot depends on its positions, its head and the seed alone, so a row draws the same keys in training, in a longer
    batch, in any beam and in incremental decoding; ``masks.random_keys`` draws for a known length and could not. Sentences
    share their draws: give each layer a seed of its own.
    """

    seed: int = 0
    cross: ClassVar[bool] = True

    def pairs(self, rows: Rows) -> Tensor:
        return _drawn_keys(rows, rows.visible, self.k, self.seed)


@dataclass(frozen=True)
class WindowGlobalRandom(Budgeted):
    """BigBird at a budget: window, global and random keys at k/2, k/4 and k/4.

    Global and random take floor(k/4) each and the window the rest, so k of 2 or 3 is a window. Random keys are drawn outside
    the other two; where window and global positions overlap, a row attends to fewer than k.
    """

    seed: int = 0

    def pairs(self, rows: Rows) -> Tensor:
        quarter = self.k // 4
        pattern = masks.union(_around(self.k - 2 * quarter, rows.causal), _first(quarter))
        fixed = follows(pattern, rows) & rows.visible
        return fixed | _drawn_keys(rows, rows.visible & ~fixed, quarter, self.seed)


class TopKOutOfWindow(Budgeted):
    """A window of floor(k/2) and, by score, the best k - floor(k/2) keys outside it, ties kept; one softmax over both."""

    def pairs(self, rows: Rows) -> Tensor:
        width = self.k // 2
        window = follows(_around(width, rows.causal), rows) & rows.visible
        return window | best_keys(rows, rows.visible & ~window, self.k - width)


#: By the paper's names: what makes a form of a budget and a seed.
FORMS: dict[str, Callable[[int, int], RowWise]] = {
    "Full": lambda k, seed: Full(),
    "Block": lambda k, seed: Block(k),
    "Window": lambda k, seed: Window(k),
    "Dilated": lambda k, seed: Dilated(k),
    "Global": lambda k, seed: Global(k),
    "Random": Random,
    "BigBird": WindowGlobalRandom,
    "Top-k": lambda k, seed: TopK(k),
    "Top-k OOW": lambda k, seed: TopKOutOfWindow(k),
}


def form(name: str, k: int, seed: int = 0) -> RowWise:
    """The form of this name in the paper's tables at a budget of `k` (of no effect on Full); only two forms draw from `seed`.

    Raises ``ValueError`` if the name is none of :data:`FORMS`, or k < 1.

    >>> form("Window", 3).predict(torch.zeros(1, 1, 4, 8), torch.zeros(1, 1, 4, 8))[0, 0, 1]
    tensor([ True,  True,  True, False])
    """
    one_of("name", name, FORMS)
    at_least("k", k, 1)
    return FORMS[name](k, seed)


def follows(pattern: masks.Pattern, rows: Rows) -> Tensor:
    """A pattern at the positions of these rows: Bool that broadcasts to ``[B, H, Q, K]``."""
    device = rows.at.device
    sentence = torch.arange(len(rows.q), device=device)[:, None, None, None]
    head = torch.arange(rows.q.shape[1], device=device)[None, :, None, None]
    return pattern(sentence, head, rows.at, rows.of)


def _around(width: int, causal: bool, dilation: int = 1) -> masks.Pattern:
    """`width` positions around the query, or up to it: the half of a symmetric window that is not the future."""
    return masks.dilated(max(2 * width - 1, 0) if causal else width, dilation)


def _first(count: int) -> masks.Pattern:
    def attends(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        return (q_idx < count) | (kv_idx < count)

    return attends


def _drawn_keys(rows: Rows, allowed: Tensor, count: int, seed: int) -> Tensor:
    """`count` of the allowed keys of each row and head, or all if they are fewer: those with the highest lots."""
    heads = torch.arange(rows.q.shape[1], device=rows.at.device)[None, :, None, None]
    drawn, allowed = torch.broadcast_tensors(lots(seed, heads, rows.at, rows.of), allowed)
    drawn = drawn.masked_fill(~allowed, torch.iinfo(torch.int64).min)
    return torch.zeros_like(allowed).scatter_(-1, drawn.topk(min(count, drawn.shape[-1])).indices, True) & allowed
