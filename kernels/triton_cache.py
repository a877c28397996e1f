"""Steps through the cache of a sequence in the decoding kernels: which keys a step has, and loading them."""

import triton
import triton.language as tl

from .triton_tiles import listed_tile, load_tile


@triton.jit
def extent(
    counts_ptr, lengths_ptr, batch, head, counts_sb, counts_sh, keys, K_BLOCK: tl.constexpr, KEY_STEP: tl.constexpr
):
    """Return the end of the last query's keys, the number of listed blocks, and the number of steps through them."""
    limit = keys
    if lengths_ptr is not None:
        limit = tl.minimum(tl.maximum(tl.load(lengths_ptr + batch).to(tl.int32), 0), keys)
    if counts_ptr is None:
        count = tl.cdiv(limit, K_BLOCK)
        steps = tl.cdiv(limit, KEY_STEP)
    else:
        count = tl.load(counts_ptr + batch * counts_sb + head * counts_sh)
        steps = tl.cdiv(count * K_BLOCK, KEY_STEP)
    return limit, count, steps


@triton.jit
def positions(indices_ptr, list_offset, step, count, K_BLOCK: tl.constexpr, KEY_STEP: tl.constexpr):
    """Return start and offsets of a step's keys, from the list or, without one, from all keys in order."""
    if indices_ptr is None:
        start = step * KEY_STEP
        local = tl.arange(0, KEY_STEP)
    else:
        start, local = listed_tile(indices_ptr + list_offset, step, count, K_BLOCK, KEY_STEP)
    return start, local


@triton.jit
def cached_tile(
    ptr, pages_ptr, batch, head, start, local, limit, stride_b, stride_h, stride_n, stride_d, pages_per_sequence,
    PAGE: tl.constexpr, WIDTH: tl.constexpr, TILE_WIDTH: tl.constexpr,
):  # fmt: skip
    """Load the keys or values of a step. With pages, a step lies within one page, which has the place of a sequence."""
    if pages_ptr is None:
        tile = load_tile(
            ptr + batch * stride_b + head * stride_h, start, local, limit, stride_n, stride_d, WIDTH, TILE_WIDTH, False
        )
    else:
        number = start // PAGE
        page = tl.load(pages_ptr + batch * pages_per_sequence + number, mask=start < limit, other=0).to(tl.int64)
        first = number * PAGE
        tile = load_tile(
            ptr + page * stride_b + head * stride_h, start - first, local, limit - first, stride_n, stride_d, WIDTH, TILE_WIDTH,
            False,
        )  # fmt: skip
    return tile
