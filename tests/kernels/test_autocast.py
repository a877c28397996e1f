"""Under torch.autocast: the same dtype as PyTorch's own attention, and arithmetic that autocast does not change."""

import pytest
import torch
from interpreter import require_interpreter
from torch.nn.functional import scaled_dot_product_attention

from sparselib.kernels import BlockMask, block_sparse_entmax_attention
from sparselib.kernels.reference import block_sparse_entmax_attention_reference

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
HALF = [torch.bfloat16, torch.float16]


def random_inputs(*dtypes, device="cpu"):
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(2, 2, 70, 16, generator=generator).to(device, x).requires_grad_() for x in dtypes]


def random_mask(device="cpu"):
    dense = torch.rand(1, 2, 5, 5, generator=torch.Generator().manual_seed(0)) < 0.6
    return BlockMask.from_dense(dense, 16, 70).to(device)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("alpha", [1, 1.25, 1.5, 2])
@pytest.mark.parametrize("inside", [True, False])
def test_output_and_gradients_equal_half_precision(inside, alpha, dtype, device):
    """Float32 inputs give bitwise the results of half precision inputs, with the backward pass inside or outside autocast."""
    leaves = random_inputs(*[torch.float32] * 3, device=device)
    mask = random_mask(device)
    half = [x.detach().to(dtype).requires_grad_() for x in leaves]
    plain = block_sparse_entmax_attention(*half, mask, alpha=alpha)
    upstream = torch.ones_like(plain).cumsum(-1)
    expected = [x.float() for x in torch.autograd.grad(plain, half, upstream)]
    with torch.autocast(device, dtype=dtype):
        output = block_sparse_entmax_attention(*leaves, mask, alpha=alpha)
        if inside:
            gradients = torch.autograd.grad(output, leaves, upstream)
    if not inside:
        gradients = torch.autograd.grad(output, leaves, upstream)
    assert output.dtype == dtype
    assert all(x.dtype == torch.float32 for x in gradients)
    torch.testing.assert_close((output, *gradients), (plain, *expected), rtol=0, atol=0)


@pytest.mark.parametrize("dtype", HALF)
def test_error_is_at_most_twice_the_references(dtype):
    leaves, mask = random_inputs(*[torch.float32] * 3), random_mask()
    exact = block_sparse_entmax_attention_reference(*leaves, mask)[0]
    plain = block_sparse_entmax_attention_reference(*(x.to(dtype) for x in leaves), mask)[0]
    with torch.autocast("cpu", dtype=dtype):
        output = block_sparse_entmax_attention(*leaves, mask)
    assert (output - exact).abs().max() <= 2 * (plain - exact).abs().max()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "dtypes",
    [
        (torch.float32, torch.bfloat16, torch.float32),
        (torch.bfloat16, torch.float32, torch.float16),
        (torch.float64, torch.float64, torch.float64),
    ],
    ids=str,
)
def test_output_dtype_equals_pytorchs_attention(dtypes, device):
    inputs = random_inputs(*dtypes, device=device)
    with torch.autocast(device, dtype=torch.bfloat16):
        output = block_sparse_entmax_attention(*inputs, backend="gather" if torch.float64 in dtypes else None)
        assert output.dtype == scaled_dot_product_attention(*inputs).dtype


def test_float64_is_unchanged():
    inputs, mask = random_inputs(*[torch.float64] * 3), random_mask()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output = block_sparse_entmax_attention(*inputs, mask)
    assert torch.equal(output, block_sparse_entmax_attention(*inputs, mask))


def test_float64_with_another_dtype_is_rejected():
    message = r"`k` must have the dtype of `q` \(torch\.float64\), got torch\.bfloat16"
    with torch.autocast("cpu", dtype=torch.bfloat16), pytest.raises(ValueError, match=message):
        block_sparse_entmax_attention(*random_inputs(torch.float64, torch.float32, torch.float64))


@pytest.mark.parametrize("options", [{"certify": True}, {"exact": True}], ids=str)
def test_certificates_equal_half_precision(options):
    inputs, mask = random_inputs(*[torch.float32] * 3), random_mask()
    plain, expected = block_sparse_entmax_attention(*(x.bfloat16() for x in inputs), mask, **options)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output, certificate = block_sparse_entmax_attention(*inputs, mask, **options)
    assert torch.equal(output, plain)
    assert torch.equal(certificate.rows, expected.rows)


def test_the_triton_backend():
    require_interpreter()
    inputs, mask = random_inputs(*[torch.float32] * 3), random_mask()
    plain = block_sparse_entmax_attention(*(x.half() for x in inputs), mask, backend="triton")
    with torch.autocast("cpu", dtype=torch.float16):
        output = block_sparse_entmax_attention(*inputs, mask, backend="triton")
        output.sum().backward()
    assert torch.equal(output, plain)
    assert inputs[0].grad.isfinite().all()


def test_compiled():
    inputs, mask = random_inputs(*[torch.float32] * 3), random_mask()

    def function(q, k, v):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return block_sparse_entmax_attention(q @ q.new_ones(16, 16), k, v, mask)

    output = torch.compile(function, fullgraph=True, backend="aot_eager")(*inputs)
    assert torch.equal(output, function(*inputs))


@pytest.mark.parametrize("dtype", HALF)
def test_rules_are_computed_as_without_autocast(dtype):
    """Token-level rules have an implementation of their own."""
    leaves, mask = random_inputs(*[torch.float32] * 3), random_mask()
    half = [x.detach().to(dtype).requires_grad_() for x in leaves]

    def attend(*tensors):
        return block_sparse_entmax_attention(
            *tensors, mask, score_mod=lambda score, b, h, i, j: score - 0.1 * (i - j).abs()
        )

    expected = attend(*half)
    with torch.autocast("cpu", dtype=dtype):
        output = attend(*leaves)
        gradients = torch.autograd.grad(output.float().square().sum(), leaves)
    expected_gradients = torch.autograd.grad(expected.float().square().sum(), half)
    torch.testing.assert_close(output, expected, rtol=0, atol=0)
    torch.testing.assert_close(gradients, tuple(x.float() for x in expected_gradients), rtol=0, atol=0)
