"""Attention over a block mask, and what cannot be combined with it."""

from functools import partial

import pytest
import torch

from sparselib import Entmax, attention, entmax, entmax15, sparsemax, topk_softmax
from sparselib.control import AttentionControl
from sparselib.kernels import BlockMask
from sparselib.normalizers import alpha_of


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
def test_other_normalizers_raise(normalizer):
    with pytest.raises(ValueError, match="alpha-entmax"):
        alpha_of(normalizer)


def test_weights_are_not_computed_while_visiting_blocks():
    control, q = AttentionControl(entmax15), torch.randn(1, 1, 3, 4)
    with control.visiting(lambda *_: None), pytest.raises(ValueError, match=r"`visiting\(\)` computes neither weights"):
        control.weights(0, q, q, None)
