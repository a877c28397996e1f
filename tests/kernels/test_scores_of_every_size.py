"""Scores from 1e-9 to 1e12: weights still sum to 1, and certified rows equal full attention in float64."""

import pytest
import torch
from dense import oracle, random_mask
from hypothesis import given, settings
from hypothesis import strategies as st
from interpreter import require_interpreter

from sparselib.kernels import BlockMask, block_sparse_entmax_attention
from sparselib.kernels.block_operator import attend
from sparselib.kernels.bounds import SCORE_RESOLUTION, score_error
from sparselib.kernels.reference import block_sparse_entmax_attention_reference

ALPHAS = [1, 1.25, 1.5, 2]
BACKENDS = ["gather", "triton"]
SIZES = [1e-9, 1e-3, 1e3, 1e5, 1e6, 1e7, 1e9, 1e12]
N, D = 48, 16


def random_inputs(kind, seed, size, dtype):
    """Return q, k and v of one head, with queries multiplied by `size`."""
    generator = torch.Generator().manual_seed(seed)
    q, k, v = (torch.randn(1, 1, N, D, generator=generator) for _ in range(3))
    if kind == "one long key":
        k[:, :, 20] *= 1e3
    elif kind == "nearly equal keys":
        k = 1 + k * 1e-4
    elif kind == "equal keys":
        k = torch.ones_like(k)
    return [x.to(dtype) for x in (q * size, k, v)]


def tolerance(q, k, v, weights, alpha):
    """Return the tolerated error of an output, ``[1, 1, N]``.

    It consists of the error bound of the scores, at most 1/64, and of the solver's error over N keys. Errors ds of the scores
    change the weights by ``w * (ds - sum(w * ds) / sum(w))`` with ``w = p ** (2 - alpha)``, in sum by at most twice the largest
    ds times the sum of w. The oracle has the same error if it computes in the same dtype.
    """
    dtype = torch.promote_types(q.dtype, torch.float32)
    eps = torch.finfo(dtype).eps
    reach = k.double().norm(dim=-1).amax(-1)[0]
    scores = score_error(q[0].double().norm(dim=-1) * D**-0.5, reach, D, dtype).clamp_max(SCORE_RESOLUTION)
    solver = 2 * (N + 64) * eps / (1 if alpha == 1 else alpha - 1)
    slope = torch.where(weights > 0, weights, 0).pow(2 - alpha).masked_fill(weights == 0, 0).sum(-1)
    rounding = 2 * torch.finfo(q.dtype).eps + N * eps
    return (2 * (scores + solver) * slope * (2 if dtype == torch.float64 else 1) + rounding) * v.double().abs().max()


@pytest.mark.parametrize(("backend", "examples"), [("gather", 300), ("triton", 12)])
def test_certified_rows_equal_full_attention_in_float64(backend, examples):
    require_interpreter(backend)
    certified_shares = []

    @given(
        exponent=st.floats(-9, 12),
        kind=st.sampled_from(["random", "one long key", "nearly equal keys", "equal keys"]),
        dtype=st.sampled_from([torch.float32, torch.bfloat16, torch.float64][: 3 if backend == "gather" else 2]),
        alpha=st.sampled_from(ALPHAS),
        density=st.sampled_from([None, 0.5, 0.9]),
        seed=st.integers(0, 99),
    )
    @settings(deadline=None, max_examples=examples, derandomize=True)
    def check(exponent, kind, dtype, alpha, density, seed):
        q, k, v = random_inputs(kind, seed, 10**exponent, dtype)
        mask = None if density is None else random_mask(N, batch=1, heads=1, density=density, seed=seed)
        output, certificate = block_sparse_entmax_attention(q, k, v, mask, alpha=alpha, backend=backend, certify=True)
        expected, weights = oracle(q, k, v, alpha=alpha)
        error = (output - expected).abs().amax(-1)
        assert (error <= tolerance(q, k, v, weights, alpha))[certificate.rows].all()
        certified_shares.append(certificate.rows.double().mean().item())

    check()
    assert 0.1 < sum(certified_shares) / len(certified_shares) < 0.9


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("size", SIZES)
def test_weights_sum_to_one(size, backend, alpha):
    require_interpreter(backend)
    for dtype, eps in ((torch.float32, 1e-5), (torch.bfloat16, 0.02)):
        q, k, v = random_inputs("random", 0, size, dtype)
        output = block_sparse_entmax_attention(q, k, torch.ones_like(v), alpha=alpha, backend=backend)
        torch.testing.assert_close(output, torch.ones_like(v), rtol=0, atol=eps)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("power", [-30, 0, 12, 18, 22, 24, 40, 60])
