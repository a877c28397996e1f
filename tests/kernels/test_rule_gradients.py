"""Gradients through rules, and of the tensors that they read."""

from functools import partial

import pytest
import torch
from ruled_attention import ALPHAS, MASKS, SCORES, SLOPES, TABLE, random_inputs

from sparselib.kernels import BlockMask, block_sparse_entmax_attention, visits


@pytest.fixture(autouse=True)
def several_chunks(monkeypatch):
    """The sums over chunks are part of what is tested."""
    monkeypatch.setattr(visits, "CHUNK_SCORES", 8)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_gradcheck(alpha):
    """Also for the tensors that a rule reads: one twice, through another one, and one that is no leaf."""
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, h, 3, 2, generator=generator, dtype=torch.float64) for h in (2, 1, 1))
    slopes, table = (torch.rand(*x, generator=generator, dtype=torch.float64) for x in ((2,), (1, 3)))
    inputs = [x.requires_grad_() for x in (q, k, v, slopes, table)]
    blocks = BlockMask.from_dense(torch.tensor([[[[1, 0], [1, 1]]]]).bool(), 2, 3)

    def attend(q, k, v, slopes, table):
        steep = slopes.exp()
        change = lambda score, b, h, i, j: score.tanh() - steep[h] * slopes[h] * (i - j).abs() + table[b, j]  # noqa: E731
        return block_sparse_entmax_attention(q, k, v, blocks, alpha=alpha, score_mod=change, mask_mod=MASKS["window"])

    assert torch.autograd.gradcheck(attend, inputs)


def test_rules_may_change_their_argument_or_ignore_it():
    """And a half precision bias is read outside autocast."""
    q, k, v = (x.requires_grad_() for x in random_inputs(dtype=torch.float32))
    half = TABLE.bfloat16().requires_grad_()
    attend = partial(block_sparse_entmax_attention, q, k, v)
    output = attend(score_mod=lambda score, b, h, i, j: score.mul_(0.5).add_(half[h, i, j]))
    expected = attend(scale=0.5 / 8**0.5, score_mod=lambda score, b, h, i, j: score + half[h, i, j])
    for x, y in zip(*(torch.autograd.grad(x.sum(), (q, k, half)) for x in (output, expected)), strict=True):
        torch.testing.assert_close(x, y)
    constant = attend(score_mod=lambda score, b, h, i, j: (i == j) * 100)
    torch.testing.assert_close(constant, v.repeat_interleave(2, 1))
    assert (torch.autograd.grad(constant.sum(), q)[0] == 0).all()
    with torch.autocast("cpu", torch.bfloat16):
        assert attend(score_mod=SCORES["bias"]).dtype == torch.bfloat16


def test_changes_of_a_tensor_that_a_rule_read_are_noticed():
    slopes = SLOPES.clone().requires_grad_()
    output = block_sparse_entmax_attention(*random_inputs(), score_mod=lambda s, b, h, i, j: s - slopes[h] * j)
    with torch.no_grad():
        slopes.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        output.sum().backward()


def test_a_tensor_that_a_rule_reads_for_some_pairs_alone_is_noticed():
    """Its gradient would be lost, because it is not read for the first pair."""
    late = torch.ones((), requires_grad=True)
    q, k, v = random_inputs()
    change = lambda score, b, h, i, j: score + late if (i > 0).any() else score  # noqa: E731
    output = block_sparse_entmax_attention(q.requires_grad_(), k, v, score_mod=change)
    with pytest.raises(ValueError, match="`score_mod` must read the same tensors in every call"):
        output.sum().backward()
