"""Tile sizes of the Triton kernels, from one table instead of tuning at run time."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import torch

#: Smallest tile side that tensor cores support.
SMALLEST = 16
#: Block size of dense attention, which has no mask to define it.
DENSE_BLOCK = 128
#: Pipeline stages, i.e. steps whose tiles are loading. A third stage would leave room for fewer programs.
STAGES = 2


@dataclass(frozen=True)
class TileSizes:
    """Tile sizes for one attention.

    Attributes
    ----------
    rows : int
        Queries per program in the forward pass and the gradient of q, a divisor of the query block size.
    row_tile : int
        `rows` rounded up to a tile side.
    key_step, gradient_key_step : int
        Keys per step in the forward pass and in the gradient of q.
    row_warps : int
        Warps per program in the forward pass and the gradient of q.
    keys : int
        Keys per program in the gradients of k and v, a divisor of the key block size.
    key_tile : int
        `keys` rounded up to a tile side.
    row_step, key_warps : int
        Queries per step and warps per program in the gradients of k and v.
    registers : int, optional
        Limit on registers per thread in the forward pass for ``alpha = 1.5``. It is below the compiler's choice, so that one
        more program fits on a multiprocessor.
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
    """Return the tile sizes for an attention.

    Parameters
    ----------
    block : tuple of int
        Queries and keys per block.
    width : int
        The larger of the two head dimensions.
    dtype : torch.dtype
        Dtype of the inputs.

    Returns
    -------
    TileSizes
        The same sizes for the same arguments.

    Notes
    -----
    Gradient kernels have two accumulators per tile, so small tiles take smaller steps there. Tiles of more than 64 rows use 8
    warps, and twice as many keys per step in the forward pass.
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
    """Return the shape of the forward pass's flags.

    Parameters
    ----------
    shape : sequence of int
        Shape of the queries.
    width : int
        Width W of the lists.
    sizes : TileSizes
        Tile sizes.
    alpha : float
        From 1 to 2.

    Returns
    -------
    tuple of int
        ``(B, H, tiles, W)``, or ``(0,)`` for softmax, which has no zero weights to flag.
    """
    return (0,) if alpha == 1 else (*shape[:2], -(-shape[2] // sizes.rows), width)


def padded(width: int) -> int:
    """Round a size up to a tile side.

    Parameters
    ----------
    width : int
        Any positive size.

    Returns
    -------
    int
        A power of two that tensor cores support.
    """
    return max(SMALLEST, 1 << (width - 1).bit_length())


def _limits(width: int, dtype: torch.dtype) -> tuple[int, int, int, int, int, int | None]:
    """Return most rows and keys per tile, keys per step, keys per step in gradients of small tiles, warps, and registers.

    These sizes were the fastest on an H200 among those that spill almost no registers in a loop
    (benchmarks/kernel_instructions.py). In half precision, the time depends on how many programs fit on a multiprocessor, so
    few tiles are loaded ahead.
    """
    half = dtype != torch.float32
    if width <= 64:
        return (64, 64, 64, 64, 4, 96) if half else (64, 64, 32, 32, 8, None)
    if width <= 128:
        return (128, 64, 64, 32, 4, None) if half else (32, 32, 32, 32, 8, None)
    return (64, 64, 32, 32, 8, None) if half else (16, 16, 16, 16, 4, None)


def _divisor(size: int, most: int) -> int:
    """Return the largest divisor of `size` that is at most `most`."""
    return next(x for x in range(min(size, most), 0, -1) if size % x == 0)


def _step(size: int, preferred: int) -> int:
    """Return a large divisor of `size`, so that a step stays within a block, or else the preferred step."""
    return next((step for step in (preferred, 64, 32) if step <= preferred and size % step == 0), preferred)
