"""Patterns drawn at random: Longformer's global tokens, BigBird's random keys, and random keys alone."""
# All draws are made on the CPU, from the `torch.Generator` passed in, among each sentence's real positions. So neither padding
# nor the padded length changes them.

from collections.abc import Callable

import torch
from torch import Generator, Tensor

from sparselib.checks import SentenceLengths, checked_lengths, integer_at_least, one_of
from sparselib.masks.global_tokens import sequence_globals
from sparselib.masks.local import sliding_window
from sparselib.masks.pattern import Pattern, entries, to_dense, union

PAPER_LENGTHS = (1024, 3072, 4096)
"""Lengths for which the published BigBird code has a separate plan."""

# Odd multipliers as signed 64-bit integers: for seed, head, query and key, then the two of splitmix64.
_SEED, _HEAD, _QUERY, _KEY = -7046029254386353131, -3335678366873096957, -6884282663029611473, -1800455987208640293
_FIRST, _SECOND = -4658895280553007687, -7723592293110705685


def position_hash(seed: int, head: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
    """Hash positions to pseudo-random int64 by splitmix64 (Steele et al. 2014): equal draws in any batch and decoding step.

    >>> position_hash(0, torch.tensor(0), torch.arange(2), torch.tensor(0)).tolist()
    [0, 9071725088682436940]
    """
    # Products and sums are modulo 2**64.
    x = torch.full_like(head, seed) * _SEED + head * _HEAD + q_idx * _QUERY + kv_idx * _KEY
    x = (x ^ _shift_right(x, 30)) * _FIRST
    x = (x ^ _shift_right(x, 27)) * _SECOND
    return x ^ _shift_right(x, 31)


def _shift_right(x: Tensor, bits: int) -> Tensor:
    """Shift right and fill up with zeros; torch's own shift repeats the sign."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)


def longformer(globals_: int, lengths: SentenceLengths, generator: Generator) -> Pattern:
    """Return Longformer's pattern: the diagonal, and rows and columns of random positions shared by all heads.

    Parameters
    ----------
    globals_ : int, at least 0
        Random global tokens per sentence (Sparsefinder §5), drawn without replacement; a shorter sentence takes all positions.
    lengths : integers ``[B]``, the real tokens of each sentence
    generator : torch.Generator

    Examples
    --------
    >>> masks.to_dense(masks.longformer(2, [5], torch.Generator().manual_seed(0)), 1, 1, 5).sum(-1).sort().values
    tensor([[[3, 3, 3, 5, 5]]])
    """
    # Positions are ranked by a hash, so a growing sentence keeps its global tokens except those that a new one displaces. The
    # reference code draws Uniform{2, ..., G - 1} positions, with replacement and also in padding.
    integer_at_least("globals_", globals_, 0)
    lengths = checked_lengths(lengths)
    sentence, position = torch.arange(len(lengths))[:, None], torch.arange(_longest(lengths))
    seed = int(torch.randint(2**62, (), generator=generator))
    real = position < lengths.cpu()[:, None]
    ranks = position_hash(seed, sentence, position, position).masked_fill(~real, torch.iinfo(torch.int64).min)
    drawn = ranks.topk(min(globals_, len(position))).indices
    is_global = (torch.zeros_like(real).scatter_(1, drawn, True) & real).to(lengths.device)
    last = is_global.shape[-1] - 1

    def rows_and_columns(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        # Positions past the longest sentence are padding: any value is right, but the index must be in range.
        return is_global[b, q_idx.clamp(max=last)] | is_global[b, kv_idx.clamp(max=last)]

    return union(sliding_window(1), rows_and_columns)


def bigbird(
    random_keys: int, lengths: SentenceLengths, heads: int, generator: Generator, random_scope: str = "uniform"
) -> Pattern:
    """Return BigBird's pattern for blocks of one token: a band of 3, first and last row and column, random keys.

    Sentences of equal length in a batch share one draw, as in the published code that Sparsefinder used.

    Parameters
    ----------
    random_keys : int, the distinct real keys per row and head outside the fixed part (or all, if fewer), at least 0
    lengths, generator : as in :func:`longformer`
    heads : int, at least 1
    random_scope : str
        ``"uniform"`` draws from the whole sentence. ``"official_plan"`` draws from the columns of the published planner, mostly
        the first ones; where the planner crashes because rows have too few of these columns, rows take all of them.

    Examples
    --------
    >>> masks.to_dense(masks.bigbird(1, [7], 1, torch.Generator().manual_seed(0)), 1, 1, 7).sum(-1)
    tensor([[[7, 5, 6, 6, 6, 5, 7]]])
    """
    integer_at_least("random_keys", random_keys, 0)
    one_of("random_scope", random_scope, RANDOM_SCOPES)
    lengths = checked_lengths(lengths)
    drawn = _sampled(RANDOM_SCOPES[random_scope], random_keys, lengths, heads, generator)
    return union(_band_and_border(lengths), drawn)


def _band_and_border(lengths: SentenceLengths) -> Pattern:
    return union(sliding_window(3), sequence_globals(lengths, "first_last"))


def random_keys(count: int, lengths: SentenceLengths, heads: int, generator: Generator) -> Pattern:
    """Return `count` distinct keys per row and head, uniform over the sentence (Extremely Sparse Transformer, §4).

    Parameters
    ----------
    count : int, at least 0; a shorter sentence takes all of its keys
    lengths, heads, generator : as in :func:`bigbird`, which shares draws in the same way

    Examples
    --------
    >>> masks.to_dense(masks.random_keys(2, [3], 1, torch.Generator().manual_seed(0)), 1, 1, 3).sum(-1)
    tensor([[[2, 2, 2]]])
    """
    integer_at_least("count", count, 0)
    return _sampled(_anywhere, count, checked_lengths(lengths), heads, generator)


Share = tuple[int, int, int, Tensor]
"""First column, end column, number of keys that a row draws between them, and the allowed pairs ``Bool[n, end - first]``."""

Plan = Callable[[int, int], list[Share]]
"""``(length, keys per row) -> shares``."""


def _anywhere(length: int, count: int) -> list[Share]:
    return [(0, length, count, torch.ones(length, length, dtype=torch.bool))]


def _uniform(length: int, count: int) -> list[Share]:
    return [(0, length, count, ~to_dense(_band_and_border([length]), 1, 1, length)[0, 0])]


def _official_plan(length: int, count: int) -> list[Share]:
    """Plan draws as the published planner does at block size 1: in long sentences, from the first 2r + 5 columns."""
    # At the paper's lengths its plan is another one: any of the first 1,024 columns but the first, as for 4,096 positions.
    if length in PAPER_LENGTHS:
        parts = [(1, 1024, count)]
    elif 2 * count + 5 < length:
        parts = [(0, 2 * count + 5, count)]
    elif count + 5 < length:
        parts = [(0, count + 5, count // 2), (count + 5, length, count - count // 2)]
    else:
        parts = [(0, length, count)]
    return [(start, end, share, _official_columns(length, start, end)) for start, end, share in parts]


def _official_columns(length: int, start: int, end: int) -> Tensor:
    """Return which of the columns from `start` to `end` each row may draw: ``Bool[n, end - start]``."""
    row, column = torch.arange(length)[:, None], torch.arange(start, end)
    inner = (row > 0) & (row < length - 1)  # the first and the last row attend to all columns
    outside = inner & ((row - column).abs() > 1)
    if length in PAPER_LENGTHS:
        return outside
    # The planner treats the end of each part as the end of the sentence, so its last column counts as global. It also leaves
    # out (1, last but one) and (last but one, 1): those rows of blocks contain both global blocks and a window of 3.
    corner = ((row == 1) & (column == end - 2)) | ((row == end - 2) & (column == 1))
    return outside & (column > 0) & (column < end - 1) & ~corner


RANDOM_SCOPES: dict[str, Plan] = {"uniform": _uniform, "official_plan": _official_plan}
"""Where BigBird's random keys are drawn from, by name."""


def _sampled(plan: Plan, count: int, lengths: Tensor, heads: int, generator: Generator) -> Pattern:
    integer_at_least("heads", heads, 1)
    longest = _longest(lengths)
    drawn = torch.zeros(len(lengths), heads, longest, longest, dtype=torch.bool)
    for length in lengths[lengths > 0].unique().tolist():
        keys = torch.zeros(heads, length, length, dtype=torch.bool)
        for start, end, share, allowed in plan(length, count):
            keys[..., start:end] = _draw(allowed, share, heads, generator)
        drawn[(lengths == length).cpu(), :, :length, :length] = keys
    drawn = drawn.to(lengths.device)

    def attends(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        # As in `longformer`: positions past the longest sentence are padding.
        return entries(drawn, b, h, q_idx.clamp(max=longest - 1), kv_idx.clamp(max=longest - 1))

    return attends


def _draw(allowed: Tensor, count: int, heads: int, generator: Generator) -> Tensor:
    """Draw min(count, allowed ones) of each row's allowed columns ``Bool[n, m]``, uniformly, for each head: ``[H, n, m]``."""
    # Floyd's algorithm (Bentley and Floyd 1987): the next draw is among one more rank than the last one, and if it was drawn
    # before, it is that rank. Rows with fewer ranks than draws begin later, and so draw all of them.
    rows, columns = allowed.shape
    available = allowed.sum(-1, keepdim=True)
    ranks = torch.full((rows, heads, count), -1)
    for number in range(count):
        largest = available - count + number
        rank = (torch.rand(rows, heads, generator=generator, dtype=torch.float64) * (largest + 1)).long()
        rank = torch.where((ranks == rank[..., None]).any(-1), largest, rank)
        ranks[..., number] = rank.where(largest >= 0, columns)
    # The columns of ranks are where the count of allowed ones passes them; no row has a rank as large as `columns`.
    places = torch.searchsorted(allowed.cumsum(-1), ranks.flatten(1), right=True).view(ranks.shape)
    drawn = torch.zeros(heads, rows, columns + 1, dtype=torch.bool)
    return drawn.scatter_(-1, places.transpose(0, 1), True)[..., :columns]


def _longest(lengths: Tensor) -> int:
    return max(1, int(lengths.max()))
