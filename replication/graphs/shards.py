"""Attention-graph files: the queries and keys of one layer per file.

A file contains ``q`` and ``k`` ``[N, H, n, D]`` (float32, before scaling), ``lengths`` ``[N]`` (real tokens per sequence) and
``sequence`` ``[N]`` (sequence numbers in the split). Gold edges are not stored, because q, k and the normaliser in the header
determine them exactly.

Files are read and written one batch at a time. A memory map would take fewer lines, but its pages stay resident until it is
closed: one layer's whole file when reading, all layers' files when writing.
"""

import json
import struct
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import BinaryIO

import numpy as np
import torch
from safetensors import safe_open
from torch import Tensor
from torch.nn.functional import pad

from replication.files.contents import Contents
from replication.files.storage import FormatError, encode_header, open_tensors, replacing
from replication.graphs.normalizers import described_normalizer, description
from sparselib.normalizers import Normalizer, entmax15
from sparselib.projections import Batch

KIND = "attention-graphs"
_BYTES = {"F32": 4, "I64": 8}


@dataclass(frozen=True)
class StoredBatch(Batch):
    """Consecutive sequences of a file.

    Attributes
    ----------
    first : int
        The index of the first one.
    known : dict
        The gold edges of the file's batches as bits, by first index and number of sequences. Every epoch and every seed learns
        from the same edges, so they are computed once.
    """

    first: int = 0
    known: dict[tuple[int, int], np.ndarray] = field(default_factory=dict)

    @property
    def gold(self) -> Tensor:
        """The exact edges of the model's own attention (section 4.1): ``Bool[B, H, n, n]``."""
        batch, shape = (self.first, len(self.q)), (*self.q.shape[:3], self.k.shape[2])
        if batch not in self.known:
            self.known[batch] = np.packbits(super().gold.numpy())
        return torch.from_numpy(np.unpackbits(self.known[batch], count=prod(shape)).view(np.bool_)).view(shape)


@dataclass(frozen=True)
class Batches:
    """Re-iterable batches of ``size`` sequences, covering a file in order."""

    graphs: "LayerGraphs"
    size: int

    def __iter__(self) -> Iterator[StoredBatch]:
        for start in range(0, len(self.graphs), self.size):
            yield self.graphs.batch(start, min(start + self.size, len(self.graphs)))


class LayerGraphs:
    """Attention graphs of one layer, read from the file batch by batch."""

    def __init__(self, tensors: safe_open, file: BinaryIO):
        names, expected = set(tensors.keys()), {"q", "k", "lengths", "sequence"}
        if names != expected:
            raise FormatError(f"{file.name}: must contain the tensors {sorted(expected)}, got {sorted(names)}")
        q, k = tensors.get_slice("q"), tensors.get_slice("k")
        if (q.get_dtype(), k.get_dtype()) != ("F32", "F32") or q.get_shape() != k.get_shape():
            raise FormatError(
                f"{file.name}: `q` and `k` must be float32 of one shape, "
                f"got {q.get_dtype()} {q.get_shape()} and {k.get_dtype()} {k.get_shape()}"
            )
        if len(q.get_shape()) != 4:
            raise FormatError(f"{file.name}: `q` and `k` must have the shape [N, H, n, D], got {q.get_shape()}")
        self._file, self._offsets = file, _offsets(file)
        self._known: dict[tuple[int, int], np.ndarray] = {}
        self.lengths, self.sequence = tensors.get_tensor("lengths"), tensors.get_tensor("sequence")
        self.header = Contents(file.name, json.loads(tensors.metadata()["header"]))
        self.causal: bool = self.header["causal"]
        self.normalizer = described_normalizer(self.header["normalizer"])
        self.count, self.heads, self.length, self.dimension = q.get_shape()
        for name, numbers in (("lengths", self.lengths), ("sequence", self.sequence)):
            if list(numbers.shape) != [self.count] or numbers.is_floating_point():
                raise FormatError(
                    f"{file.name}: `{name}` must have a whole number for each of {self.count} sequences, got"
                    f" {numbers.dtype} {list(numbers.shape)}"
                )
        if ((self.lengths < 1) | (self.lengths > self.length)).any():
            raise FormatError(
                f"{file.name}: `lengths` must be from 1 to {self.length}, got {self.lengths.tolist()[:8]}"
            )

    def __len__(self) -> int:
        return self.count

    def batch(self, start: int, end: int) -> StoredBatch:
        """Return sequences ``start`` to ``end - 1``, cut to the length of the longest.

        Raises
        ------
        ValueError
            If a query or key is NaN or infinite.
        """
        longest = int(self.lengths[start:end].max())
        q, k = (self._read(name, start, min(end, len(self)))[:, :, :longest] for name in ("q", "k"))
        for name, x in (("q", q), ("k", k)):
            if not torch.stack(x.aminmax()).isfinite().all():  # `isfinite` would pass over it five times
                raise ValueError(f"`{name}` must be finite, got NaN or infinity in sequences {start} to {end - 1}")
        lengths = self.lengths[start:end]
        return StoredBatch(q, k, lengths, self.causal, self.normalizer, first=start, known=self._known)

    def batches(self, size: int) -> Batches:
        """Return all sequences in order, in batches of ``size``."""
        return Batches(self, size)

    def _read(self, name: str, start: int, end: int) -> Tensor:
        """Read ``[end - start, H, n, D]`` of tensor `name`."""
        shape = (end - start, self.heads, self.length, self.dimension)
        self._file.seek(self._offsets[name] + start * prod(shape[1:]) * _BYTES["F32"])
        return torch.from_numpy(np.fromfile(self._file, np.float32, prod(shape)).reshape(shape))


