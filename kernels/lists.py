"""Lists of blocks for the kernels, made without waiting for a GPU."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class BlockLists:
    """Which blocks of keys each block of queries visits.

    Attributes
    ----------
    counts : int32 Tensor ``[B, H, Q_blocks]``
        B and H may be 1, for all batch entries or heads.
    indices : int32 Tensor ``[B, H, Q_blocks, W]``
        The first ``counts`` of a row count.
    block : tuple of int
        Queries and keys per block.
    """

    counts: Tensor
    indices: Tensor
    block: tuple[int, int]


@dataclass(frozen=True)
class TransposedLists:
    """Which tiles of queries visit each block of keys: a compressed sparse row per batch entry and head.

    Attributes
    ----------
    ends : int32 Tensor ``[B, H, KV_blocks]``
        Tiles of the j-th block of keys are ``tiles[b, h, ends[b, h, j - 1] : ends[b, h, j]]``, ascending.
    tiles : int32 Tensor ``[B, H, *]``
    """

    ends: Tensor
    tiles: Tensor


def concatenated(lists: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    """One list for several: counts ``[B, H, Q_blocks]`` and indices ``[B, H, Q_blocks, W]``, int32, W the sum of widths."""
    if len(lists) == 1:
        return tuple(x.int() for x in lists[0])
    listed = torch.cat([_within_count(counts, indices) for counts, indices in lists], -1)
    return _compacted(listed, torch.cat([indices.int() for _, indices in lists], -1))


def dense(blocks: tuple[int, int], block: int, causal: bool, device: torch.device) -> BlockLists:
    """Every block of keys for every block of queries, ascending; if causal, those that are not in the future."""
    first = torch.arange(1, blocks[0] + 1, dtype=torch.int32, device=device)
    counts = (first if causal else torch.full_like(first, blocks[1])).view(1, 1, -1)
    indices = torch.arange(blocks[1], dtype=torch.int32, device=device).expand(1, 1, *blocks)
    return BlockLists(counts, indices, (block, block))


def by_rows(counts: Tensor, indices: Tensor, block: tuple[int, int]) -> BlockLists:
    """The lists of a mask as the kernels read them: row by row, each of it in one piece."""
    whole = (x.int() if x.stride(-1) == 1 else x.int().contiguous() for x in (counts, indices))
    return BlockLists(*whole, block)


def broadcast_strides(x: Tensor) -> tuple[int, int]:
    """Strides of B and H; 0 where the tensor has one entry for all."""
    return tuple(0 if size == 1 else stride for size, stride in zip(x.shape[:2], x.stride()[:2], strict=True))


def _within_count(counts: Tensor, indices: Tensor) -> Tensor:
    """True where an entry of ``indices [..., W]`` counts."""
    return torch.arange(indices.shape[-1], device=indices.device) < counts[..., None]


def _compacted(kept: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
    """Counts and indices of the entries ``kept [..., W]``, in their order."""
    width = indices.shape[-1]
    # What is dropped is written to one more column, behind the row.
    place = torch.where(kept, kept.cumsum(-1) - 1, width)
    compact = indices.new_zeros((*indices.shape[:-1], width + 1)).scatter_(-1, place, indices)
    return kept.sum(-1, dtype=torch.int32), compact[..., :width]