def test_gather_is_exact_where_scores_are(power, alpha):
    """Scores are integers times a power of two, so only the threshold can lose digits, here and in the reference."""
    generator = torch.Generator().manual_seed(0)
    q, k = (torch.randint(-2, 3, (1, 2, N, D), generator=generator).float() for _ in range(2))
    inputs = [q * 2.0**power, k, torch.randn(1, 2, N, D, generator=generator)]
    upstream = torch.randn(1, 2, N, D, generator=generator)
    mask = random_mask(N, batch=1)
    results = []
    for function, dtype in (
        (attend, torch.float32),
        (block_sparse_entmax_attention_reference, torch.float32),
        (block_sparse_entmax_attention_reference, torch.float64),
    ):
        leaves = [x.to(dtype).requires_grad_() for x in inputs]
        output, _ = function(*leaves, mask, alpha=alpha)
        results.append((output, *torch.autograd.grad(output, leaves, upstream.to(dtype))))
    for actual, plain, exact in zip(*results, strict=True):
        size = exact.abs().max()
        assert (actual - exact).abs().max() <= 1e-5 * size
        assert (plain - exact).abs().max() <= 1e-5 * size


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("density", [None, 0.5])
def test_no_row_is_certified_where_single_precision_has_no_digits(density, alpha):
    mask = None if density is None else random_mask(N, batch=1, heads=1, density=density)
    large, small = (random_inputs("random", 0, size, torch.float32) for size in (1e7, 1.0))
    assert not block_sparse_entmax_attention(*large, mask, alpha=alpha, certify=True)[1].rows.any()
    if mask is None:
        assert block_sparse_entmax_attention(*small, mask, alpha=alpha, certify=True)[1].rows.all()


def test_the_range_of_certified_scores_is_as_documented():
    q, k, v = (torch.zeros(1, 1, 2, 64) for _ in range(3))
    for size, certified in ((0.999, True), (1.001, False)):
        q[0, 0, 0, 0], k[0, 0, 1, 5] = size * 2.0**18 / (64 + 8), 1.0
        rows = block_sparse_entmax_attention(q, k, v, scale=1.0, certify=True)[1].rows
        assert rows.flatten().tolist() == [certified, True]
    reach = torch.ones(1)
    assert score_error(q[0].norm(dim=-1), reach, 64, torch.float32).max() == pytest.approx(1.001 * SCORE_RESOLUTION)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("size", [1e6, 1e9, 1e12])
def test_exact_attention_rejects_scores_that_it_cannot_certify(size, alpha):
    message = r"`q` and `k` must have scores .* below 1.09e\+04 for exact attention in torch.float32"
    with pytest.raises(ValueError, match=message):
        block_sparse_entmax_attention(*random_inputs("random", 0, size, torch.float32), alpha=alpha, exact=True)
    q, k, v = random_inputs("random", 0, size / 10, torch.float64)
    output, certificate = block_sparse_entmax_attention(q, k, v, alpha=alpha, exact=True)
    expected, weights = oracle(q, k, v, alpha=alpha)
    assert certificate.rows.all()
    assert ((output - expected).abs().amax(-1) <= tolerance(q, k, v, weights, alpha)).all()


def test_padding_may_be_of_any_size():
    q, k, v = random_inputs("random", 0, 1.0, torch.float32)
    q[:, :, 30:], k[:, :, 30:] = 1e9, 1e9
    certificate = block_sparse_entmax_attention(q, k, v, lengths=torch.tensor([30]), exact=True)[1]
    assert certificate.rows.all()


@pytest.mark.parametrize("options", [{}, {"certify": True}, {"exact": True}], ids=str)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("alpha", [1, 1.5])
@pytest.mark.parametrize(
    "shapes", [[(0, 2, 8), (0, 2, 8)], [(2, 2, 0), (2, 2, 0)], [(2, 2, 8), (2, 1, 0)], [(2, 2, 0), (2, 1, 8)]]
)
def test_empty_inputs(shapes, alpha, backend, options):
    """Without a batch, queries or keys, outputs are zeros of the right shape, rows are certified, and gradients exist."""
    require_interpreter(backend)
    q, k = (torch.ones(*shape, D, requires_grad=True) for shape in shapes)
    masks = [None]
    if shapes[0][2] and shapes[1][2]:
        masks.append(BlockMask.from_dense(torch.ones(1, 1, 2, 2, dtype=torch.bool), 4, 8))
    for mask in masks:
        result = block_sparse_entmax_attention(q, k, k, mask, alpha=alpha, backend=backend, **options)
        output = result[0] if options else result
        assert torch.equal(output, torch.zeros_like(q))
        output.sum().backward()
        assert q.grad.shape == q.shape
        if options:
            assert result[1].rows.shape == q.shape[:3]
            assert result[1].rows.all()
            assert result[1].block_mask is mask


def test_no_heads_are_rejected():
    with pytest.raises(ValueError, match=r"`k` must have a number of heads.*got shape \(1, 0, 8, 16\)"):
        block_sparse_entmax_attention(*(torch.ones(1, 0, 8, D) for _ in range(3)), exact=True)
