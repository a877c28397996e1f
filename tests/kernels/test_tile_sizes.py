"""Sizes of Triton's tiles, for every block, width and dtype."""

import pytest
import torch

from sparselib.kernels.tile_sizes import tile_sizes


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("width", [16, 64, 65, 128, 129, 256])
@pytest.mark.parametrize("block", [(16, 16), (64, 128), (128, 64), (48, 80), (128, 128)])
def test_tiles_divide_blocks_and_triton_takes_them(block, width, dtype):
    """Triton's programs have a power of two as their number of warps, and tensors with powers of two as sizes."""
    sizes = tile_sizes(block, width, dtype)
    assert (block[0] % sizes.rows, block[1] % sizes.keys) == (0, 0)
    for size in (sizes.row_tile, sizes.key_tile, sizes.row_warps, sizes.key_warps):
        assert size & (size - 1) == 0 < size
    assert sizes.row_tile >= sizes.rows
    assert sizes.key_tile >= sizes.keys
