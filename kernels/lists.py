"""Block lists for the kernels, built without waiting for a GPU."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class BlockLists:
    """Key blocks that each query block visits.

    Attributes
    ----------
    counts : int32 Tensor ``[B, H, Q_blocks]``
        Key blocks per query block. B and H may be 1, for all batch entries or heads.
    indices : int32 Tensor ``[B, H, Q_blocks, W]``
        Key blocks; only the first ``counts`` entries of a row are valid.
    block : tuple of int
        Queries and keys per block.
    """

    counts: Tensor
    indices: Tensor
    block: tuple[int, int]


@dataclass(frozen=True)
class TransposedLists:
    """Query tiles that visit each key block, in compressed sparse rows per batch entry and head.

    Attributes
    ----------
    ends : int32 Tensor ``[B, H, KV_blocks]``
        The tiles of key block j are ``tiles[b, h, ends[b, h, j - 1] : ends[b, h, j]]``, ascending.
    tiles : int32 Tensor ``[B, H, *]``
        Query tiles of all key blocks in order; entries after the last end are not set.
    """

    ends: Tensor
    tiles: Tensor


def concatenated(lists: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    """Join several lists into one.

    Parameters
    ----------
    lists : list of tuple of Tensor
        Counts ``[B, H, Q_blocks]`` and indices ``[B, H, Q_blocks, *]`` of each list.

    Returns
    -------
    counts : int32 Tensor ``[B, H, Q_blocks]``
        Sums of the counts.
    indices : int32 Tensor ``[B, H, Q_blocks, W]``
        Valid entries in the order of the lists; W is the sum of their widths.
    """
    if len(lists) == 1:
        return tuple(x.int() for x in lists[0])
    listed = torch.cat([within_count(counts, indices) for counts, indices in lists], -1)
    return _compacted(listed, torch.cat([indices.int() for _, indices in lists], -1))


def dense(blocks: tuple[int, int], block: int, causal: bool, device: torch.device) -> BlockLists:
    """Return the lists of dense attention.

    Parameters
    ----------
    blocks : tuple of int
        Number of query blocks and key blocks.
    block : int
        Tokens per block.
    causal : bool
        Whether to leave out future key blocks.
    device : torch.device
        Device of the lists.

    Returns
    -------
    BlockLists
        All (or all past and present) key blocks for each query block, ascending.
    """
    first = torch.arange(1, blocks[0] + 1, dtype=torch.int32, device=device)
    counts = (first if causal else torch.full_like(first, blocks[1])).view(1, 1, -1)
    indices = torch.arange(blocks[1], dtype=torch.int32, device=device).expand(1, 1, *blocks)
    return BlockLists(counts, indices, (block, block))


def by_rows(counts: Tensor, indices: Tensor, block: tuple[int, int]) -> BlockLists:
    """Return lists whose rows are contiguous, as the kernels read them.

    Parameters
    ----------
    counts : Tensor ``[B, H, Q_blocks]``
        Key blocks per query block, of any integer dtype and strides.
    indices : Tensor ``[B, H, Q_blocks, W]``
        Key blocks, of any integer dtype and strides.
    block : tuple of int
        Queries and keys per block.

    Returns
    -------
    BlockLists
        The same lists in int32.
    """
    contiguous_rows = (x.int() if x.stride(-1) == 1 else x.int().contiguous() for x in (counts, indices))
    return BlockLists(*contiguous_rows, block)


def broadcast_strides(x: Tensor) -> tuple[int, int]:
    """Return the strides of the batch and head dimensions.

    Parameters
    ----------
    x : Tensor ``[B, H, ...]``
        Any tensor.

    Returns
    -------
    tuple of int
        The two strides; 0 for a dimension of size 1, which stands for all batch entries or heads.
    """
    return tuple(0 if size == 1 else stride for size, stride in zip(x.shape[:2], x.stride()[:2], strict=True))


def within_count(counts: Tensor, indices: Tensor) -> Tensor:
    """Return which entries of lists are valid.

    Parameters
    ----------
    counts : Tensor ``[...]``
        Number of valid entries of each row.
    indices : Tensor ``[..., W]``
        Lists.

    Returns
    -------
    Bool Tensor ``[..., W]``
        True for the first ``counts`` entries of a row.
    """
    return torch.arange(indices.shape[-1], device=indices.device) < counts[..., None]


def _compacted(kept: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
    """Return counts and indices of the entries that are True in ``kept [..., W]``, in their order."""
    width = indices.shape[-1]
    # Dropped entries are written to an extra column behind the row.
    place = torch.where(kept, kept.cumsum(-1) - 1, width)
    compact = indices.new_zeros((*indices.shape[:-1], width + 1)).scatter_(-1, place, indices)
    return kept.sum(-1, dtype=torch.int32), compact[..., :width]
