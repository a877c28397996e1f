"""How the Triton kernels find, load and multiply tiles.

Positions of a tile are a scalar start and local offsets, so that a tile within one block has cheap addresses: only the start,
in 64 bits, changes from step to step. A tile that spans listed blocks has start 0, and gathers.
"""

import os

import torch
import triton
import triton.language as tl
from torch import Tensor

#: A position beyond every sequence.
NOWHERE = tl.constexpr(2147483647)
#: Triton's interpreter multiplies bfloat16 wrongly, without a word.
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"


def check_device(x: Tensor) -> None:
    """Refuse tensors that no Triton kernel can read.

    Raises
    ------
    ValueError
        If they are not on a GPU, and kernels are not interpreted.
    """
    if not (x.is_cuda or INTERPRETED):
        raise ValueError(
            f"backend: 'triton' compiles for CUDA, but q of shape {tuple(x.shape)} is on {x.device}; the environment variable "
            "TRITON_INTERPRET=1, set before the first import of triton, interprets the kernels there"
        )


def upcast(x: Tensor) -> bool:
    """Whether tiles of this dtype have to become float32 before they are multiplied."""
    return INTERPRETED and x.dtype == torch.bfloat16


@triton.jit
def listed_tile(list_ptr, step, count, SIZE: tl.constexpr, TILE: tl.constexpr):
    """Start and offsets ``[TILE]`` of the positions at a step through `count` listed blocks of `SIZE`."""
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
    """Rows ``start + local`` below `limit` of ``[n, WIDTH]``, and 0 elsewhere: ``[TILE, TILE_WIDTH]``.

    EVEN promises that all rows are below the limit.
    """
    column = tl.arange(0, TILE_WIDTH)
    # Offsets within a block fit 32 bits; starts and gathered positions times their stride may not.
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
    """Write rows ``[TILE]`` of a contiguous ``[n, WIDTH]`` where they are `inside`, in its dtype."""
    column = tl.arange(0, TILE_WIDTH)
    pointers = ptr + row.to(tl.int64)[:, None] * WIDTH + column[None, :]
    tl.store(pointers, tile.to(ptr.dtype.element_ty), mask=inside[:, None] & (column < WIDTH)[None, :])


@triton.jit
def without_hidden(x, start, local, seen, hidden, SIZE: tl.constexpr, TILE: tl.constexpr):
    """Products ``[rows, TILE]`` with the keys ``start + local``, ``-inf`` where a key is not below `seen` of its row.

    All rows see all keys below `hidden`: so most tiles within a block need no look at each pair.
    """
    if SIZE % TILE == 0:
        if start + TILE > hidden:
            x = tl.where((start + local)[None, :] < seen[:, None], x, float("-inf"))
    else:
        x = tl.where((start + local)[None, :] < seen[:, None], x, float("-inf"))
    return x


@triton.jit
def product(a, b, UPCAST: tl.constexpr):
    """``a @ b`` in float32; float32 inputs are not rounded to TF32."""
    if UPCAST:
        a = a.to(tl.float32)
        b = b.to(tl.float32)
    return tl.dot(a, b, input_precision="ieee")