@contextmanager
def open_graphs(path: str | Path) -> Iterator[LayerGraphs]:
    """Open the graph file of one layer.

    Raises
    ------
    FormatError
        If the file is truncated or does not contain attention graphs.
    """
    with open_tensors(path, kind=KIND) as tensors, open(path, "rb") as file:
        yield LayerGraphs(tensors, file)


@contextmanager
def writing_graphs(
    paths: list[Path],
    sequence: Tensor,
    heads: int,
    length: int,
    dimension: int,
    *,
    causal: bool,
    normalizers: Sequence[Normalizer] | None = None,
    **header: object,
) -> Iterator["GraphWriter"]:
    """Yield a writer for the graph files of all layers; the files appear only if the block succeeds.

    Parameters
    ----------
    paths : list of Path
        One file per layer.
    sequence : integer Tensor ``[N]``
        Sequence numbers in the split.
    heads, length, dimension : int
        Heads, longest sequence and head size.
    causal : bool
        Whether the attention is causal.
    normalizers : sequence of callables, optional
        Normaliser of each layer, by default 1.5-entmax.
    **header
        Further header fields.

    Raises
    ------
    ValueError
        If the block ends before every sequence is written.
    """
    with ExitStack() as stack:
        partial = [stack.enter_context(replacing(path)) for path in paths]
        files = [stack.enter_context(open(path, "w+b")) for path in partial]
        for layer, file in enumerate(files):
            described = description(entmax15 if normalizers is None else normalizers[layer])
            fields = {"layer": layer, "causal": causal, "normalizer": described, **header}
            _lay_out(file, (len(sequence), heads, length, dimension), fields)
        writer = GraphWriter(files, (len(sequence), heads, length, dimension))
        yield writer
        writer.finish(sequence)


class GraphWriter:
    """Writer of batches, in any order, to files laid out for ``[N, H, n, D]``."""

    def __init__(self, files: list[BinaryIO], shape: tuple[int, int, int, int]):
        self._files, self._shape = files, shape
        self._offsets = [_offsets(file) for file in files]
        self._lengths = np.zeros((len(files), shape[0]), np.int64)

    def write(self, layer: int, start: int, q: Tensor, k: Tensor, lengths: Tensor) -> None:
        """Store queries and keys ``[B, H, n, D]`` of one layer as sequences ``start``, ``start + 1``, ...

        Raises
        ------
        ValueError
            If the batch exceeds the shape that the file was laid out for.
        """
        count, heads, length, dimension = self._shape
        end = start + len(q)
        for name, x in (("q", q), ("k", k)):
            if end > count or x.shape[2] > length or (x.shape[1], x.shape[3]) != (heads, dimension):
                raise ValueError(
                    f"`{name}` must fit into {list(self._shape)} from sequence {start} on, got shape {list(x.shape)}"
                )
            padded = pad(x.detach().float().cpu(), (0, 0, 0, length - x.shape[2])).contiguous()
            self._files[layer].seek(self._offsets[layer][name] + start * padded[0].nbytes)
            self._files[layer].write(padded.numpy())
        self._lengths[layer, start:end] = lengths.cpu().numpy()

    def finish(self, sequence: Tensor) -> None:
        """Write lengths and sequence numbers.

        Raises
        ------
        ValueError
            If a sequence was not written.
        """
        if (self._lengths == 0).any():
            missing = int((self._lengths == 0).any(0).sum())
            raise ValueError(f"`sequence` lists {len(sequence)} sequences, of which {missing} were not written")
        for file, offsets, lengths in zip(self._files, self._offsets, self._lengths, strict=True):
            for name, values in (("lengths", lengths), ("sequence", sequence.long().numpy())):
                file.seek(offsets[name])
                file.write(values)


def _lay_out(file: BinaryIO, shape: tuple[int, int, int, int], header: dict) -> None:
    """Write the header and reserve the space of a safetensors file, which safetensors can write only from memory."""
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
    """Return the byte offset of each tensor in a safetensors file."""
    file.seek(0)
    (size,) = struct.unpack("<Q", file.read(8))
    entries = json.loads(file.read(size))
    return {name: 8 + size + entry["data_offsets"][0] for name, entry in entries.items() if name != "__metadata__"}


def sample_sequences(available: int, count: int, seed: int) -> Tensor:
    """Draw ``count`` distinct sequence numbers below ``available``, sorted; return all if there are fewer."""
    drawn = torch.randperm(available, generator=torch.Generator().manual_seed(seed))[:count]
    return drawn.sort().values
