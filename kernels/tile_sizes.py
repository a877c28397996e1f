"""How large the tiles of the Triton kernels are: one table, nothing is tuned at run time."""

from collections.abc import Sequence
from dataclasses import dataclass

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
    rows : int
        Queries per program of the forward pass and of the gradient of q: a divisor of the block of queries.
    row_tile, key_step : int
        The tile that those programs compute at a time: `rows` rounded up, and keys per step.
    keys : int
        Keys per program of the gradients of k and v: a divisor of the block of keys.
    key_tile, row_step : int
        The tile that those compute at a time: `keys` rounded up, and queries per step.
    warps, backward_warps, stages : int
    """

    rows: int
    row_tile: int
    key_step: int
    keys: int
    key_tile: int
    row_step: int
    warps: int
    backward_warps: int
    stages: int


def tile_sizes(block: tuple[int, int], width: int, dtype: torch.dtype) -> TileSizes:
    """Tiles for blocks of queries and keys, the larger `width` of the head dimensions, and the dtype of the inputs."""
    most, step, warps, backward_warps, stages = _limits(width, dtype)
    rows, keys = (_divisor(size, most) for size in block)
    row_tile, key_tile = padded(rows), padded(keys)
    if row_tile > 64:
        warps = backward_warps = 8
    row_step, key_step = _step(rows, step), _step(block[1], step)
    return TileSizes(rows, row_tile, key_step, keys, key_tile, row_step, warps, backward_warps, stages)


def alive_shape(shape: Sequence[int], width: int, sizes: TileSizes, alpha: float) -> tuple[int, ...]:
    """``[B, H, tiles, W]`` of the forward pass's flags for queries of a shape and lists of width W; none for softmax."""
    return (0,) if alpha == 1 else (*shape[:2], -(-shape[2] // sizes.rows), width)


def padded(width: int) -> int:
    """A size as tiles have it: a power of two that a tensor core takes."""
    return max(SMALLEST, _power_of_two(width))


def _limits(width: int, dtype: torch.dtype) -> tuple[int, int, int, int, int]:
    """Most rows of a tile, keys per step, warps, warps of the backward pass (with two accumulators a tile), and stages.

    Chosen so that the compiler for Hopper spills no registers, or next to none.
    """
    half = dtype != torch.float32
    if width <= 64:
        return (128, 64, 4, 4, 3) if half else (64, 32, 8, 8, 2)
    if width <= 128:
        return (64, 64, 4, 8, 3) if half else (32, 32, 8, 8, 2)
    return (64, 32, 8, 8, 2) if half else (16, 16, 4, 4, 2)


def _divisor(size: int, most: int) -> int:
    """The largest divisor of `size` that is at most `most`."""
    return next(x for x in range(min(size, most), 0, -1) if size % x == 0)


def _step(size: int, preferred: int) -> int:
    """A fair divisor of `size` if there is one, so that a step stays within a block; else the preferred step."""
    return next((step for step in (preferred, 32) if step <= preferred and size % step == 0), preferred)


def _power_of_two(size: int) -> int:
    """`size` rounded up to a power of two."""
    return 1 << (size - 1).bit_length()
