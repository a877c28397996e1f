"""Attention graphs: queries and keys of every layer, one file per layer, and the gold edges that follow.

A file holds ``q`` and ``k`` ``[N, H, n, D]`` (float32, before scaling), ``lengths`` ``[N]`` (real tokens per sequence) and
``sequence`` ``[N]`` (which sequence of the split it is). Edges are not stored: they follow exactly from q and k.

Files are read and written a batch at a time, at its place. A memory map would do it in fewer lines, but its pages stay
resident until it is closed: a layer's whole file when reading, the files of all layers when writing.
"""

import json
import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import BinaryIO

import numpy as np
import torch
from safetensors import safe_open
from torch import Tensor
from torch.nn.functional import pad

from replication.files.storage import FormatError, encode_header, open_tensors, replacing
from sparselib.projections import Batch

KIND = "attention-graphs"
_BYTES = {"F32": 4, "I64": 8}


@dataclass(frozen=True)
class StoredBatch(Batch):
    """Sequences of a file; ``first`` is the index of the first of them."""

    first: int = 0


@dataclass(frozen=True)
class Batches:
    """All sequences of a file in order, ``size`` at a time, as often as they are asked for."""

    graphs: "LayerGraphs"
    size: int

    def __iter__(self) -> Iterator[StoredBatch]:
        for start in range(0, len(self.graphs), self.size):
            yield self.graphs.batch(start, min(start + self.size, len(self.graphs)))


class LayerGraphs:
    """The graphs of one layer, read batch by batch; only what is asked for comes into memory."""

    def __init__(self, tensors: safe_open, file: BinaryIO):
        found = set(tensors.keys())
        if found != {"q", "k", "lengths", "sequence"}:
            raise FormatError(f"{file.name}: has the tensors {sorted(found)}, not those of attention graphs")
        q, k = tensors.get_slice("q"), tensors.get_slice("k")
        if (q.get_dtype(), k.get_dtype()) != ("F32", "F32") or q.get_shape() != k.get_shape():
            raise FormatError(f"{file.name}: q and k are not float32 of one shape")
        self._file, self._offsets = file, _offsets(file)
        self.lengths, self.sequence = tensors.get_tensor("lengths"), tensors.get_tensor("sequence")
        self.header: dict = json.loads(tensors.metadata()["header"])
        self.causal: bool = self.header["causal"]
        self.count, self.heads, self.length, self.dimension = q.get_shape()

    def __len__(self) -> int:
        return self.count

    def batch(self, start: int, end: int) -> StoredBatch:
        """Sequences ``start`` to ``end``, cut to the longest of them.

        Raises
        ------
        ValueError
            If a query or key is NaN or infinite.
        """
        longest = int(self.lengths[start:end].max())
        q, k = (self._read(name, start, min(end, len(self)))[:, :, :longest] for name in ("q", "k"))
        for name, x in (("q", q), ("k", k)):
            if not x.isfinite().all():
                raise ValueError(f"{name} holds NaN or infinite values in sequences {start} to {end - 1}")
        return StoredBatch(q, k, self.lengths[start:end], self.causal, start)

    def batches(self, size: int) -> Batches:
        """All sequences in order, ``size`` at a time."""
        return Batches(self, size)

    def _read(self, name: str, start: int, end: int) -> Tensor:
        """``[end - start, H, n, D]`` of ``q`` or ``k``."""
        shape = (end - start, self.heads, self.length, self.dimension)
        self._file.seek(self._offsets[name] + start * prod(shape[1:]) * _BYTES["F32"])
        return torch.from_numpy(np.fromfile(self._file, np.float32, prod(shape)).reshape(shape))


@contextmanager
def open_graphs(path: str | Path) -> Iterator[LayerGraphs]:
    """Open the graphs of one layer.

    Raises
    ------
    FormatError
        If the file is truncated, or does not hold attention graphs.
    """
    with open_tensors(path, kind=KIND) as tensors, open(path, "rb") as file:
        yield LayerGraphs(tensors, file)


