"""Lists of blocks for the Triton kernels, cut in one launch each.

A dozen small operations of PyTorch would take longer than a short attention does.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from .lists import BlockLists, broadcast_strides


@triton.jit
def _cut(
    counts_ptr, indices_ptr, more_counts_ptr, more_indices_ptr, alive_ptr, kept_counts_ptr, kept_ptr,
    counts_sb, counts_sh, indices_sb, indices_sh, indices_sq,
    more_counts_sb, more_counts_sh, more_indices_sb, more_indices_sh, more_indices_sq,
    heads, rows, width, padding,
    PARTS: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr, CAUSAL: tl.constexpr, PADDED: tl.constexpr,
    STEP: tl.constexpr,
):  # fmt: skip
    """A program has a row of `QUERIES` queries, of which `PARTS` share a list: what is kept of it, in its order."""
    row = tl.program_id(0) % rows
    head = (tl.program_id(0) // rows % heads).to(tl.int64)
    batch = (tl.program_id(0) // rows // heads).to(tl.int64)
    block = (row // PARTS).to(tl.int64)
    first = tl.load(counts_ptr + batch * counts_sb + head * counts_sh + block).to(tl.int32)
    list_ptr = indices_ptr + batch * indices_sb + head * indices_sh + block * indices_sq
    count = first
    if more_counts_ptr is not None:
        count += tl.load(more_counts_ptr + batch * more_counts_sb + head * more_counts_sh + block).to(tl.int32)
        more_ptr = more_indices_ptr + batch * more_indices_sb + head * more_indices_sh + block * more_indices_sq
    target = kept_ptr + tl.program_id(0).to(tl.int64) * width
    kept = first * 0
    for start in range(0, count, STEP):
        place = start + tl.arange(0, STEP)
        listed = place < count
        index = tl.load(list_ptr + place, mask=place < first, other=0).to(tl.int32)
        if more_counts_ptr is not None:
            second = tl.load(more_ptr + (place - first), mask=listed & (place >= first), other=0).to(tl.int32)
            index = tl.where(place < first, index, second)
        if alive_ptr is not None:
            flags = alive_ptr + tl.program_id(0).to(tl.int64) * width
            listed = listed & (tl.load(flags + place, mask=listed, other=0) != 0)
        if CAUSAL:
            listed = listed & (index * KEYS < (row + 1) * QUERIES)
        rank = kept + tl.cumsum(listed.to(tl.int32), 0) - 1
        tl.store(target + rank, index, mask=listed)
        kept += tl.sum(listed.to(tl.int32), 0)
    tl.store(kept_counts_ptr + tl.program_id(0), kept)
    if PADDED:
        for start in range(kept, width, STEP):
            place = start + tl.arange(0, STEP)
            tl.store(target + place, padding + tl.zeros([STEP], tl.int32), mask=place < width)


def joined(lists: BlockLists, more: BlockLists | None, causal: bool) -> BlockLists:
    """The blocks of one list, or two of the same shape; if causal, without those of which every key is in the future."""
    shape = (*lists.indices.shape[:3], lists.indices.shape[-1] + (0 if more is None else more.indices.shape[-1]))
    return _launched(lists, more, None, shape, rows=lists.block[0], causal=causal, padding=None)


def by_tile(lists: BlockLists, rows: int, tiles: int, alive: Tensor | None, k_blocks: int) -> BlockLists:
    """The lists of tiles of `rows` queries, a divisor of the block; only ``alive [B, H, tiles, W]`` blocks, if given.

    Indices that do not count are `k_blocks`.
    """
    shape = (*lists.indices.shape[:2], tiles, lists.indices.shape[-1]) if alive is None else tuple(alive.shape)
    return _launched(lists, None, alive, shape, rows=rows, causal=False, padding=k_blocks)


def _launched(
    lists: BlockLists,
    more: BlockLists | None,
    alive: Tensor | None,
    shape: tuple[int, int, int, int],
    *,
    rows: int,
    causal: bool,
    padding: int | None,
) -> BlockLists:
    counts = torch.empty(shape[:3], dtype=torch.int32, device=lists.counts.device)
    indices = torch.empty(shape, dtype=torch.int32, device=lists.counts.device)
    second = (None, None) if more is None else (more.counts, more.indices)
    strides = [
        (0,) * 5 if x is None else (*broadcast_strides(x.counts), *broadcast_strides(x.indices), x.indices.stride(2))
        for x in (lists, more)
    ]
    if counts.numel():
        with torch.cuda.device_of(counts):
            _cut[(counts.numel(),)](
                lists.counts, lists.indices, *second, alive, counts, indices, *strides[0], *strides[1],
                shape[1], shape[2], shape[3], padding or 0, PARTS=lists.block[0] // rows, QUERIES=rows,
                KEYS=lists.block[1], CAUSAL=causal, PADDED=padding is not None, STEP=128, num_warps=1,
            )  # fmt: skip
    return BlockLists(counts, indices, (rows, lists.block[1]))
