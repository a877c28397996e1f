"""How large the tiles of the Triton kernels are: one table, nothing is tuned at run time."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import torch

#: Smallest side of a tile that a tensor core multiplies.
SMALLEST = 16
#: Block size of dense attention, where no mask has one.
DENSE_BLOCK = 128
#: Steps of which tiles are on their way; a third takes the room of other programs.
STAGES = 2


@dataclass(frozen=True)
class TileSizes:
    """Sizes for one attention.

    Attributes
    ----------
    rows, row_tile : int
        Queries per program of the forward pass and of the gradient of q: a divisor of the block of queries; and rounded up,
        the side of the tile that is computed.
    key_step, gradient_key_step : int
        Keys per step of the forward pass, and of the gradient of q.
    row_warps : int
        Of both.
    keys, key_tile : int
        Keys per program of the gradients of k and v, a divisor of the block of keys; and rounded up.
    row_step, key_warps : int
        Queries per step of those.
    registers : int, optional
        Most registers of a thread in the forward pass for alpha = 1.5: fewer than the compiler would take, for one more
        program on a multiprocessor.
    """

    rows: int
    row_tile: int
    key_step: int
    gradient_key_step: int
    row_warps: int
    keys: int
    key_tile: int
    row_step: int
    key_warps: int
    registers: int | None


@cache
def tile_sizes(block: tuple[int, int], width: int, dtype: torch.dtype) -> TileSizes:
    """Tiles for blocks of queries and keys, the larger `width` of the head dimensions, and the dtype of the inputs.

    Gradients have two accumulators a tile, so small tiles take smaller steps there; one of more than 64 rows has 8 warps, and
    the forward pass takes twice the keys per step with it.
    """
    most_rows, most_keys, step, gradient_step, warps, registers = _limits(width, dtype)
    rows, keys = _divisor(block[0], most_rows), _divisor(block[1], most_keys)
    row_tile, key_tile = padded(rows), padded(keys)
    steps = [step if tile > 64 else gradient_step for tile in (row_tile, key_tile)]
    row_warps, key_warps = (8 if tile > 64 else warps for tile in (row_tile, key_tile))
    return TileSizes(
        rows=rows,
        row_tile=row_tile,
        key_step=_step(block[1], 2 * step if row_tile > 64 else step),
        gradient_key_step=_step(block[1], steps[0]),
        row_warps=row_warps,
        keys=keys,
        key_tile=key_tile,
        row_step=_step(rows, steps[1]),
        key_warps=key_warps,
        registers=registers,
    )


def alive_shape(shape: Sequence[int], width: int, sizes: TileSizes, alpha: float) -> tuple[int, ...]:
    """``[B, H, tiles, W]`` of the forward pass's flags for queries of a shape and lists of width W; none for softmax."""
    return (0,) if alpha == 1 else (*shape[:2], -(-shape[2] // sizes.rows), width)


def padded(width: int) -> int:
    """A size as tiles have it: a power of two that a tensor core takes."""
    return max(SMALLEST, _power_of_two(width))


def _limits(width: int, dtype: torch.dtype) -> tuple[int, int, int, int, int, int | None]:
    """Most rows of a tile, most keys of one, keys per step, the same in gradients of small tiles, warps, and registers.

    The fastest on an H200 of those that spill next to no register in a loop (benchmarks/kernel_instructions.py): in half
    precision, times follow from how many programs a multiprocessor has room for, so little is kept on its way.
    """
    half = dtype != torch.float32
    if width <= 64:
        return (64, 64, 64, 64, 4, 96) if half else (64, 64, 32, 32, 8, None)
    if width <= 128:
        return (128, 64, 64, 32, 4, None) if half else (32, 32, 32, 32, 8, None)
    return (64, 64, 32, 32, 8, None) if half else (16, 16, 16, 16, 4, None)


def _divisor(size: int, most: int) -> int:
    """The largest divisor of `size` that is at most `most`."""
    return next(x for x in range(min(size, most), 0, -1) if size % x == 0)


def _step(size: int, preferred: int) -> int:
    """A fair divisor of `size` if there is one, so that a step stays within a block; else the preferred step."""
    return next((step for step in (preferred, 64, 32) if step <= preferred and size % step == 0), preferred)


def _power_of_two(size: int) -> int:
    """`size` rounded up to a power of two."""
    return 1 << (size - 1).bit_length()