@contextmanager
def writing_graphs(
    paths: list[Path], sequence: Tensor, heads: int, length: int, dimension: int, *, causal: bool, **header: object
) -> Iterator["GraphWriter"]:
    """Write the graphs of all layers at once, batch by batch; the files appear when the block ends well.

    Parameters
    ----------
    paths : one file per layer
    sequence : integer Tensor ``[N]``
        Which sequences of the split they are.
    """
    with ExitStack() as stack:
        partial = [stack.enter_context(replacing(path)) for path in paths]
        files = [stack.enter_context(open(path, "w+b")) for path in partial]
        for layer, file in enumerate(files):
            _lay_out(file, (len(sequence), heads, length, dimension), {"layer": layer, "causal": causal, **header})
        writer = GraphWriter(files, (len(sequence), heads, length, dimension))
        yield writer
        writer.finish(sequence)


class GraphWriter:
    """Files laid out for ``[N, H, n, D]``, which take their batches in any order."""

    def __init__(self, files: list[BinaryIO], shape: tuple[int, int, int, int]):
        self._files, self._shape = files, shape
        self._offsets = [_offsets(file) for file in files]
        self._lengths = np.zeros((len(files), shape[0]), np.int64)

    def write(self, layer: int, start: int, q: Tensor, k: Tensor, lengths: Tensor) -> None:
        """Store queries and keys ``[B, H, n, D]`` of one layer as sequences ``start``, ``start + 1``, ...

        Raises
        ------
        ValueError
            If they are more, longer or wider than the file was laid out for.
        """
        count, heads, length, dimension = self._shape
        end = start + len(q)
        for name, x in (("q", q), ("k", k)):
            if end > count or x.shape[2] > length or (x.shape[1], x.shape[3]) != (heads, dimension):
                raise ValueError(f"{name} {list(x.shape)} does not fit from sequence {start} on: {list(self._shape)}")
            padded = pad(x.detach().float().cpu(), (0, 0, 0, length - x.shape[2])).contiguous()
            self._files[layer].seek(self._offsets[layer][name] + start * padded[0].nbytes)
            self._files[layer].write(padded.numpy())
        self._lengths[layer, start:end] = lengths.cpu().numpy()

    def finish(self, sequence: Tensor) -> None:
        """Write what is small; raises ``ValueError`` if a sequence is missing."""
        if (self._lengths == 0).any():
            raise ValueError("a sequence was not written: the number of batches and of sequences differ")
        for file, offsets, lengths in zip(self._files, self._offsets, self._lengths, strict=True):
            for name, values in (("lengths", lengths), ("sequence", sequence.long().numpy())):
                file.seek(offsets[name])
                file.write(values)


def _lay_out(file: BinaryIO, shape: tuple[int, int, int, int], header: dict) -> None:
    """Begin an empty safetensors file; safetensors itself can only write what is in memory."""
    shapes = {"q": ("F32", shape), "k": ("F32", shape), "lengths": ("I64", shape[:1]), "sequence": ("I64", shape[:1])}
    entries: dict[str, object] = {"__metadata__": encode_header(KIND, header)}
    end = 0
    for name, (dtype, size) in shapes.items():
        start, end = end, end + prod(size) * _BYTES[dtype]
        entries[name] = {"dtype": dtype, "shape": size, "data_offsets": [start, end]}
    text = json.dumps(entries).encode()
    text += b" " * (-len(text) % 8)
    file.write(struct.pack("<Q", len(text)) + text)
    file.truncate(8 + len(text) + end)


def _offsets(file: BinaryIO) -> dict[str, int]:
    """Where each tensor of a safetensors file begins."""
    file.seek(0)
    (size,) = struct.unpack("<Q", file.read(8))
    entries = json.loads(file.read(size))
    return {name: 8 + size + entry["data_offsets"][0] for name, entry in entries.items() if name != "__metadata__"}


def sample_sequences(available: int, count: int, seed: int) -> Tensor:
    """``count`` distinct sequence numbers out of ``available``, in order; all of them if there are fewer."""
    drawn = torch.randperm(available, generator=torch.Generator().manual_seed(seed))[:count]
    return drawn.sort().values
