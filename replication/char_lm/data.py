"""Characters of a text, and the streams of segments that a model with a memory reads.

Characters are bytes, as in the published numbers on enwik8 and text8, so that bits per character compare.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from sparselib.checks import at_least

#: A target that is not there, as ``cross_entropy`` has it.
IGNORED = -100


@dataclass(frozen=True)
class Alphabet:
    """The bytes that a training text has, numbered in their order from 1 on; 0 is any other byte."""

    symbols: bytes

    @classmethod
    def of(cls, text: bytes) -> "Alphabet":
        return cls(bytes(sorted(set(text))))

    def __len__(self) -> int:
        return len(self.symbols) + 1

    def encode(self, text: bytes) -> Tensor:
        """Ids ``[N]``, int16: a corpus of 100 MB stays 200 MB."""
        ids = np.zeros(256, dtype=np.int16)
        ids[np.frombuffer(self.symbols, dtype=np.uint8)] = np.arange(1, len(self))
        return torch.from_numpy(ids[np.frombuffer(text, dtype=np.uint8)])


@dataclass(frozen=True)
class Stream:
    """A text cut into rows that are read side by side: ``inputs`` and their successors ``targets``, both ``[B, T]``.

    A row goes on where it was, segment after segment, so that the memory of a model fits. Nothing of the text is dropped: where
    it ends before the last row does, targets are :data:`IGNORED`.
    """

    inputs: Tensor
    targets: Tensor

    def segments(self, length: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Inputs and targets ``[B, <= length]``, long integers, from left to right."""
        return (self.segment(number, length) for number in range(self.count(length)))

    def segment(self, number: int, length: int) -> tuple[Tensor, Tensor]:
        """One of the :meth:`segments`, counted from 0."""
        columns = slice(number * length, (number + 1) * length)
        return self.inputs[:, columns].long(), self.targets[:, columns].long()

    def count(self, length: int) -> int:
        """How many segments there are."""
        return -(-self.inputs.shape[1] // length)

    def characters(self) -> int:
        """How many characters are predicted."""
        return int((self.targets != IGNORED).sum())


def cut(ids: Tensor, rows: int, length: int) -> Stream:
    """Cut ids ``[N]`` into ``rows`` of at least one segment of ``length``.

    Raises
    ------
    ValueError
        If ``rows`` or ``length`` is below 1, or the text is shorter than one segment in each row.
    """
    at_least("rows", rows, 1)
    at_least("length", length, 1)
    if len(ids) <= rows * length:
        raise ValueError(
            f"a text of {len(ids)} characters is too short for {rows} rows of segments of {length}: "
            f"it takes more than {rows * length}"
        )
    columns = -(-(len(ids) - 1) // rows)
    missing = rows * columns - (len(ids) - 1)
    return Stream(
        functional.pad(ids[:-1], (0, missing)).view(rows, columns),
        functional.pad(ids[1:], (0, missing), value=IGNORED).view(rows, columns),
    )


def read_streams(folder: str | Path, rows: Mapping[str, int], length: int) -> tuple[Alphabet, dict[str, Stream]]:
    """The alphabet of ``folder/train.txt``, and a stream of each ``folder/<split>.txt`` that ``rows`` names.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If a text is too short for its rows of segments of ``length``; the file is named.
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
