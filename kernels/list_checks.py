"""Checks of the lists of a block mask."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from .checks import check_integers
from .lists import concatenated, within_count

if TYPE_CHECKING:
    from .block_mask import BlockMask


def check_lists(mask: BlockMask) -> None:
    """Check the types, shapes and devices of a mask's lists, and their numbers; a GPU must wait once for these.

    Parameters
    ----------
    mask : BlockMask
        Mask with valid block sizes and lengths.

    Raises
    ------
    ValueError
        If a shape, dtype or device does not match, a count exceeds its row, an index is out of range, or a row lists a block
        twice.
    """
    if (mask.full_kv_num_blocks is None) != (mask.full_kv_indices is None):
        raise ValueError("`full_kv_num_blocks` and `full_kv_indices` must be given together, got only one of them")
    _check_list(mask, "kv_num_blocks", mask.kv_num_blocks, "kv_indices", mask.kv_indices)
    if mask.full_kv_indices is not None:
        _check_list(mask, "full_kv_num_blocks", mask.full_kv_num_blocks, "full_kv_indices", mask.full_kv_indices)
        shape, full_shape = tuple(mask.kv_indices.shape), tuple(mask.full_kv_indices.shape)
        if full_shape[:3] != shape[:3]:
            raise ValueError(
                f"`full_kv_indices` must match `kv_indices` of shape {shape} in its first three dimensions, "
                f"got shape {full_shape}"
            )
        if mask.full_kv_indices.device != mask.kv_indices.device:
            raise ValueError(
                f"`full_kv_indices` must be on the device of `kv_indices` ({mask.kv_indices.device}), "
                f"got {mask.full_kv_indices.device}"
            )
    _check_numbers(mask)


def _check_list(mask: BlockMask, counts_name: str, counts: Tensor, indices_name: str, indices: Tensor) -> None:
    """Check the dtypes, devices and shapes of one list."""
    check_integers(counts_name, counts)
    check_integers(indices_name, indices)
    if counts.dtype != indices.dtype or counts.device != indices.device:
        raise ValueError(
            f"`{counts_name}` and `{indices_name}` must have one dtype and device, got {counts.dtype} on {counts.device} "
            f"and {indices.dtype} on {indices.device}"
        )
    q_blocks, kv_blocks = mask.blocks
    if indices.ndim != 4 or indices.shape[2] != q_blocks or indices.shape[3] > kv_blocks:
        raise ValueError(
            f"`{indices_name}` must have shape (B, H, {q_blocks}, at most {kv_blocks}) for `length` {mask.length} and "
            f"`block_size` {mask.block_size}, got {tuple(indices.shape)}"
        )
    if counts.shape != indices.shape[:3]:
        raise ValueError(
            f"`{counts_name}` must have the first three dimensions of `{indices_name}`, {tuple(indices.shape[:3])}, "
            f"got shape {tuple(counts.shape)}"
        )


def _check_numbers(mask: BlockMask) -> None:
    """Check counts, indices and repeated blocks; a valid mask makes a GPU wait only once."""
    checks = [x for listed in mask.lists() for x in _out_of_range(mask, *listed)] + _repeated(mask)
    if not torch.stack([x.any() for x in checks]).any():
        return
    for kind, (counts, indices) in zip(("", "full_"), mask.lists(), strict=False):
        invalid_counts, invalid_indices = _out_of_range(mask, counts, indices)
        if invalid_counts.any():
            raise ValueError(
                f"`{kind}kv_num_blocks` must be from 0 to {indices.shape[3]}, the row length of `{kind}kv_indices`, "
                f"got counts from {counts.min()} to {counts.max()}"
            )
        if invalid_indices.any():
            index = _without_copies(counts, indices)[1][invalid_indices][0]
            raise ValueError(f"`{kind}kv_indices` must be from 0 to {mask.blocks[1] - 1}, got index {index}")
    raise ValueError(
        "`kv_indices` must list each block at most once per row, together with `full_kv_indices`, got a block twice"
    )


def _out_of_range(mask: BlockMask, counts: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
    """Return where a count exceeds its row, and where a listed index is not a block."""
    invalid_counts = (counts < 0) | (counts > indices.shape[3])
    counts, indices = _without_copies(counts, indices)
    return invalid_counts, within_count(counts, indices) & ((indices < 0) | (indices >= mask.blocks[1]))


def _repeated(mask: BlockMask) -> list[Tensor]:
    """Return where a block follows itself in a sorted row.

    Sorting needs memory for the lists only; counting visits would need memory for every pair of blocks.
    """
    lists = [_without_copies(*listed) for listed in mask.lists()]
    if mask.full_kv_indices is not None:
        lists.append(concatenated(mask.lists()))
    listed = [(indices, within_count(counts, indices)) for counts, indices in lists]
    ordered = [torch.where(within, indices, mask.blocks[1]).sort(-1).values for indices, within in listed]
    return [(x[..., 1:] == x[..., :-1]) & (x[..., 1:] < mask.blocks[1]) for x in ordered]


def _without_copies(counts: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
    """Replace an expanded list (stride 0) by one row with the largest count, so that it is checked only once."""
    for dim in range(3):
        if indices.stride(dim) == 0 and indices.shape[dim] > 1:
            counts, indices = counts.amax(dim, keepdim=True), indices.narrow(dim, 0, 1)
    return counts, indices
