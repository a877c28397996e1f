"""Characters of a text as ids, and the streams of segments that a model with a memory reads.

Characters are bytes, as in the published numbers on enwik8 and text8, so that bits per character are comparable.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from sparselib.checks import at_least

#: Target of a position without a successor, as in PyTorch's ``cross_entropy``.
IGNORED = -100


@dataclass(frozen=True)
class Alphabet:
    """The bytes of a training text in ascending order, with ids from 1; id 0 is any other byte."""

    symbols: bytes

    @classmethod
    def of(cls, text: bytes) -> "Alphabet":
        """Return the alphabet of a text."""
        return cls(bytes(sorted(set(text))))

    def __len__(self) -> int:
        return len(self.symbols) + 1

    def encode(self, text: bytes) -> Tensor:
        """Return ids ``[N]`` as int16, so that a corpus of 100 MB takes 200 MB."""
        ids = np.zeros(256, dtype=np.int16)
        ids[np.frombuffer(self.symbols, dtype=np.uint8)] = np.arange(1, len(self))
        return torch.from_numpy(ids[np.frombuffer(text, dtype=np.uint8)])


@dataclass(frozen=True)
class Stream:
    """A text cut into rows that are read side by side.

    ``inputs`` and their successors ``targets`` are ``[B, T]``. The segments of a row are consecutive, so a model can carry its
    memory from one to the next. No character is dropped: positions behind the end of the text have the target
    :data:`IGNORED`.
    """

    inputs: Tensor
    targets: Tensor

    def segments(self, length: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield inputs and targets of each segment, ``[B, <= length]`` long integers, from left to right."""
        return (self.segment(number, length) for number in range(self.count(length)))

    def segment(self, number: int, length: int) -> tuple[Tensor, Tensor]:
        """Return one of the :meth:`segments`, counted from 0."""
        columns = slice(number * length, (number + 1) * length)
        return self.inputs[:, columns].long(), self.targets[:, columns].long()

    def count(self, length: int) -> int:
        """Return the number of segments."""
        return -(-self.inputs.shape[1] // length)

    def characters(self) -> int:
        """Return the number of predicted characters."""
        return int((self.targets != IGNORED).sum())


def cut(ids: Tensor, rows: int, length: int) -> Stream:
    """Cut ids ``[N]`` into ``rows`` rows, each with at least one segment of ``length``.

    Raises
    ------
    ValueError
        If ``rows`` or ``length`` is below 1, or the text is too short for one segment in each row.
    """
    at_least("rows", rows, 1)
    at_least("length", length, 1)
    if len(ids) <= rows * length:
        raise ValueError(
            f"the text must have more than {rows * length} characters for {rows} rows of segments of {length}, "
            f"got {len(ids)}"
        )
    columns = -(-(len(ids) - 1) // rows)
    missing = rows * columns - (len(ids) - 1)
    return Stream(
        functional.pad(ids[:-1], (0, missing)).view(rows, columns),
        functional.pad(ids[1:], (0, missing), value=IGNORED).view(rows, columns),
    )


def read_streams(folder: str | Path, rows: Mapping[str, int], length: int) -> tuple[Alphabet, dict[str, Stream]]:
    """Read the alphabet of ``folder/train.txt``, and a stream of ``folder/<split>.txt`` for each split.

    Parameters
    ----------
    folder : str or Path
        Folder of the texts.
    rows : mapping
        Number of rows per split.
    length : int
        Characters of a segment.

    Raises
    ------
    FileNotFoundError
        If a file does not exist.
    ValueError
        If a text is too short for its rows.
    """
    folder = Path(folder)
    alphabet = Alphabet.of((folder / "train.txt").read_bytes())
    streams = {}
    for split, count in rows.items():
        path = folder / f"{split}.txt"
        try:
            streams[split] = cut(alphabet.encode(path.read_bytes()), count, length)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error
    return alphabet, streams
