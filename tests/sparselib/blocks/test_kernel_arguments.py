"""What dense attention's normalisers and masks mean to the block-sparse kernel."""

from functools import partial

import pytest
import torch

from sparselib import Entmax, attention, entmax, entmax15, sparsemax, topk_softmax
from sparselib.blocks.kernel_arguments import token_rules
from sparselib.control import AttentionControl
from sparselib.kernels import BlockMask
from sparselib.normalizers import alpha_of

TRIANGLE = torch.ones(5, 5, dtype=torch.bool).tril()


@pytest.mark.parametrize(
    ("normalizer", "alpha"), [(entmax15, 1.5), (sparsemax, 2), (Entmax(1), 1), (Entmax(1.25), 1.25)]
)
def test_attention_over_blocks_is_attention_over_their_tokens(normalizer, alpha):
    assert alpha_of(normalizer) == alpha
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(2, 3, 11, 8, generator=generator, dtype=torch.float64) for _ in range(3))
    blocks = torch.rand(2, 3, 3, 3, generator=generator) < 0.6
    tokens = blocks.repeat_interleave(4, 2).repeat_interleave(4, 3)[..., :11, :11]
    found, weights = attention(q, k, v, BlockMask.from_dense(blocks, 4, 11), normalizer=normalizer)
    assert weights is None
    torch.testing.assert_close(found, attention(q, k, v, tokens, normalizer=normalizer)[0], atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("normalizer", [partial(topk_softmax, k=2), entmax, torch.softmax])
def test_other_normalizers_are_refused(normalizer):
    with pytest.raises(ValueError, match="alpha-entmax"):
        alpha_of(normalizer)


def test_rules_of_tokens():
    assert token_rules(None) == (False, None)
    assert token_rules(torch.ones(2, 1, 5, 5, dtype=torch.bool)) == (False, None)
    assert token_rules(TRIANGLE.expand(2, 1, 5, 5)) == (True, None)
    assert token_rules(torch.ones(1, 1, 1, 1, dtype=torch.bool)) == (False, None)  # one token: no rule is needed
    real = torch.arange(5) < torch.tensor([5, 3, 0])[:, None]
    for causal, rule in ((False, torch.ones_like(TRIANGLE)), (True, TRIANGLE)):
        found, lengths = token_rules(rule & real[:, None, None])
        assert (found, lengths.tolist()) == (causal, [5, 3, 0])


@pytest.mark.parametrize(
    "mask",
    [
        TRIANGLE.flip(1).expand(2, 1, 5, 5),
        (torch.arange(5) > 1).expand(2, 1, 5, 5),
        torch.ones(2, 1, 3, 5, dtype=torch.bool),
        torch.ones(2, 4, 5, 5, dtype=torch.bool),
    ],
)
def test_masks_that_are_no_rule_are_refused(mask):
    with pytest.raises(ValueError, match="block-sparse attention"):
        token_rules(mask)


def test_models_without_the_kernel_refuse_to_visit_blocks():
    control, q = AttentionControl(entmax15), torch.randn(1, 1, 3, 4)
    with control.visiting(lambda *_: None), pytest.raises(ValueError, match="visits blocks has neither weights"):
        control.weights(0, q, q, None)
