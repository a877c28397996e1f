"""Patterns drawn at random: Longformer's global tokens, BigBird's random keys, and random keys alone.

All draws are made on the CPU from the ``torch.Generator`` passed in (the global one stays untouched) and among the real
positions of each sentence, so neither padding nor the padded length changes them. A sentence of length 0 gets none.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from sparselib.checks import SentenceLengths, at_least, checked_lengths, one_of
from sparselib.masks.global_tokens import sequence_globals
from sparselib.masks.local import sliding_window
from sparselib.masks.lots import lots
from sparselib.masks.pattern import Pattern, to_dense, union

PAPER_LENGTHS = (1024, 3072, 4096)
"""Lengths at which the published BigBird code draws by its first plan, not by the one for all others."""


def longformer(globals_: int, lengths: SentenceLengths, generator: Generator) -> Pattern:
    """The diagonal, and rows and columns of `globals_` random positions per sentence, shared by all heads.

    Sparsefinder §5: "the number of random global tokens". They are drawn without replacement from the real positions; a
    shorter sentence takes all it has. Each position has a lot of its own, so a sentence that grows keeps its global tokens but
    for those that a new one displaces: what was drawn for a prefix is not drawn anew at every step of decoding. (The
    reference code draws Uniform{2, ..., G - 1} positions, with replacement and over the padding.)

    Parameters
    ----------
    globals_ : int
    lengths : integers ``[B]``
    generator : torch.Generator

    Raises
    ------
    ValueError
        If `globals_` or a length is negative, or the lengths are not integers ``[B]``.

    >>> masks.to_dense(masks.longformer(2, [5], torch.Generator().manual_seed(0)), 1, 1, 5).sum(-1).sort().values
    tensor([[[3, 3, 3, 5, 5]]])
    """
    at_least("globals_", globals_, 0)
    lengths = checked_lengths(lengths)
    sentence, position = torch.arange(len(lengths))[:, None], torch.arange(_at_least_one(lengths))
    seed = int(torch.randint(2**62, (), generator=generator))
    real = position < lengths.cpu()[:, None]
    drawn = lots(seed, sentence, position, position).masked_fill(~real, torch.iinfo(torch.int64).min)
    winners = drawn.topk(min(globals_, len(position))).indices
    is_global = (torch.zeros_like(real).scatter_(1, winners, True) & real).to(lengths.device)
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

    `random_keys` distinct real keys per row and head, outside the fixed part; a row with fewer of them takes all. Sentences of
    equal length in a batch share one draw, as in the published code that Sparsefinder used.

    Parameters
    ----------
    random_keys, heads : int
    lengths : integers ``[B]``
    generator : torch.Generator
    random_scope : str
        ``"uniform"``: keys come from the whole sentence. ``"official_plan"``: from the columns that the published planner draws
        from, mostly the first ones; also where that crashes, as rows have fewer than `random_keys` of these: they take all.

    Raises
    ------
    ValueError
        If `random_keys` or a length is negative, the lengths are not integers ``[B]``, `heads` is below 1 or the scope unknown.

    >>> masks.to_dense(masks.bigbird(1, [7], 1, torch.Generator().manual_seed(0)), 1, 1, 7).sum(-1)
    tensor([[[7, 5, 6, 6, 6, 5, 7]]])
    """
    at_least("random_keys", random_keys, 0)
    one_of("random_scope", random_scope, RANDOM_SCOPES)
    lengths = checked_lengths(lengths)
    drawn = _sampled(RANDOM_SCOPES[random_scope], random_keys, lengths, heads, generator)
    return union(_band_and_border(lengths), drawn)


def _band_and_border(lengths: SentenceLengths) -> Pattern:
    return union(sliding_window(3), sequence_globals(lengths, "first_last"))


def random_keys(count: int, lengths: SentenceLengths, heads: int, generator: Generator) -> Pattern:
    """`count` distinct keys per row and head, uniform over the sentence; all of them if it is shorter.

    Source: Extremely Sparse Transformer, §4. Sentences of equal length share one draw.

    Parameters
    ----------
    count, heads : int
    lengths : integers ``[B]``
    generator : torch.Generator

    Raises
    ------
    ValueError
        If `count` or a length is negative, the lengths are not integers ``[B]``, or `heads` is below 1.

    >>> masks.to_dense(masks.random_keys(2, [3], 1, torch.Generator().manual_seed(0)), 1, 1, 3).sum(-1)
    tensor([[[2, 2, 2]]])
    """
    at_least("count", count, 0)
    return _sampled(_anywhere, count, checked_lengths(lengths), heads, generator)


