"""Masks of FlexAttention keep their rules, and give its results."""

from functools import partial

import pytest
import torch
from ruled_attention import BATCH, HEADS, LENGTH, MASKS, RULES, SCORES, check, dense, random_inputs
from torch.nn.attention import flex_attention as flex

from sparselib.kernels import BlockMask, block_sparse_entmax_attention


@pytest.mark.parametrize("score_mod", [None, *SCORES.values()])
@pytest.mark.parametrize("mask_mod", MASKS.values())
def test_flex_attention_with_the_same_mask_and_rule(mask_mod, score_mod):
    """As softmax, in PyTorch's own uncompiled FlexAttention, which has no backward pass on a CPU."""
    mask = flex.create_block_mask(mask_mod, BATCH, HEADS, LENGTH, LENGTH, device="cpu", BLOCK_SIZE=4)
    inputs = random_inputs()
    expected = flex.flex_attention(*inputs, score_mod, mask, enable_gqa=True)
    output = block_sparse_entmax_attention(*inputs, BlockMask.from_flex(mask), alpha=1, score_mod=score_mod)
    torch.testing.assert_close(output, expected, rtol=1e-9, atol=1e-9)


def test_a_mask_keeps_its_rule_and_returns_it_to_flex_attention():
    rule = MASKS["documents"]
    mask = BlockMask.from_flex(flex.create_block_mask(rule, BATCH, None, LENGTH, LENGTH, "cpu", BLOCK_SIZE=4))
    assert mask.mask_mod is mask.to("cpu").mask_mod is rule
    assert mask.full_kv_num_blocks.any()
    check(random_inputs(), mask, **RULES["both"] | {"mask_mod": rule})
    inputs = random_inputs()
    ruled = block_sparse_entmax_attention(*inputs, mask, mask_mod=MASKS["window"])
    both = dense(*inputs, mask_mod=lambda *place: rule(*place) & MASKS["window"](*place))
    torch.testing.assert_close(ruled, both)
    again = mask.to_flex()
    torch.testing.assert_close(flex.create_mask(again.mask_mod, BATCH, 1, LENGTH, LENGTH, "cpu"),
                               flex.create_mask(rule, BATCH, 1, LENGTH, LENGTH, "cpu"))  # fmt: skip
    attend = partial(block_sparse_entmax_attention, *inputs)
    torch.testing.assert_close(attend(BlockMask.from_flex(again)), attend(mask))


def test_a_dropped_rule_visits_blocks_whole():
    mask = BlockMask.from_flex(
        flex.create_block_mask(MASKS["window"], None, None, LENGTH, LENGTH, "cpu", BLOCK_SIZE=4), drop_mask_mod=True
    )
    assert mask.mask_mod is None
    whole = BlockMask.from_dense(mask.to_dense(), 4, LENGTH)
    attend = partial(block_sparse_entmax_attention, *random_inputs())
    torch.testing.assert_close(attend(mask), attend(whole))
