"""Global tokens: positions that attend to all positions and that all positions attend to (full rows and columns)."""

from collections.abc import Sequence

from torch import Tensor

from sparselib.checks import SentenceLengths, checked_lengths, integer_at_least, one_of
from sparselib.masks.pattern import Pattern, union


def global_tokens(positions: Sequence[int]) -> Pattern:
    """Return the rows and columns of the given positions, the same in every sentence and head.

    Parameters
    ----------
    positions : sequence of int, at least 0, counted from the start

    Examples
    --------
    >>> masks.to_dense(masks.global_tokens([1]), 1, 1, 3)[0, 0].int().tolist()
    [[0, 1, 0], [1, 1, 1], [0, 1, 0]]
    """
    for position in positions:
        integer_at_least("positions", position, 0)
    return union(*(_cross(position) for position in positions))


def _cross(position: int) -> Pattern:
    def attends(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        return (q_idx == position) | (kv_idx == position)

    return attends


def sequence_globals(lengths: SentenceLengths, which: str) -> Pattern:
    """Return row and column of each sentence's first token, or of its first and its last *real* token.

    Parameters
    ----------
    lengths : integers ``[B]``, the real tokens of each sentence
    which : ``"first"`` or ``"first_last"``

    Examples
    --------
    >>> masks.to_dense(masks.sequence_globals([4, 2], "first_last"), 2, 1, 4)[:, 0, 2].int().tolist()
    [[1, 0, 0, 1], [1, 1, 0, 0]]
    """
    # The reference code takes the last padded position, which is wrong for short sentences.
    one_of("which", which, ("first", "first_last"))
    lengths = checked_lengths(lengths)
    first = _cross(0)

    def last(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        end = lengths[b] - 1
        return (q_idx == end) | (kv_idx == end)

    return first if which == "first" else union(first, last)
