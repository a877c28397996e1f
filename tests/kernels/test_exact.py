"""Exact attention, which skips blocks, equals dense attention in output, support and gradients."""

import pytest
import torch
from dense import ALPHAS, KINDS, RULES, allowed_pairs, missed, oracle, random_inputs, random_mask, token_mask
from interpreter import require_interpreter

from sparselib.kernels import BlockMask, block_sparse_entmax_attention
from sparselib.kernels.block_operator import attend
from sparselib.kernels.certificate import exact


def checked_exact(q, k, v, mask, **rules):
    """Run exact attention from an initial mask and check that every edge lies in a visited block."""
    output, tau, certificate = exact(attend, q, k, v, mask, **rules)
    expected, weights = oracle(q, k, v, **rules)
    assert certificate.rows.all()
    assert not missed(weights, certificate.block_mask, q, k).any()
    return output, tau, certificate, expected, weights


def support(tau, mask, q, k, *, alpha, **rule):
    """Return the edges in the visited blocks, according to tau."""
    k = k.repeat_interleave(q.shape[1] // k.shape[1], 1)
    scores = (alpha - 1) * q.shape[-1] ** -0.5 * q @ k.mT
    return (scores > tau[..., None]) & token_mask(mask, q, k) & allowed_pairs(q, k, **rule)


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("kind", KINDS)
def test_exact_equals_dense_attention(kind, alpha, rule):
    q, k, v = random_inputs(kind)
    for start in (None, random_mask(density=0.2)):
        output, tau, certificate, expected, weights = checked_exact(q, k, v, start, alpha=alpha, **rule)
        torch.testing.assert_close(output, expected, rtol=0, atol=1e-9)
        if alpha != 1.25:  # bisected by the oracle: no exact zeros
            assert torch.equal(support(tau, certificate.block_mask, q, k, alpha=alpha, **rule), weights > 0)
        if start is not None:
            assert (certificate.block_mask.to_dense() >= start.to_dense()).all()


def adversarial(name, n=96, d=16):
    """Return inputs whose scores have few binary digits, so that equal scores stay equal after the scale 1/4 and alpha - 1."""
    generator = torch.Generator().manual_seed(3)
    q, k = (torch.randint(-2, 3, (1, 2, n, d), generator=generator).double() for _ in range(2))
    if name == "all equal":
        k = torch.ones_like(k)
    elif name == "no queries":
        q = torch.zeros_like(q)
    elif name == "ties at the threshold":  # Four keys have weight 1/4, and all others lie at the threshold 0.
        q, k = torch.ones_like(q), torch.zeros_like(k)
        k[:, :, [0, 17, 40, 95]] = 0.25
    elif name == "one huge key":
        k[:, :, 70] *= 2.0**20
    elif name == "opposite keys":
        k[:, :, ::2] = -k[:, :, 1::2]
    return q, k, torch.randn(1, 2, n, d, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize(
    "name", ["all equal", "no queries", "ties at the threshold", "one huge key", "opposite keys", "integers"]
)
def test_exact_has_the_support_of_the_oracle_on_adversarial_scores(name, alpha):
    q, k, v = adversarial(name)
    start = BlockMask.from_dense(torch.eye(6, dtype=torch.bool).view(1, 1, 6, 6), 16, 96)
    output, tau, certificate, expected, weights = checked_exact(q, k, v, start, alpha=alpha)
    torch.testing.assert_close(output, expected, rtol=0, atol=1e-9)
    if alpha != 1.25:  # bisected by the oracle: no exact zeros
        assert torch.equal(support(tau, certificate.block_mask, q, k, alpha=alpha), weights > 0)


def test_adversarial_ties_lie_at_the_threshold():
    """The input above has threshold 0, and keys at the threshold that have no weight and lie in no visited block."""
    q, k, _ = adversarial("ties at the threshold")
    _, weights = oracle(q, k, k, alpha=1.5, scale=0.25)
    assert ((weights > 0).sum(-1) == 4).all()
    assert (q @ k.mT).unique().tolist() == [0, 4]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("kind", KINDS)
def test_exact_in_low_precision(kind, dtype):
    """No edge of exact arithmetic is missed, and the output equals the dense pass in the same dtype."""
    q, k, v = random_inputs(kind, dtype=dtype)
    output, _, _, expected, _ = checked_exact(q, k, v, None, alpha=1.5)
    assert output.dtype == dtype
    dense = attend(q, k, v, alpha=1.5)[0]
    torch.testing.assert_close(output, dense)
    assert (output - expected).abs().max() <= 1.01 * (dense - expected).abs().max() + torch.finfo(dtype).eps


@pytest.mark.parametrize("alpha", ALPHAS)
def test_grouped_heads_broadcast_masks_and_negative_scale(alpha):
    q, k, v = random_inputs("clustered", heads=4, kv_heads=2)
    start = random_mask(batch=1, heads=1, density=0.1)
    output, _, certificate, expected, _ = checked_exact(q, k, v, start, alpha=alpha, scale=-0.4, causal=True)
    torch.testing.assert_close(output, expected, rtol=0, atol=1e-9)
    assert certificate.block_mask.shape == (2, 4)


def test_more_keys_than_queries():
    q, k, v = random_inputs("smooth", n=100)
    output, *_, expected, _ = checked_exact(q[:, :, :30], k, v[..., :5], None, alpha=1.5)
    torch.testing.assert_close(output, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", ["clustered", "smooth"])
def test_gradients_of_exact_equal_dense_attention(kind):
    leaves = [x.requires_grad_() for x in random_inputs(kind, n=65)]
    upstream = torch.randn(leaves[0].shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    output = exact(attend, *leaves, random_mask(65, density=0.2), causal=True)[0]
    gradients = torch.autograd.grad(output, leaves, upstream)
    expected = torch.autograd.grad(oracle(*leaves, alpha=1.5, causal=True)[0], leaves, upstream)
    torch.testing.assert_close(gradients, expected, rtol=0, atol=1e-9)


def test_exact_visits_few_blocks_of_clustered_keys():
    q, k, v = random_inputs("clustered", n=1024, d=32, block=64)
    _, _, certificate, _, weights = checked_exact(q, k, v, None, alpha=1.5)
    blocks = (weights > 0).unflatten(-1, (-1, 64)).any(-1).unflatten(2, (-1, 64)).any(3)
    assert blocks.float().mean() <= certificate.share <= 2 * blocks.float().mean() < 0.3
    assert 1 <= certificate.rounds <= 6  # from 0 to 16 blocks, if each round doubles them


def test_exact_adds_nothing_to_a_sufficient_mask():
    q, k, v = random_inputs("clustered")
    _, _, first = exact(attend, q, k, v, random_mask(density=0.2))
    calls = []
    _, _, again = exact(lambda *x, **rules: calls.append(x) or attend(*x, **rules), q, k, v, first.block_mask)
    assert (again.rounds, len(calls), again.share) == (0, 1, first.share)
    assert again.block_mask is first.block_mask


def test_exact_softmax_visits_every_block():
    q, k, v = random_inputs("random", n=64)
    output, _, certificate = exact(attend, q, k, v, random_mask(64), alpha=1, causal=True)
    torch.testing.assert_close(output, oracle(q, k, v, alpha=1, causal=True)[0])
    assert (certificate.block_mask, certificate.share, certificate.rounds) == (None, 1, 0)


@pytest.mark.parametrize("backend", ["gather", "triton"])
def test_the_public_function(backend):
    require_interpreter(backend)
    q, k, v = random_inputs("clustered", n=97, batch=1, dtype=torch.float32)
    mask = random_mask(97, batch=1, density=0.2)
    plain = block_sparse_entmax_attention(q, k, v, mask, backend=backend)
    output, certificate = block_sparse_entmax_attention(q, k, v, mask, backend=backend, certify=True)
    assert torch.equal(output, plain)
    assert 0 < certificate.rows.float().mean() < 1
    full, full_certificate = block_sparse_entmax_attention(q, k, v, mask, backend=backend, exact=True)
    assert full_certificate.rows.all()
    assert certificate.share < full_certificate.share < 1
    dense = block_sparse_entmax_attention(q, k, v, backend=backend)
    # Another list of blocks changes the order of sums, so large scores and then weights differ by rounding.
    largest = q.norm(dim=-1).amax() * k.norm(dim=-1).amax() * q.shape[-1] ** -0.5
    rounding = {"rtol": 0, "atol": (2 * torch.finfo(q.dtype).eps * largest * v.abs().max()).item()}
    torch.testing.assert_close(full, dense, **rounding)
    certified = certificate.rows
    torch.testing.assert_close(output[certified], dense[certified], **rounding)
    assert (output[~certified] - dense[~certified]).abs().max() > 100 * rounding["atol"]
