"""How large the tiles of the Triton kernels are: one table, nothing is tuned at run time."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import torch

#: Smallest side of a tile that a tensor core multiplies.
SMALLEST = 16
#: Block size of dense attention, where no mask has one.
DENSE_BLOCK = 128


@dataclass(frozen=True)
class TileSizes:
    """Sizes for one attention.

    Attributes
    ----------
    rows, row_tile : int
        Queries per program of the forward pass and of the gradient of q: a divisor of the block of queries; and rounded up,
        the side of the tile that is computed.
    key_step, warps : int
        Keys per step of the forward pass.
    gradient_key_step, query_warps : int
        The same for the gradient of q.
    keys, key_tile : int
        Keys per program of the gradients of k and v, a divisor of the block of keys; and rounded up.
    row_step, key_warps : int
        Queries per step of those.
    stages : int
        Steps of which tiles are on their way.
    """

    rows: int
    row_tile: int
    key_step: int
    warps: int
    gradient_key_step: int
    query_warps: int
    keys: int
    key_tile: int
    row_step: int
    key_warps: int
    stages: int


@cache
def tile_sizes(block: tuple[int, int], width: int, dtype: torch.dtype) -> TileSizes:
    """Tiles for blocks of queries and keys, the larger `width` of the head dimensions, and the dtype of the inputs.

    Gradients have two accumulators a tile, so small tiles take smaller steps there; one of more than 64 rows has 8 warps.
    """
    most, step, gradient_step, warps, gradient_warps, stages = _limits(width, dtype)
    rows, keys = (_divisor(size, most) for size in block)
    row_tile, key_tile = padded(rows), padded(keys)
    steps = [step if tile > 64 else gradient_step for tile in (row_tile, key_tile)]
    row_warps = [8 if row_tile > 64 else x for x in (warps, gradient_warps)]
    return TileSizes(
        rows=rows,
        row_tile=row_tile,
        key_step=_step(block[1], step),
        warps=row_warps[0],
        gradient_key_step=_step(block[1], steps[0]),
        query_warps=row_warps[1],
        keys=keys,
        key_tile=key_tile,
        row_step=_step(rows, steps[1]),
        key_warps=8 if key_tile > 64 else gradient_warps,
        stages=stages,
    )


def alive_shape(shape: Sequence[int], width: int, sizes: TileSizes, alpha: float) -> tuple[int, ...]:
    """``[B, H, tiles, W]`` of the forward pass's flags for queries of a shape and lists of width W; none for softmax."""
    return (0,) if alpha == 1 else (*shape[:2], -(-shape[2] // sizes.rows), width)


def padded(width: int) -> int:
    """A size as tiles have it: a power of two that a tensor core takes."""
    return max(SMALLEST, _power_of_two(width))


def _limits(width: int, dtype: torch.dtype) -> tuple[int, int, int, int, int, int]:
    """Most rows of a tile, keys per step, the same in gradients of small tiles, warps, those of gradients, and stages.

    Chosen so that the compiler for Hopper spills no registers in a loop, or next to none (benchmarks/kernel_instructions.py).
    """
    half = dtype != torch.float32
    if width <= 64:
        return (128, 64, 64, 4, 4, 3) if half else (64, 32, 32, 8, 8, 2)
    if width <= 128:
        return (128, 64, 32, 4, 4, 3) if half else (32, 32, 32, 8, 8, 2)
    return (64, 32, 32, 8, 8, 2) if half else (16, 16, 16, 4, 4, 2)


def _divisor(size: int, most: int) -> int:
    """The largest divisor of `size` that is at most `most`."""
    return next(x for x in range(min(size, most), 0, -1) if size % x == 0)


def _step(size: int, preferred: int) -> int:
    """A fair divisor of `size` if there is one, so that a step stays within a block; else the preferred step."""
    return next((step for step in (preferred, 32) if step <= preferred and size % step == 0), preferred)


def _power_of_two(size: int) -> int:
    """`size` rounded up to a power of two."""
    return 1 << (size - 1).bit_length()
