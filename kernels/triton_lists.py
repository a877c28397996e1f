"""Block lists for the Triton kernels, filtered in one launch each.

A dozen small PyTorch operations would take longer than a short attention.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from .lists import BlockLists, TransposedLists, broadcast_strides

#: List entries that a program processes at a time.
STEP = 128


@triton.jit(do_not_specialize=["heads", "rows", "width", "k_blocks", "marks_width"])
def _cut(
    counts_ptr, indices_ptr, more_counts_ptr, more_indices_ptr, alive_ptr, kept_counts_ptr, kept_ptr, marks_ptr,
    counts_sb, counts_sh, indices_sb, indices_sh, indices_sq,
    more_counts_sb, more_counts_sh, more_indices_sb, more_indices_sh, more_indices_sq,
    heads, rows, width, k_blocks, marks_width,
    PARTS: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr, CAUSAL: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    """Filter a list and keep its order; each program processes a row of `QUERIES` queries, and `PARTS` rows share a list.

    For each key block, `marks` contains the number of rows that keep it and a bit for each of them. Both are independent of the
    order of programs.
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
    """Write the tiles whose bits are set, ascending; each program processes a key block."""
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
    """Join one or two lists, and drop future blocks if causal.

    Parameters
    ----------
    lists : BlockLists
        Visited blocks.
    more : BlockLists, optional
        More visited blocks, for the same batch entries, heads and query blocks.
    causal : bool
        Whether to drop key blocks that lie entirely in the future.

    Returns
    -------
    BlockLists
        The remaining blocks in the order of the lists.
    """
    shape = (*lists.indices.shape[:3], lists.indices.shape[-1] + (0 if more is None else more.indices.shape[-1]))
    return _launched(lists, more, None, None, shape, rows=lists.block[0], causal=causal, k_blocks=0)


def from_both_sides(
    lists: BlockLists, rows: int, tiles: int, alive: Tensor | None, k_blocks: int
) -> tuple[BlockLists, TransposedLists]:
    """Return the key blocks of each query tile, and the query tiles of each key block.

    Parameters
    ----------
    lists : BlockLists
        Visited blocks.
    rows : int
        Queries per tile, a divisor of the query block size.
    tiles : int
        Number of query tiles.
    alive : int8 Tensor ``[B, H, tiles, W]``, optional
        Nonzero for the list entries to keep; all by default.
    k_blocks : int
        Number of key blocks.

    Returns
    -------
    by_tile : BlockLists
        Key blocks of each tile, in the order of the lists.
    visitors : TransposedLists
        Tiles of each key block, ascending.

    Notes
    -----
    Nothing is sorted. A bit for each pair of a tile and a key block determines both results.
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
    """Launch the filter for lists of the given shape."""
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
