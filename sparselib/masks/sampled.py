"""Patterns drawn at random: Longformer's global tokens, BigBird's random keys, and random keys alone.

All draws are made on the CPU from the `torch.Generator` passed in (the global one stays untouched) and among
the real positions of each sentence, so neither padding nor the padded length changes them.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Generator, Tensor

from sparselib.checks import SentenceLengths, at_least, checked_lengths, one_of
from sparselib.masks.global_tokens import sequence_globals
from sparselib.masks.local import sliding_window
from sparselib.masks.pattern import Pattern, nothing, to_dense, union


def longformer(globals_: int, lengths: SentenceLengths, generator: Generator) -> Pattern:
    """The diagonal, and rows and columns of `globals_` random positions per sentence, shared by all heads.

    Sparsefinder §5: "the number of random global tokens". They are drawn without replacement from the real
    positions; a shorter sentence takes all it has. (The reference code draws Uniform{2, ..., G - 1}
    positions, with replacement and over the padding.) `lengths`: `[B]`.

    Raises ValueError if globals_ < 0 or the lengths are not integers of at least 1.
    """
    at_least("globals_", globals_, 0)
    lengths = checked_lengths(lengths)
    is_global = torch.zeros(len(lengths), int(lengths.max()), dtype=torch.bool)
    for sentence, length in enumerate(lengths.tolist()):
        is_global[sentence, torch.randperm(length, generator=generator)[:globals_]] = True
    is_global = is_global.to(lengths.device)
    last = is_global.shape[-1] - 1

    def rows_and_columns(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        # Past the longest sentence there is only padding: any value will do there, an index error will not.
        return is_global[b, q_idx.clamp(max=last)] | is_global[b, kv_idx.clamp(max=last)]

    return union(sliding_window(1), rows_and_columns)


def bigbird(
    random_keys: int,
    lengths: SentenceLengths,
    heads: int,
    generator: Generator,
    random_scope: str = "uniform",
) -> Pattern:
    """BigBird with blocks of one token: band of 3, first and last row and column, random keys.

    `random_keys` distinct real keys per row and head, outside the fixed part; a row with fewer of them takes
    all. `random_scope` says where they come from: "uniform" the whole sentence, "official_plan" mostly its
    first columns, as in the published BigBird code that Sparsefinder used. As there, sentences of
    equal length in a batch share one draw. `lengths`: `[B]`.

    Raises ValueError if random_keys < 0, heads < 1, a length < 1 or the scope is unknown.
    """
    at_least("random_keys", random_keys, 0)
    one_of("random_scope", random_scope, RANDOM_SCOPES)
    lengths = checked_lengths(lengths)
    drawn = _sampled(RANDOM_SCOPES[random_scope], random_keys, _band_and_border, lengths, heads, generator)
    return union(_band_and_border(lengths), drawn)


def _band_and_border(lengths: SentenceLengths) -> Pattern:
    return union(sliding_window(3), sequence_globals(lengths, "first_last"))


def random_keys(count: int, lengths: SentenceLengths, heads: int, generator: Generator) -> Pattern:
    """`count` distinct keys per row and head, uniform over the sentence; all of them if it is shorter.

    Source: Extremely Sparse Transformer, §4. Sentences of equal length share one draw.
    `lengths`: `[B]`.

    Raises ValueError if count < 0, heads < 1 or the lengths are not integers of at least 1.
    """
    at_least("count", count, 0)
    lengths = checked_lengths(lengths)
    return _sampled(_uniform_plan, count, lambda lengths: nothing(), lengths, heads, generator)


Plan = Callable[[int, int], list[tuple[int, int, int]]]
"""`(length, keys per row) -> [(first column, end column, keys to draw there), ...]`."""


def _uniform_plan(length: int, count: int) -> list[tuple[int, int, int]]:
    return [(0, length, count)]


def _official_plan(length: int, count: int) -> list[tuple[int, int, int]]:
    """The published planner at block size 1: in long sentences all keys lie in the first 2r + 5 columns."""
    if 2 * count + 5 < length:
        return [(0, 2 * count + 5, count)]
    if count + 5 < length:
        return [(0, count + 5, count // 2), (count + 5, length, count - count // 2)]
    return _uniform_plan(length, count)


RANDOM_SCOPES: dict[str, Plan] = {"uniform": _uniform_plan, "official_plan": _official_plan}
"""Where BigBird's random keys may come from, by name."""


def _sampled(
    plan: Plan,
    count: int,
    excluded: Callable[[Sequence[int]], Pattern],
    lengths: Tensor,
    heads: int,
    generator: Generator,
) -> Pattern:
    """Random keys as `plan` says, outside the pattern `excluded([length])`: one draw per distinct length."""
    at_least("heads", heads, 1)
    longest = int(lengths.max())
    drawn = torch.zeros(len(lengths), heads, longest, longest, dtype=torch.bool)
    for length in lengths.unique().tolist():
        allowed = ~to_dense(excluded([length]), 1, 1, length)[0, 0]
        keys = torch.zeros(heads, length, length, dtype=torch.bool)
        for start, end, share in plan(length, count):
            keys[..., start:end] = _draw(allowed[:, start:end], share, heads, generator)
        drawn[(lengths == length).cpu(), :, :length, :length] = keys
    drawn = drawn.to(lengths.device)

    def attends(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        # As in `longformer`: past the longest sentence there is only padding.
        return drawn[b, h, q_idx.clamp(max=longest - 1), kv_idx.clamp(max=longest - 1)]

    return attends


def _draw(allowed: Tensor, count: int, heads: int, generator: Generator) -> Tensor:
    """`Bool[H, n, m]`: per head and row, min(count, available) keys, uniform among `allowed` `[n, m]`."""
    tickets = torch.rand(heads, *allowed.shape, generator=generator).masked_fill_(~allowed, -1.0)
    winners = tickets.topk(min(count, allowed.shape[-1])).indices
    return torch.zeros_like(tickets, dtype=torch.bool).scatter_(-1, winners, True) & allowed
