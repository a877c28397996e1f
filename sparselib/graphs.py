"""Attention graphs: queries and keys of every layer, one memory-mapped file per layer, and the gold edges that follow.

A file holds ``q`` and ``k`` ``[N, H, n, D]`` (float32, before scaling), ``lengths`` ``[N]`` (real tokens per sequence) and
``sequence`` ``[N]`` (which sequence of the split it is). Edges are not stored: they follow exactly from q and k.
"""

import json
import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors import safe_open
from torch import Tensor

from sparselib.attention import gold_graph
from sparselib.predictors.visible import visible_pairs
from sparselib.storage import FormatError, encode_header, open_tensors, replacing

KIND = "attention-graphs"


@dataclass(frozen=True)
class Batch:
    """Sequences of one layer: ``q``, ``k`` ``[B, H, n, D]``, ``lengths`` ``[B]``, ``first`` the index of the first."""

    q: Tensor
    k: Tensor
    lengths: Tensor
    first: int
    causal: bool

    @property
    def visible(self) -> Tensor:
        """``Bool[B, 1, n, n]``: pairs of real positions, not in the future if the model is causal."""
        return visible_pairs(len(self.q), self.q.shape[2], self.k.shape[2], self.lengths, self.causal)

    @property
    def gold(self) -> Tensor:
        """``Bool[B, H, n, n]``: the exact edges of 1.5-entmax (section 4.1)."""
        return gold_graph(self.q, self.k, self.visible) & self.visible


class LayerGraphs:
    """The graphs of one layer, read batch by batch; only what is asked for comes into memory."""

    def __init__(self, file: safe_open, path: Path):
        found = set(file.keys())
        if found != {"q", "k", "lengths", "sequence"}:
            raise FormatError(f"{path}: has the tensors {sorted(found)}, not those of attention graphs")
        self._file = file
        self._q, self._k = file.get_slice("q"), file.get_slice("k")
        self.lengths, self.sequence = file.get_tensor("lengths"), file.get_tensor("sequence")
        self.header: dict = json.loads(file.metadata()["header"])
        self.causal: bool = self.header["causal"]
        self.count, self.heads, self.length, self.dimension = self._q.get_shape()

    def __len__(self) -> int:
        return self.count

    def batch(self, start: int, end: int) -> Batch:
        """Sequences ``start`` to ``end``, cut to the longest of them.

        Raises
        ------
        ValueError
            If a query or key is NaN or infinite.
        """
        longest = int(self.lengths[start:end].max())
        q, k = (x[start:end][:, :, :longest] for x in (self._q, self._k))
        for name, x in (("q", q), ("k", k)):
            if not x.isfinite().all():
                raise ValueError(f"{name} holds NaN or infinite values in sequences {start} to {end - 1}")
        return Batch(q, k, self.lengths[start:end], start, self.causal)

    def batches(self, size: int) -> Iterator[Batch]:
        """All sequences in order, ``size`` at a time."""
        for start in range(0, len(self), size):
            yield self.batch(start, min(start + size, len(self)))


@contextmanager
def open_graphs(path: str | Path) -> Iterator[LayerGraphs]:
    """Open the graphs of one layer.

    Raises
    ------
    FormatError
        If the file is truncated, or does not hold attention graphs.
    """
    with open_tensors(path, kind=KIND) as file:
        yield LayerGraphs(file, Path(path))


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
    count = len(sequence)
    shapes = {"q": ("F32", (count, heads, length, dimension)), "k": ("F32", (count, heads, length, dimension)),
              "lengths": ("I64", (count,)), "sequence": ("I64", (count,))}  # fmt: skip
    with ExitStack() as files:
        layers = [
            _preallocate(files.enter_context(replacing(path)), shapes, {"layer": layer, "causal": causal, **header})
            for layer, path in enumerate(paths)
        ]
        for arrays in layers:
            arrays["sequence"][:] = sequence.numpy()
        yield GraphWriter(layers)
        for arrays in layers:
            if (arrays["lengths"] == 0).any():
                raise ValueError("a sequence was not written: the number of batches and of sequences differ")
            for array in arrays.values():
                array.flush()


class GraphWriter:
    def __init__(self, layers: list[dict[str, np.memmap]]):
        self._layers = layers

    def write(self, layer: int, start: int, q: Tensor, k: Tensor, lengths: Tensor) -> None:
        """Store queries and keys ``[B, H, n, D]`` of one layer as sequences ``start``, ``start + 1``, ..."""
        arrays, end = self._layers[layer], start + len(q)
        arrays["q"][start:end, :, : q.shape[2]] = q.detach().float().cpu().numpy()
        arrays["k"][start:end, :, : k.shape[2]] = k.detach().float().cpu().numpy()
        arrays["lengths"][start:end] = lengths.cpu().numpy()


def _preallocate(path: Path, shapes: dict[str, tuple[str, tuple[int, ...]]], header: dict) -> dict[str, np.memmap]:
    """Lay out an empty safetensors file and map its tensors; safetensors itself can only write what is in memory."""
    numpy_types = {"F32": np.float32, "I64": np.int64}
    entries: dict[str, object] = {"__metadata__": encode_header(KIND, header)}
    offset = 0
    for name, (dtype, shape) in shapes.items():
        size = int(np.prod(shape)) * np.dtype(numpy_types[dtype]).itemsize
        entries[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(entries).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + offset)
    return {
        name: np.memmap(path, numpy_types[dtype], "r+", 8 + len(text) + entries[name]["data_offsets"][0], shape)
        for name, (dtype, shape) in shapes.items()
    }


def sample_sequences(available: int, wanted: int, seed: int) -> Tensor:
    """``wanted`` distinct sequence numbers out of ``available``, in order; all of them if there are fewer."""
    drawn = torch.randperm(available, generator=torch.Generator().manual_seed(seed))[:wanted]
    return drawn.sort().values
