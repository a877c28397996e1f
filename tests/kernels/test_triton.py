"""The Triton kernels against the reference: interpreted on a CPU, and in all combinations on a GPU."""

from itertools import product

import pytest
import torch

from sparselib.kernels import BlockMask
from sparselib.kernels.block_operator import attend
from sparselib.kernels.reference import (
    block_sparse_entmax_attention_reference,
    entmax_with_threshold,
    visible,
)

pytest.importorskip("triton")

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
ALPHAS = [1, 1.25, 1.5, 2]
LENGTHS = [1, 63, 64, 65, 127, 129, 300]
gpu = pytest.mark.gpu
needs_gpu = pytest.mark.skipif(
    DEVICE == "cpu", reason="all combinations take too long in the interpreter: no CUDA device"
)


def random_inputs(n, d=16, *, heads=2, kv_heads=None, batch=1, dtype=torch.float32):
    generator = torch.Generator().manual_seed(n + d)
    shapes = [(batch, heads, n, d), *[(batch, kv_heads or heads, n, d)] * 2]
    return [torch.randn(x, generator=generator).mul_(1.5).to(DEVICE, dtype) for x in shapes]


def random_mask(n, block, *, batch=1, heads=2, density=0.4):
    """Return random blocks per head, including one row without visits and one that visits all blocks."""
    q_block, k_block = (block, block) if isinstance(block, int) else block
    shape = (batch, heads, -(-n // q_block), -(-n // k_block))
    dense = torch.rand(shape, generator=torch.Generator().manual_seed(n)) < density
    dense[0, 0, 0] = False
    dense[-1, -1, -1] = True
    return BlockMask.from_dense(dense, (q_block, k_block), n).to(DEVICE)


def results(function, inputs, upstream, mask, **rules):
    """Return output, tau, and the gradients of q, k and v."""
    leaves = [x.detach().requires_grad_() for x in inputs]
    output, tau = function(*leaves, mask, **rules)
    return output.detach(), tau, *torch.autograd.grad(output, leaves, upstream.to(output.dtype))


def check_errors(inputs, mask=None, **rules):
    """Check that all errors are at most twice those of plain PyTorch in the same dtype, plus a few roundings of the terms."""
    q, _, v = inputs
    shape = (*q.shape[:3], v.shape[-1])
    upstream = torch.randn(shape, generator=torch.Generator().manual_seed(1)).to(DEVICE, q.dtype)
    actual = results(attend, inputs, upstream, mask, backend="triton", **rules)
    reference = block_sparse_entmax_attention_reference
    plain = results(reference, inputs, upstream, mask, **rules)
    doubles = [x.double() for x in inputs]
    exact = results(reference, doubles, upstream.double(), mask, **rules)
    terms = rounded_terms(*doubles, upstream.double(), mask, **rules)
    names = ("output", "tau", "dq", "dk", "dv")
    for name, triton_result, pytorch_result, truth in zip(names, actual, plain, exact, strict=True):
        assert triton_result.dtype == (torch.float32 if name == "tau" else q.dtype)
        finite = truth.isfinite()
        assert torch.equal(triton_result[~finite].double(), truth[~finite]), name
        error, allowed = ((x[finite] - truth[finite]).abs() for x in (triton_result, pytorch_result))
        if finite.any():
            size = truth[finite].abs().max()
            if (
                name == "tau"
            ):  # A tau near 0 is still a difference of scores up to 1, so it has no more digits than these.
                size = size.clamp_min(1)
            rounding = 8 * torch.finfo(triton_result.dtype).eps * size
            if name in terms:
                rounding += torch.finfo(torch.float32).eps * terms[name].max()
            assert error.max() <= 2 * allowed.max() + rounding, name
    return actual


def rounded_terms(q, k, v, upstream, mask=None, *, alpha=1.5, scale=None, causal=False, lengths=None):
    """Return the sums of absolute terms that float32 rounds on the way to each result, because the terms may cancel.

    A score is a sum of products, and its rounding error changes a weight by ``w = p ** (2 - alpha)`` times the error. Its
    gradient is ``w * (dP - delta)``, where dP is another sum of products and delta a mean of these. With one key, only rounding
    is left.
    """
    group = q.shape[1] // k.shape[1]
    keys, values = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    scores = q @ keys.mT * scale
    p, _ = entmax_with_threshold(scores, visible(scores, mask, causal, lengths), alpha)
    w = torch.where(p > 0, p ** (2 - alpha), 0.0)
    weights = w * (q.abs() @ keys.abs().mT) * abs(scale)
    gradients = w * (upstream.abs() @ values.abs().mT) * abs(scale)

    def sum_over_queries(terms, rows):
        return (terms.mT @ rows.abs()).unflatten(1, (k.shape[1], group)).sum(2)

    return {
        "output": weights @ values.abs(),
        "dq": gradients @ keys.abs(),
        "dk": sum_over_queries(gradients, q),
        "dv": sum_over_queries(weights, upstream),
    }


@pytest.mark.parametrize(
    ("n", "d", "alpha", "block"),
    [
        (1, 16, 1.5, 64),
        (63, 64, 1.5, 64),
        (64, 32, 2, 16),
        (65, 16, 1.25, 64),
        (127, 128, 1, 32),
        (23, 16, 1.5, 4),
        (129, 128, 1.5, 64),
        (129, 64, 2, 128),
        (70, 32, 1.25, 20),
        (300, 64, 1.5, 128),
        (300, 16, 1, 64),
    ],
)
def test_lengths_dimensions_and_blocks(n, d, alpha, block):
    check_errors(random_inputs(n, d), random_mask(n, block), alpha=alpha)


#: A GPU compiles kernels for seconds in each setting, so settings rotate: every third one runs with given other parameters, and
#: each with any two of them.
SETTINGS = list(product((None, 16, 64), (False, True)))
DIMENSIONS = (16, 32, 64, 128)
DTYPES = (torch.float32, torch.float16, torch.bfloat16)


def settings_of(d, alpha, dtype):
    """Return a third of the block sizes with and without causality."""
    first = DIMENSIONS.index(d) + ALPHAS.index(alpha) + DTYPES.index(dtype)
    return SETTINGS[first % 3 :: 3]


@pytest.mark.parametrize("fixed", [("d", "alpha"), ("d", "dtype"), ("alpha", "dtype")])
def test_each_setting_runs_with_any_two_parameters(fixed):
    values = {"d": DIMENSIONS, "alpha": ALPHAS, "dtype": DTYPES}
    for two in product(*(values[name] for name in fixed)):
        (other,) = set(values) - set(fixed)
        run = [settings_of(**dict(zip(fixed, two, strict=True)), **{other: value}) for value in values[other]]
        assert {setting for some in run for setting in some} == set(SETTINGS)


@gpu
@needs_gpu
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n", "d", "alpha"), list(product(LENGTHS, DIMENSIONS, ALPHAS)))
def test_all_lengths_and_dimensions(n, d, alpha, dtype):
    for block, causal in settings_of(d, alpha, dtype):
        check_errors(random_inputs(n, d, dtype=dtype), block and random_mask(n, block), alpha=alpha, causal=causal)


BLOCKS = [1, 2, 4, 8, 16, 20, 32, 64, 96, 128, 256, (16, 64), (128, 32), (3, 20)]


@gpu
@needs_gpu
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("block", BLOCKS)
def test_all_blocks(block, alpha):
    lengths = torch.tensor([300, 97], device=DEVICE)
    kinds = ((torch.float32, 40), (torch.float16, 64), (torch.bfloat16, 256))
    dtype, d = kinds[(BLOCKS.index(block) + ALPHAS.index(alpha)) % 3]  # each block with each of them
    inputs = random_inputs(300, d, batch=2, heads=4, kv_heads=2, dtype=dtype)
    check_errors(inputs, random_mask(300, block, batch=2, heads=4), alpha=alpha)
    check_errors(inputs, random_mask(300, block, heads=1), alpha=alpha, causal=True, lengths=lengths)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_dense_and_causal(alpha):
    check_errors(random_inputs(130, heads=1), alpha=alpha, causal=True)


@pytest.mark.parametrize("alpha", [1, 1.5])
@pytest.mark.parametrize("block", [None, 16, (8, 40)])
def test_lengths_of_a_batch(block, alpha):
    mask = block and random_mask(50, block, heads=1)
    lengths = torch.tensor([50, 33, 0], device=DEVICE)
    output, tau, *_ = check_errors(random_inputs(50, batch=3, heads=1), mask, alpha=alpha, causal=True, lengths=lengths)
    padded = (torch.arange(50, device=DEVICE) >= lengths[:, None, None]).expand(tau.shape)
    assert (output[padded] == 0).all()
    assert tau[padded].isposinf().all()


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("causal", [False, True])
def test_padded_rows_in_an_unmasked_tile(causal, alpha):
    """A tile whose real rows may attend to all its keys is not masked; its padded rows must still be 0."""
    lengths = torch.tensor([64, 33], device=DEVICE)
    mask = BlockMask.from_dense(torch.ones(1, 1, 2, 2, dtype=torch.bool), 32, 64).to(DEVICE)
    output, *_ = check_errors(random_inputs(64, batch=2, heads=1), mask, alpha=alpha, causal=causal, lengths=lengths)
    assert (output[1, :, 33:] == 0).all()


@pytest.mark.parametrize("alpha", [1, 1.5])
@pytest.mark.parametrize("kv_heads", [1, 2])
def test_grouped_heads(kv_heads, alpha):
    check_errors(random_inputs(33, heads=4, kv_heads=kv_heads), random_mask(33, 32, heads=4), alpha=alpha)


def test_masks_of_each_batch_entry():
    check_errors(random_inputs(33, batch=2), random_mask(33, 8, batch=2))


@pytest.mark.parametrize("block", [1, (2, 7), (32, 16), (16, 64), (192, 96)])
def test_block_sizes(block):
    n = {1: 12, (2, 7): 23}.get(block, 97)
    check_errors(random_inputs(n, heads=1), random_mask(n, block, heads=1), causal=block == (2, 7))


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision(dtype, alpha):
    check_errors(random_inputs(129, 32, heads=1, dtype=dtype), random_mask(129, 64, heads=1, density=0.8), alpha=alpha)


def test_odd_dimensions_and_more_keys_than_queries():
    q, k, v = random_inputs(60, 40)
    dense = torch.rand(1, 2, 3, 8, generator=torch.Generator().manual_seed(0)) < 0.5
    check_errors([q[:, :, :20], k, v[..., :5]], BlockMask.from_dense(dense, 8, (20, 60)).to(DEVICE), scale=-0.3)
    check_errors([x[..., :1] for x in (q, k, v)], None)


@pytest.mark.parametrize("alpha", [1, 1.5])
@pytest.mark.parametrize("scale", [0.0, -0.5])
def test_scales_that_are_not_positive(scale, alpha):
    check_errors(random_inputs(40, heads=1), scale=scale, causal=True, alpha=alpha)


def test_non_contiguous_inputs():
    transposed = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in random_inputs(33)]
    strided = [x.repeat_interleave(2, -1)[..., ::2] for x in random_inputs(33)]
    for inputs in (transposed, strided):
        assert not inputs[0].is_contiguous()
        check_errors(inputs, random_mask(33, 16))


def test_full_blocks_are_visited():
    mask = random_mask(64, 16)
    half = mask.to_dense() & (torch.arange(4, device=DEVICE) < 2)
    first, second = (BlockMask.from_dense(x, 16, 64) for x in (half, mask.to_dense() & ~half))
    split = BlockMask(first.kv_num_blocks, first.kv_indices, 16, 64, second.kv_num_blocks, second.kv_indices)
    for from_split, from_whole in zip(
        check_errors(random_inputs(64), split), check_errors(random_inputs(64), mask), strict=True
    ):
        assert torch.equal(from_split, from_whole)


@pytest.mark.parametrize("scores", ["equal", "one huge key", "ties"])
@pytest.mark.parametrize("alpha", [1.25, 1.5, 2])
def test_adversarial_scores(alpha, scores):
    q, k, v = random_inputs(35, heads=1)
    if scores == "equal":
        k = torch.zeros_like(k)
    elif scores == "ties":
        k = k[:, :, :5].repeat(1, 1, 7, 1)
    else:
        k[:, :, 3] *= 100
    check_errors([q, k, v], random_mask(35, 16, heads=1, density=0.7), alpha=alpha)


@pytest.mark.parametrize("alpha", [1.25, 1.5, 2])
def test_one_score_above_many_at_the_edge(alpha):
    """Keys enter the support one after the other, the worst case for steps toward the threshold."""
    q, k, v = (torch.zeros(1, 1, n, 16, device=DEVICE) for n in (3, 600, 600))
    edge = 0.05 * torch.rand(600, generator=torch.Generator().manual_seed(0)).pow(2)
    edge[7] = 1
    q[..., 0], k[..., 0] = 1, edge.to(DEVICE) / (alpha - 1)
    v[..., 7, 1], v[..., 8:, 2] = 1, 1
    check_errors([q, k, v], alpha=alpha, scale=1.0)
    # Half precision stops earlier, but the weights of the single key and of the others are still correct to its rounding.
    half = [x.half() for x in (q, k, v)]
    exact = block_sparse_entmax_attention_reference(*(x.double() for x in half), alpha=alpha, scale=1.0)[0]
    output = attend(*half, alpha=alpha, scale=1.0, backend="triton")[0]
    torch.testing.assert_close(output.double(), exact, rtol=2 * torch.finfo(torch.half).eps, atol=0)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("poisoned", [0, 1, 2])
def test_nan_reaches_all_rows_that_attend_to_it(poisoned, alpha):
    inputs = random_inputs(40, heads=1)
    inputs[poisoned][:, :, 20, 3] = float("nan")
    output, _ = attend(*inputs, alpha=alpha, causal=True, backend="triton")
    touched = output.isnan().any(-1).squeeze()
    row = torch.arange(40, device=DEVICE)
    if (
        poisoned == 2
    ):  # 0 * NaN is NaN, so a value also reaches rows that attend to its neighbours, as in the reference.
        assert touched[row >= 20].all()
    else:
        assert torch.equal(touched, row == 20 if poisoned == 0 else row >= 20)


def test_repeated_calls_are_bitwise_equal():
    inputs, mask = random_inputs(65, kv_heads=1), random_mask(65, 32)
    runs = [results(attend, inputs, inputs[0], mask, backend="triton") for _ in range(2)]
    assert all(torch.equal(x, y) for x, y in zip(*runs, strict=True))


def test_blocks_without_weights_are_not_alive():
    from sparselib.kernels.block_operator import _operator

    q = torch.zeros(1, 1, 32, 16, device=DEVICE)
    q[..., 0] = 1
    k = torch.zeros_like(q)
    k[..., :16, 0], k[..., 16:, 0] = 20, -20
    mask = BlockMask.from_dense(torch.ones(1, 1, 2, 2, dtype=torch.bool), 16, 32).to(DEVICE)
    lists = (mask.kv_num_blocks, mask.kv_indices)
    alive = _operator(q, k, k, *lists, None, None, None, None, 16, 16, 1.5, 1.0, False, "triton", False, True)[2]
    assert alive.tolist() == [[[[1, 0], [1, 0]]]]
