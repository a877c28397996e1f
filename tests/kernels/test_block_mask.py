"""Block masks: dense and FlexAttention's form, there and back, and what is refused."""

import shutil

import pytest
import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from sparselib.kernels import BlockMask
from sparselib.kernels.reference import block_sparse_entmax_attention_reference


def drawn(*shape, density=0.5, seed=0):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed)) < density


@pytest.mark.parametrize("density", [0, 0.3, 1])
@pytest.mark.parametrize(("size", "length"), [(16, 64), (16, 65), ((16, 32), (50, 97)), (64, 1)])
def test_dense_there_and_back(size, length, density):
    q_size, k_size = (size, size) if isinstance(size, int) else size
    q_length, k_length = (length, length) if isinstance(length, int) else length
    dense = drawn(2, 3, -(-q_length // q_size), -(-k_length // k_size), density=density)
    mask = BlockMask.from_dense(dense, size, length)
    assert torch.equal(mask.to_dense(), dense)
    assert mask.density == pytest.approx(dense.double().mean().item())
    back = BlockMask.from_flex(mask.to_flex())
    assert torch.equal(back.to_dense(), dense)
    assert (back.block_size, back.length) == (mask.block_size, mask.length)


def split(dense, size, length):
    """The mask with its even blocks of keys listed as full."""
    even = torch.arange(dense.shape[-1]) % 2 == 0
    first, second = (BlockMask.from_dense(x, size, length) for x in (dense & ~even, dense & even))
    return BlockMask(first.kv_num_blocks, first.kv_indices, size, length, second.kv_num_blocks, second.kv_indices)


def flex_is_the_twin(function, mask):
    """Softmax attention of FlexAttention with the mask, against a mask of tokens in float64."""
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(2, 3, mask.length[i], 16, generator=generator) for i in (0, 1, 1))
    found = function(q, k, v, block_mask=mask.to_flex())
    expected = block_sparse_entmax_attention_reference(*(x.double() for x in (q, k, v)), mask, alpha=1)[0]
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("made", [BlockMask.from_dense, split])
@pytest.mark.parametrize("heads", [(1, 1), (2, 1), (1, 3), (2, 3)])
@pytest.mark.parametrize(("size", "length"), [(16, (64, 64)), (16, (65, 50)), ((16, 32), (50, 97)), (64, (1, 1))])
def test_uncompiled_flex_attention_visits_the_same_blocks(size, length, heads, made):
    sizes = (size, size) if isinstance(size, int) else size
    dense = drawn(*heads, *(-(-n // one) for n, one in zip(length, sizes, strict=True)))
    mask = made(dense, size, length)
    flex_is_the_twin(flex_attention, mask)
    assert torch.equal(BlockMask.from_flex(mask.to_flex()).to_dense(), dense)


@pytest.mark.skipif(shutil.which("g++") is None, reason="inductor compiles C++ for the CPU: no g++")
@pytest.mark.parametrize(("made", "blocks", "length"), [(BlockMask.from_dense, 2, 256), (split, 3, 300)])
def test_compiled_flex_attention_too(made, blocks, length):
    mask = made(drawn(1, 3, blocks, blocks), 128, (length, length))
    flex_is_the_twin(torch.compile(flex_attention, fullgraph=True), mask)


def test_flex_sees_the_same_blocks():
    dense = drawn(2, 3, 4, 4)
    flex = create_block_mask(
        lambda b, h, i, j: dense[b, h, i // 16, j // 16], 2, 3, 64, 64, device="cpu", BLOCK_SIZE=16
    )
    mask = BlockMask.from_flex(flex)
    assert torch.equal(mask.to_dense(), dense)
    assert torch.equal(mask.to_flex().to_dense().bool(), flex.to_dense().bool())


def test_partial_blocks_with_a_rule_are_dropped_on_request_only():
    flex = create_block_mask(lambda b, h, i, j: i >= j, None, None, 64, 64, device="cpu", BLOCK_SIZE=16)
    with pytest.raises(ValueError, match="mask_mod"):
        BlockMask.from_flex(flex)
    dense = BlockMask.from_flex(flex, drop_mask_mod=True).to_dense()
    assert torch.equal(dense[0, 0], torch.ones(4, 4, dtype=torch.bool).tril())


def test_rows_may_be_narrower_than_all_blocks():
    counts, indices = torch.tensor([[[1, 0]]]), torch.tensor([[[[2], [9]]]])  # 9 is not listed: its row has none
    mask = BlockMask(counts, indices, 4, (8, 12))
    expected = torch.tensor([[[[False, False, True], [False, False, False]]]])
    assert torch.equal(mask.to_dense(), expected)
    assert torch.equal(BlockMask.from_flex(mask.to_flex()).to_dense(), expected)


def everything_for(counts, *, blocks=3):
    """Full blocks as one list, expanded to all rows; partial blocks: block 1 in the second row."""
    expanded = torch.arange(blocks).expand(1, 1, blocks, blocks)
    partial = {"kv_num_blocks": torch.tensor([[[0, 1, 0]]]), "kv_indices": torch.full((1, 1, blocks, 1), 1)}
    return partial | {"full_kv_num_blocks": torch.tensor([[counts]]), "full_kv_indices": expanded}


def test_rows_may_share_one_list():
    mask = BlockMask(**everything_for([3, 0, 2]), block_size=4, length=12)
    expected = torch.tensor([[True, True, True], [False, True, False], [True, True, False]])
    assert torch.equal(mask.to_dense()[0, 0], expected)
    assert torch.equal(BlockMask.from_flex(mask.to_flex()).to_dense(), mask.to_dense())
    assert mask.full_kv_indices.untyped_storage().nbytes() == 3 * 8


def test_a_list_that_rows_share_is_checked_as_far_as_the_longest_row_reads():
    lists = everything_for([0, 0, 2])
    shared = {"full_kv_indices": torch.tensor([0, 1, 9]).expand(1, 1, 3, 3)}
    assert BlockMask(**lists | shared, block_size=4, length=12).to_dense().sum() == 3
    with pytest.raises(ValueError, match="full_kv_indices: index 9"):
        BlockMask(**everything_for([0, 0, 3]) | shared, block_size=4, length=12)
    twice = {"full_kv_indices": torch.tensor([0, 0, 1]).expand(1, 1, 3, 3)}
    with pytest.raises(ValueError, match="twice"):
        BlockMask(**lists | twice, block_size=4, length=12)


def test_a_block_in_both_lists_of_a_row_is_listed_twice():
    with pytest.raises(ValueError, match="twice"):
        BlockMask(**everything_for([0, 2, 0]), block_size=4, length=12)
    assert BlockMask(**everything_for([0, 1, 0]), block_size=4, length=12).to_dense()[0, 0, 1].tolist() == [
        True,
        True,
        False,
    ]


LISTS = {"kv_num_blocks": torch.tensor([[[1, 2]]]), "kv_indices": torch.tensor([[[[0, 1], [0, 1]]]])}


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"kv_num_blocks": torch.tensor([[[1, 3]]])}, "kv_num_blocks"),
        ({"kv_num_blocks": torch.tensor([[[-1, 2]]])}, "kv_num_blocks"),
        ({"kv_num_blocks": torch.tensor([[1, 2]])}, r"kv_num_blocks.*\(1, 2\).*\(1, 1, 2, 2\)"),
        ({"kv_num_blocks": torch.tensor([[[1.0, 2.0]]])}, "kv_num_blocks.*int32"),
        ({"kv_num_blocks": torch.tensor([[[1, 2]]], dtype=torch.int32)}, "int32 on cpu"),
        ({"kv_indices": torch.tensor([[[[0, 1], [0, 2]]]])}, r"kv_indices: index 2.*\(1, 1, 2, 2\)"),
        ({"kv_indices": torch.tensor([[[[-1, 1], [0, 1]]]])}, "kv_indices: index -1"),
        ({"kv_indices": torch.tensor([[[[0, 1], [1, 1]]]])}, "kv_indices.*twice"),
        ({"kv_indices": torch.zeros(1, 1, 3, 2, dtype=torch.int64)}, r"kv_indices.*\(1, 1, 3, 2\).*\(B, H, 2, 2\)"),
        ({"full_kv_num_blocks": LISTS["kv_num_blocks"]}, "full_kv_indices"),
        ({"full_kv_num_blocks": LISTS["kv_num_blocks"], "full_kv_indices": LISTS["kv_indices"]}, "twice"),
        ({"block_size": 0}, "block_size"),
        ({"length": (8, 8, 8)}, "length"),
        ({"length": 20}, "kv_indices"),
    ],
)
def test_errors_name_the_argument(changes, named):
    with pytest.raises(ValueError, match=named):
        BlockMask(**{**LISTS, "block_size": 4, "length": 8} | changes)


@pytest.mark.parametrize(
    ("dense", "named"), [(torch.ones(1, 1, 2, 2), "dense"), (drawn(1, 1, 3, 2), r"\(1, 1, 3, 2\)")]
)
def test_from_dense_names_the_argument(dense, named):
    with pytest.raises(ValueError, match=named):
        BlockMask.from_dense(dense, 4, 8)
