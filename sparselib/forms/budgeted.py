"""The nine attention forms that Extremely Sparse Transformer compares, at a budget of k attended positions."""
# The docstrings settle what the paper's prose leaves open. Rows at a sentence's edges are cut, not shifted. A budget beyond the
# row keeps all keys that the form can reach. Gradients treat masks as constants.

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from sparselib import masks
from sparselib.checks import Lengths, integer_at_least, one_of
from sparselib.masks.sampled import position_hash
from sparselib.predictors.rows import Rows, RowWise
from sparselib.predictors.topk import TopK, best_keys

#: The paper gives no value; 2 is usual.
DILATION = 2


@dataclass(frozen=True)
class Full(RowWise):
    """Every visible key; also for cross-attention."""

    cross: ClassVar[bool] = True

    def pairs(self, rows: Rows) -> Tensor:
        return rows.visible


@dataclass(frozen=True)
class Positions(RowWise):
    """Any position pattern as a form, for example a factorised one: ``Positions(masks.combined(parts, "per_head"))``.

    Parameters
    ----------
    rule : callable, a pattern of :mod:`sparselib.masks`

    Examples
    --------
    >>> x = torch.zeros(1, 1, 4, 8)
    >>> Positions(masks.sliding_window(3)).predict(x, x, causal=True)[0, 0].int().tolist()
    [[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]]
    """

    rule: masks.Pattern

    def pairs(self, rows: Rows) -> Tensor:
        return _evaluate(self.rule, rows) & rows.visible


@dataclass(frozen=True)
class Budgeted(RowWise):
    k: int

    def __post_init__(self) -> None:
        integer_at_least("k", self.k, 1)


class Patterned(Budgeted):
    """A form that is a position pattern, perhaps a different one in decoders."""

    pattern: ClassVar[Callable[[int, bool], masks.Pattern]]  # (k, causal) -> pattern

    def pairs(self, rows: Rows) -> Tensor:
        return _evaluate(type(self).pattern(self.k, rows.causal), rows) & rows.visible


class Block(Patterned):
    """The query's own block of k positions; blocks count from the first real token."""

    pattern = staticmethod(lambda k, causal: masks.block(k))


class Window(Patterned):
    """The k nearest positions, including the query's own: offsets -floor((k-1)/2) to floor(k/2), in decoders -(k-1) to 0.

    `predict` rejects a window wider than the sequence. In a model, whose batches may contain short sentences, it is cut.
    """

    pattern = staticmethod(lambda k, causal: _around(k, causal))

    def predict(self, q: Tensor, k: Tensor, *, lengths: Lengths = None, causal: bool = False) -> Tensor:
        predicted = super().predict(q, k, lengths=lengths, causal=causal)
        if self.k > predicted.shape[-1]:
            raise ValueError(
                f"`k` must be at most {predicted.shape[-1]}, the length of the sequence, got a window of {self.k}"
            )
        return predicted


class Dilated(Patterned):
    """The window's offsets times 2: k positions, including the query's own."""

    pattern = staticmethod(lambda k, causal: _around(k, causal, DILATION))


class Global(Patterned):
    """The first k positions, which attend to all positions and which all positions attend to."""

    pattern = staticmethod(lambda k, causal: _first(k))


@dataclass(frozen=True)
class Random(Budgeted):
    """k distinct keys per row and head, uniform among the visible keys; also for cross-attention.

    A hash of positions, head and seed ranks keys, so a row draws the same keys in training, in any beam and in decoding.
    Sentences share their draws: give each layer its own seed.
    """

    seed: int = 0
    cross: ClassVar[bool] = True

    def pairs(self, rows: Rows) -> Tensor:
        return _drawn_keys(rows, rows.visible, self.k, self.seed)


@dataclass(frozen=True)
class WindowGlobalRandom(Budgeted):
    """BigBird at a budget: a window, floor(k/4) global and floor(k/4) random keys, the latter outside the other two.

    Where window and global positions overlap, a row attends to fewer than k keys.
    """

    seed: int = 0

    def pairs(self, rows: Rows) -> Tensor:
        quarter = self.k // 4
        pattern = masks.union(_around(self.k - 2 * quarter, rows.causal), _first(quarter))
        fixed = _evaluate(pattern, rows) & rows.visible
        return fixed | _drawn_keys(rows, rows.visible & ~fixed, quarter, self.seed)


class TopKOutOfWindow(Budgeted):
    """A window of floor(k/2) and the k - floor(k/2) best-scoring keys outside it, with ties; one softmax covers both."""

    def pairs(self, rows: Rows) -> Tensor:
        width = self.k // 2
        window = _evaluate(_around(width, rows.causal), rows) & rows.visible
        return window | best_keys(rows, rows.visible & ~window, self.k - width)


#: Maps the paper's names to functions of budget and seed that return the form.
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
    """Return a form by its name in the paper's tables.

    Parameters
    ----------
    name : str, one of :data:`FORMS`
    k : int, the budget of attended positions, at least 1, which Full ignores
    seed : int, of Random and BigBird

    Examples
    --------
    >>> form("Window", 3).predict(torch.zeros(1, 1, 4, 8), torch.zeros(1, 1, 4, 8))[0, 0, 1]
    tensor([ True,  True,  True, False])
    """
    one_of("name", name, FORMS)
    integer_at_least("k", k, 1)
    return FORMS[name](k, seed)


def _evaluate(pattern: masks.Pattern, rows: Rows) -> Tensor:
    device = rows.at.device
    sentence = torch.arange(len(rows.q), device=device)[:, None, None, None]
    head = torch.arange(rows.q.shape[1], device=device)[None, :, None, None]
    return pattern(sentence, head, rows.at, rows.of)


def _around(width: int, causal: bool, dilation: int = 1) -> masks.Pattern:
    """Return `width` positions around the query or, if causal, up to it: the past half of a symmetric window."""
    return masks.dilated(max(2 * width - 1, 0) if causal else width, dilation)


def _first(count: int) -> masks.Pattern:
    def attends(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        return (q_idx < count) | (kv_idx < count)

    return attends


def _drawn_keys(rows: Rows, allowed: Tensor, count: int, seed: int) -> Tensor:
    """Draw `count` allowed keys per row and head, or all if there are fewer: the keys with the largest hashes."""
    heads = torch.arange(rows.q.shape[1], device=rows.at.device)[None, :, None, None]
    ranks, allowed = torch.broadcast_tensors(position_hash(seed, heads, rows.at, rows.of), allowed)
    ranks = ranks.masked_fill(~allowed, torch.iinfo(torch.int64).min)
    return torch.zeros_like(allowed).scatter_(-1, ranks.topk(min(count, ranks.shape[-1])).indices, True) & allowed