class Share(NamedTuple):
    """Keys to draw in each row from some columns.

    Attributes
    ----------
    start, end : int
        The columns.
    count : int
        Keys to draw there.
    allowed : Bool Tensor ``[n, end - start]``
        Those that a row may draw.
    """

    start: int
    end: int
    count: int
    allowed: Tensor


Plan = Callable[[int, int], list[Share]]
"""``(length, keys per row) -> shares``."""


def _anywhere(length: int, count: int) -> list[Share]:
    return [Share(0, length, count, torch.ones(length, length, dtype=torch.bool))]


def _uniform(length: int, count: int) -> list[Share]:
    return [Share(0, length, count, ~to_dense(_band_and_border([length]), 1, 1, length)[0, 0])]


def _official_plan(length: int, count: int) -> list[Share]:
    """The published planner at block size 1: in long sentences all keys lie in the first 2r + 5 columns.

    Also where it crashes, for want of columns: a row then takes those that there are. At the lengths of the paper it is
    another plan: any of the first 1,024 columns but the first, for models of 4,096 positions, as published. (Of 1,024 tokens
    it draws the last one too, which the fixed part has already.)
    """
    if length in PAPER_LENGTHS:
        parts = [(1, 1024, count)]
    elif 2 * count + 5 < length:
        parts = [(0, 2 * count + 5, count)]
    elif count + 5 < length:
        parts = [(0, count + 5, count // 2), (count + 5, length, count - count // 2)]
    else:
        parts = [(0, length, count)]
    return [Share(start, end, share, _official_columns(length, start, end)) for start, end, share in parts]


def _official_columns(length: int, start: int, end: int) -> Tensor:
    """Which of the columns from `start` to `end` a row may draw: ``Bool[n, end - start]``."""
    row, column = torch.arange(length)[:, None], torch.arange(start, end)
    inner = (row > 0) & (row < length - 1)  # the first row and the last attend to everything
    outside = inner & ((row - column).abs() > 1)
    if length in PAPER_LENGTHS:
        return outside
    # The planner takes the end of each part for the end of the sentence. So its last column counts as global; and the pairs
    # (1, last but one) and (last but one, 1) are left out, as those rows hold, in blocks, both global blocks and a window of 3.
    corner = ((row == 1) & (column == end - 2)) | ((row == end - 2) & (column == 1))
    return outside & (column > 0) & (column < end - 1) & ~corner


RANDOM_SCOPES: dict[str, Plan] = {"uniform": _uniform, "official_plan": _official_plan}
"""Where BigBird's random keys may come from, by name."""


def _sampled(plan: Plan, count: int, lengths: Tensor, heads: int, generator: Generator) -> Pattern:
    """Random keys as `plan` says: one draw per distinct length."""
    at_least("heads", heads, 1)
    longest = _at_least_one(lengths)
    drawn = torch.zeros(len(lengths), heads, longest, longest, dtype=torch.bool)
    for length in lengths[lengths > 0].unique().tolist():
        keys = torch.zeros(heads, length, length, dtype=torch.bool)
        for share in plan(length, count):
            keys[..., share.start : share.end] = _draw(share.allowed, share.count, heads, generator)
        drawn[(lengths == length).cpu(), :, :length, :length] = keys
    drawn = drawn.to(lengths.device)

    def attends(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        # As in `longformer`: past the longest sentence there is only padding.
        return drawn[b, h, q_idx.clamp(max=longest - 1), kv_idx.clamp(max=longest - 1)]

    return attends


def _at_least_one(lengths: Tensor) -> int:
    """The longest length, or 1: a table of no positions could not be asked for one."""
    return max(1, int(lengths.max()))


def _draw(allowed: Tensor, count: int, heads: int, generator: Generator) -> Tensor:
    """``Bool[H, n, m]``: per head and row, min(count, available) keys, uniform among ``allowed [n, m]``."""
    tickets = torch.rand(heads, *allowed.shape, generator=generator).masked_fill_(~allowed, -1.0)
    winners = tickets.topk(min(count, allowed.shape[-1])).indices
    return torch.zeros_like(tickets, dtype=torch.bool).scatter_(-1, winners, True) & allowed
