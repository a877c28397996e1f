"""The text that rules learn from, are tuned on and are measured on."""

from collections.abc import Iterator
from pathlib import Path

from torch import Tensor

from replication.corpora.tokens import KIND
from replication.files.storage import read_tensors


def sequences(path: Path, first: int, count: int) -> Tensor:
    """So many sequences of ids ``[N, n]``, without padding, from the ``first`` on.

    Raises ``ValueError`` if there are fewer.
    """
    ids = read_tensors(path, kind=KIND)["input_ids"]
    if len(ids) < first + count:
        raise ValueError(f"{path}: {len(ids)} sequences, and {first + count} are asked for")
    return ids[first : first + count]


def batches(ids: Tensor, size: int) -> Iterator[Tensor]:
    """``[N, n]`` -> up to ``size`` sequences at a time."""
    return iter(ids.split(size))
