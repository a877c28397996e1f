"""Block masks: conversion from and to dense and FlexAttention masks, and rejected input."""

import shutil

import pytest
import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from sparselib.kernels import BlockMask
from sparselib.kernels.reference import block_sparse_entmax_attention_reference


def random_blocks(*shape, density=0.5, seed=0):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed)) < density


@pytest.mark.parametrize("density", [0, 0.3, 1])
@pytest.mark.parametrize(("size", "length"), [(16, 64), (16, 65), ((16, 32), (50, 97)), (64, 1)])
def test_dense_round_trip(size, length, density):
    q_size, k_size = (size, size) if isinstance(size, int) else size
    q_length, k_length = (length, length) if isinstance(length, int) else length
    dense = random_blocks(2, 3, -(-q_length // q_size), -(-k_length // k_size), density=density)
    mask = BlockMask.from_dense(dense, size, length)
    assert torch.equal(mask.to_dense(), dense)
    assert mask.density == pytest.approx(dense.double().mean().item())
    back = BlockMask.from_flex(mask.to_flex())
    assert torch.equal(back.to_dense(), dense)
    assert (back.block_size, back.length) == (mask.block_size, mask.length)


def split(dense, size, length):
    """Return the mask with its even key blocks listed as full."""
    even = torch.arange(dense.shape[-1]) % 2 == 0
    first, second = (BlockMask.from_dense(x, size, length) for x in (dense & ~even, dense & even))
    return BlockMask(first.kv_num_blocks, first.kv_indices, size, length, second.kv_num_blocks, second.kv_indices)


def check_flex(function, mask):
    """Compare FlexAttention's softmax attention under the mask with the float64 reference."""
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(2, 3, mask.length[i], 16, generator=generator) for i in (0, 1, 1))
    output = function(q, k, v, block_mask=mask.to_flex())
    expected = block_sparse_entmax_attention_reference(*(x.double() for x in (q, k, v)), mask, alpha=1)[0]
    torch.testing.assert_close(output.double(), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("build", [BlockMask.from_dense, split])
@pytest.mark.parametrize("heads", [(1, 1), (2, 1), (1, 3), (2, 3)])
@pytest.mark.parametrize(("size", "length"), [(16, (64, 64)), (16, (65, 50)), ((16, 32), (50, 97)), (64, (1, 1))])
def test_uncompiled_flex_attention_visits_the_same_blocks(size, length, heads, build):
    sizes = (size, size) if isinstance(size, int) else size
    dense = random_blocks(*heads, *(-(-n // block) for n, block in zip(length, sizes, strict=True)))
    mask = build(dense, size, length)
    check_flex(flex_attention, mask)
    assert torch.equal(BlockMask.from_flex(mask.to_flex()).to_dense(), dense)


@pytest.mark.skipif(shutil.which("g++") is None, reason="inductor compiles C++ for the CPU: no g++")
@pytest.mark.parametrize(("build", "blocks", "length"), [(BlockMask.from_dense, 2, 256), (split, 3, 300)])
def test_compiled_flex_attention_visits_the_same_blocks(build, blocks, length):
    mask = build(random_blocks(1, 3, blocks, blocks), 128, (length, length))
    check_flex(torch.compile(flex_attention, fullgraph=True), mask)


def test_conversion_from_flex():
    dense = random_blocks(2, 3, 4, 4)
    flex = create_block_mask(
        lambda b, h, i, j: dense[b, h, i // 16, j // 16], 2, 3, 64, 64, device="cpu", BLOCK_SIZE=16
    )
    mask = BlockMask.from_flex(flex)
    assert torch.equal(mask.to_dense(), dense)
    assert torch.equal(mask.to_flex().to_dense().bool(), flex.to_dense().bool())


def test_rows_may_be_narrower_than_all_blocks():
    counts, indices = (
        torch.tensor([[[1, 0]]]),
        torch.tensor([[[[2], [9]]]]),
    )  # The 9 is ignored, because its row has count 0.
    mask = BlockMask(counts, indices, 4, (8, 12))
    expected = torch.tensor([[[[False, False, True], [False, False, False]]]])
    assert torch.equal(mask.to_dense(), expected)
    assert torch.equal(BlockMask.from_flex(mask.to_flex()).to_dense(), expected)


def shared_list(counts, *, blocks=3):
    """Return full blocks as one list expanded to all rows, and block 1 as a partial block of the second row."""
    expanded = torch.arange(blocks).expand(1, 1, blocks, blocks)
    partial = {"kv_num_blocks": torch.tensor([[[0, 1, 0]]]), "kv_indices": torch.full((1, 1, blocks, 1), 1)}
    return partial | {"full_kv_num_blocks": torch.tensor([[counts]]), "full_kv_indices": expanded}


def test_rows_may_share_one_list():
    mask = BlockMask(**shared_list([3, 0, 2]), block_size=4, length=12)
    expected = torch.tensor([[True, True, True], [False, True, False], [True, True, False]])
    assert torch.equal(mask.to_dense()[0, 0], expected)
    assert torch.equal(BlockMask.from_flex(mask.to_flex()).to_dense(), mask.to_dense())
    assert mask.full_kv_indices.untyped_storage().nbytes() == 3 * 8


def test_a_shared_list_is_checked_up_to_the_largest_count():
    lists = shared_list([0, 0, 2])
    shared = {"full_kv_indices": torch.tensor([0, 1, 9]).expand(1, 1, 3, 3)}
    assert BlockMask(**lists | shared, block_size=4, length=12).to_dense().sum() == 3
    with pytest.raises(ValueError, match="`full_kv_indices` must be from 0 to 2, got index 9"):
        BlockMask(**shared_list([0, 0, 3]) | shared, block_size=4, length=12)
    twice = {"full_kv_indices": torch.tensor([0, 0, 1]).expand(1, 1, 3, 3)}
    with pytest.raises(ValueError, match="twice"):
        BlockMask(**lists | twice, block_size=4, length=12)


def test_a_block_in_both_lists_of_a_row_is_rejected():
    with pytest.raises(ValueError, match="twice"):
        BlockMask(**shared_list([0, 2, 0]), block_size=4, length=12)
    assert BlockMask(**shared_list([0, 1, 0]), block_size=4, length=12).to_dense()[0, 0, 1].tolist() == [
        True,
        True,
        False,
    ]


LISTS = {"kv_num_blocks": torch.tensor([[[1, 2]]]), "kv_indices": torch.tensor([[[[0, 1], [0, 1]]]])}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kv_num_blocks": torch.tensor([[[1, 3]]])}, "`kv_num_blocks` must be from 0 to 2.*from 1 to 3"),
        ({"kv_num_blocks": torch.tensor([[[-1, 2]]])}, "`kv_num_blocks` must be from 0 to 2.*from -1 to 2"),
        ({"kv_num_blocks": torch.tensor([[1, 2]])}, r"`kv_num_blocks` must .*\(1, 1, 2\), got shape \(1, 2\)"),
        ({"kv_num_blocks": torch.tensor([[[1.0, 2.0]]])}, "`kv_num_blocks` must be an int32 or int64 tensor"),
        (
            {"kv_num_blocks": torch.tensor([[[1, 2]]], dtype=torch.int32)},
            "one dtype and device, got torch.int32 on cpu",
        ),
        ({"kv_indices": torch.tensor([[[[0, 1], [0, 2]]]])}, "`kv_indices` must be from 0 to 1, got index 2"),
        ({"kv_indices": torch.tensor([[[[-1, 1], [0, 1]]]])}, "`kv_indices` must be from 0 to 1, got index -1"),
        ({"kv_indices": torch.tensor([[[[0, 1], [1, 1]]]])}, "`kv_indices` must list each block.*twice"),
        (
            {"kv_indices": torch.zeros(1, 1, 3, 2, dtype=torch.int64)},
            r"`kv_indices` must have shape \(B, H, 2, at most 2\).*got \(1, 1, 3, 2\)",
        ),
        ({"full_kv_num_blocks": LISTS["kv_num_blocks"]}, "`full_kv_indices` must be given together"),
        ({"full_kv_num_blocks": LISTS["kv_num_blocks"], "full_kv_indices": LISTS["kv_indices"]}, "twice"),
        ({"block_size": 0}, "`block_size` must be a positive integer.*got 0"),
        ({"length": (8, 8, 8)}, "`length` must be a positive integer"),
        ({"length": 20}, "`kv_indices` must have shape"),
    ],
)
def test_errors_name_the_argument(changes, message):
    with pytest.raises(ValueError, match=message):
        BlockMask(**{**LISTS, "block_size": 4, "length": 8} | changes)


@pytest.mark.parametrize(
    ("dense", "message"),
    [
        (torch.ones(1, 1, 2, 2), "`dense` must be a boolean tensor"),
        (random_blocks(1, 1, 3, 2), r"`dense` must have shape \(B, H, 2, 2\).*got \(1, 1, 3, 2\)"),
    ],
)
def test_from_dense_errors_name_the_argument(dense, message):
    with pytest.raises(ValueError, match=message):
        BlockMask.from_dense(dense, 4, 8)
