"""Token sequences for training, tuning and measuring selection rules."""

from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from replication.corpora.tokens import read_tokens


def sequences(path: Path, first: int, count: int) -> Tensor:
    """Read ``count`` sequences of ids ``[N, n]`` without padding, starting at sequence ``first``.

    Raises
    ------
    ValueError
        If the file has too few sequences.
    """
    ids = read_tokens(path)["input_ids"]
    if len(ids) < first + count:
        raise ValueError(f"{path}: must contain at least {first + count} sequences, got {len(ids)}")
    return ids[first : first + count]


def drawn_sequences(path: Path, first: int, count: int, seed: int) -> Tensor:
    """Draw ``count`` sequences of ids ``[N, n]`` at random from all sequences behind the first ones.

    Consecutive sequences are of the same document, and a bound on independent sequences would not hold for them.

    Raises
    ------
    ValueError
        If the file has too few sequences.
    """
    sequences(path, first, count)
    ids = read_tokens(path)["input_ids"][first:]
    return ids[torch.randperm(len(ids), generator=torch.Generator().manual_seed(seed))[:count]]


def batches(ids: Tensor, size: int) -> Iterator[Tensor]:
    """Split ids ``[N, n]`` into batches of at most ``size`` sequences."""
    return iter(ids.split(size))
