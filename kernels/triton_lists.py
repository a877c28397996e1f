"""Lists of blocks for the Triton kernels, cut in one launch each.

A dozen small operations of PyTorch would take longer than a short attention does.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from .lists import BlockLists, TransposedLists, broadcast_strides

#: Entries of a list that a program looks at at a time.
STEP = 128


@triton.jit(do_not_specialize=["heads", "rows", "width", "k_blocks", "marks_width"])
def _cut(
    counts_ptr, indices_ptr, more_counts_ptr, more_indices_ptr, alive_ptr, kept_counts_ptr, kept_ptr, marks_ptr,
    counts_sb, counts_sh, indices_sb, indices_sh, indices_sq,
    more_counts_sb, more_counts_sh, more_indices_sb, more_indices_sh, more_indices_sq,
    heads, rows, width, k_blocks, marks_width,
    PARTS: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr, CAUSAL: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    """A program has a row of `QUERIES` queries, of which `PARTS` share a list: what is kept of it, in its order.

    In `marks`, each block of keys has a count of the rows that keep it, and a bit for each of them: both the same in any order.
    """
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
        if marks_ptr is not None:
            marks = marks_ptr + ((batch * heads + head) * k_blocks + index) * marks_width
            tl.atomic_add(marks, tl.full([STEP], 1, tl.int32), mask=listed)
            tl.atomic_or(marks + 1 + row // 32, tl.full([STEP], 1, tl.int32) << row % 32, mask=listed)
    tl.store(kept_counts_ptr + tl.program_id(0), kept)


@triton.jit(do_not_specialize=["k_blocks", "tiles", "marks_width", "capacity"])
def _tiles_of_marks(marks_ptr, ends_ptr, tiles_ptr, k_blocks, tiles, marks_width, capacity, STEP: tl.constexpr):
    """A program has a block of keys: the tiles whose bits are set, ascending."""
    marks = marks_ptr + tl.program_id(0).to(tl.int64) * marks_width
    begin = tl.load(ends_ptr + tl.program_id(0)) - tl.load(marks)
    target = tiles_ptr + (tl.program_id(0) // k_blocks).to(tl.int64) * capacity + begin
    kept = begin * 0
    for start in range(0, tiles, STEP):
        tile = start + tl.arange(0, STEP)
        bit = (tl.load(marks + 1 + tile // 32, mask=tile < tiles, other=0) >> tile % 32) & 1
        tl.store(target + kept + tl.cumsum(bit, 0) - 1, tile, mask=bit != 0)
        kept += tl.sum(bit, 0)


def both_lists(lists: BlockLists, more: BlockLists | None, causal: bool) -> BlockLists:
    """The blocks of one list, or two of the same shape; if causal, without those of which every key is in the future."""
    shape = (*lists.indices.shape[:3], lists.indices.shape[-1] + (0 if more is None else more.indices.shape[-1]))
    return _launched(lists, more, None, None, shape, rows=lists.block[0], causal=causal, k_blocks=0)


def from_both_sides(
    lists: BlockLists, rows: int, tiles: int, alive: Tensor | None, k_blocks: int
) -> tuple[BlockLists, TransposedLists]:
    """The lists of tiles of `rows` queries, a divisor of the block, and those of blocks of keys.

    Only ``alive [B, H, tiles, W]`` blocks, if given. Nothing is sorted: a bit for each tile and block of keys says it all.
    """
    shape = (*lists.indices.shape[:2], tiles, lists.indices.shape[-1]) if alive is None else tuple(alive.shape)
    batch, heads, _, width = shape
    device = lists.counts.device
    marks = torch.zeros((batch, heads, k_blocks, 1 + -(-tiles // 32)), dtype=torch.int32, device=device)
    by_tile = _launched(lists, None, alive, marks, shape, rows=rows, causal=False, k_blocks=k_blocks)
    ends = marks[..., 0].cumsum(-1, dtype=torch.int32)
    visitors = torch.empty((batch, heads, tiles * width), dtype=torch.int32, device=device)
    if ends.numel():
        with torch.cuda.device_of(ends):
            _tiles_of_marks[(ends.numel(),)](
                marks, ends, visitors, k_blocks, tiles, marks.shape[-1], tiles * width, STEP=STEP, num_warps=1
            )
    return by_tile, TransposedLists(ends, visitors)


def _launched(
    lists: BlockLists,
    more: BlockLists | None,
    alive: Tensor | None,
    marks: Tensor | None,
    shape: tuple[int, int, int, int],
    *,
    rows: int,
    causal: bool,
    k_blocks: int,
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
                lists.counts, lists.indices, *second, alive, counts, indices, marks, *strides[0], *strides[1],
                *shape[1:], k_blocks, 0 if marks is None else marks.shape[-1], PARTS=lists.block[0] // rows,
                QUERIES=rows, KEYS=lists.block[1], CAUSAL=causal, STEP=STEP, num_warps=1,
            )  # fmt: skip
    return BlockLists(counts, indices, (rows, lists.block[1]))
