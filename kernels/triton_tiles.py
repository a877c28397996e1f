"""Addressing, loading and multiplying tiles in the Triton kernels.

A tile's positions are a scalar start plus local offsets. For a tile within one block, only the 64-bit start changes from step
to step, which makes addresses cheap. A tile that spans several listed blocks has start 0 and gathers its rows.
"""

import os

import torch
import triton
import triton.language as tl
from torch import Tensor

#: A position beyond any sequence.
NOWHERE = tl.constexpr(2147483647)
#: Whether kernels are interpreted. The interpreter silently multiplies bfloat16 wrongly.
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"


def check_device(x: Tensor) -> None:
    """Check that Triton kernels can read a tensor.

    Parameters
    ----------
    x : Tensor
        Queries.

    Raises
    ------
    ValueError
        If `x` is not on a GPU, and kernels are not interpreted.
    """
    if not (x.is_cuda or INTERPRETED):
        raise ValueError(
            f"`backend` must be 'gather' on {x.device}, got 'triton', which compiles for CUDA; to interpret the kernels, set "
            "the environment variable TRITON_INTERPRET=1 before triton is first imported"
        )


def upcast(x: Tensor) -> bool:
    """Return whether tiles must be cast to float32 before they are multiplied.

    Parameters
    ----------
    x : Tensor
        Queries.

    Returns
    -------
    bool
        True for bfloat16 in the interpreter.
    """
    return INTERPRETED and x.dtype == torch.bfloat16


@triton.jit
def listed_tile(list_ptr, step, count, SIZE: tl.constexpr, TILE: tl.constexpr):
    """Return start and offsets ``[TILE]`` of the positions at a step through `count` listed blocks of `SIZE` tokens."""
    offset = tl.arange(0, TILE)
    if SIZE % TILE == 0:
        parts: tl.constexpr = SIZE // TILE
        start = tl.load(list_ptr + step // parts) * SIZE + (step % parts) * TILE
        local = offset
    else:
        offset += step * TILE
        listed = offset < count * SIZE
        block = tl.load(list_ptr + offset // SIZE, mask=listed, other=0)
        start = step * 0
        local = tl.where(listed, block * SIZE + offset % SIZE, NOWHERE)
    return start, local


@triton.jit
def load_tile(
    ptr, start, local, limit, stride_n, stride_d, WIDTH: tl.constexpr, TILE_WIDTH: tl.constexpr, EVEN: tl.constexpr
):
    """Load rows ``start + local`` of ``[n, WIDTH]`` as ``[TILE, TILE_WIDTH]``, with 0 for rows from `limit` on.

    `EVEN` must only be True if all rows are below the limit.
    """
    column = tl.arange(0, TILE_WIDTH)
    # Offsets within a block fit in 32 bits; starts and gathered positions times their stride may not.
    pointers = ptr + start.to(tl.int64) * stride_n
    pointers = pointers + (local.to(tl.int64)[:, None] * stride_n + column[None, :] * stride_d)
    if EVEN:
        if WIDTH == TILE_WIDTH:
            tile = tl.load(pointers)
        else:
            tile = tl.load(pointers, mask=(column < WIDTH)[None, :], other=0.0)
    else:
        inside = (start + local < limit)[:, None]
        if WIDTH != TILE_WIDTH:
            inside = inside & (column < WIDTH)[None, :]
        tile = tl.load(pointers, mask=inside, other=0.0)
    return tile


@triton.jit
def store_tile(ptr, tile, row, inside, WIDTH: tl.constexpr, TILE_WIDTH: tl.constexpr):
    """Store the rows of a tile that are `inside` to a contiguous ``[n, WIDTH]``, in its dtype."""
    column = tl.arange(0, TILE_WIDTH)
    pointers = ptr + row.to(tl.int64)[:, None] * WIDTH + column[None, :]
    tl.store(pointers, tile.to(ptr.dtype.element_ty), mask=inside[:, None] & (column < WIDTH)[None, :])


@triton.jit
def without_hidden(x, start, local, seen, hidden, SIZE: tl.constexpr, TILE: tl.constexpr):
    """Set products ``[rows, TILE]`` with keys ``start + local`` to ``-inf`` where a key is not below its row's `seen`.

    All rows attend to all keys below `hidden`, so most tiles within a block need no mask.
    """
    if SIZE % TILE == 0:
        if start + TILE > hidden:
            x = tl.where((start + local)[None, :] < seen[:, None], x, float("-inf"))
    else:
        x = tl.where((start + local)[None, :] < seen[:, None], x, float("-inf"))
    return x


@triton.jit
def product(a, b, UPCAST: tl.constexpr):
    """Return ``a @ b`` in float32, without rounding float32 inputs to TF32."""
    if UPCAST:
        a = a.to(tl.float32)
        b = b.to(tl.float32)
    return tl.dot(a, b, input_precision="ieee")
