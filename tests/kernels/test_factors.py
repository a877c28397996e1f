"""A scale that is learned gets a gradient in every function of the kernels, and numbers may have other types."""

import numpy as np
import pytest
import torch
from interpreter import require_interpreter

from sparselib.kernels import (
    BlockMask,
    block_sparse_entmax_attention,
    block_sparse_entmax_decode,
)
from sparselib.kernels.reference import block_sparse_entmax_attention_reference

HEADS = 4


def inputs(dtype=torch.float64, kv_heads=2, n=40):
    generator = torch.Generator().manual_seed(0)
    shapes = [(2, HEADS, n, 8), (2, kv_heads, n, 8), (2, kv_heads, n, 8)]
    return [torch.randn(shape, generator=generator, dtype=dtype) for shape in shapes]


@pytest.mark.parametrize("alpha", [1, 1.25, 1.5, 2])
@pytest.mark.parametrize("shape", [(), (1,), (HEADS,)])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_scales_gradient_is_the_references(shape, alpha, sign):
    mask = BlockMask.from_dense(torch.eye(3, dtype=torch.bool).view(1, 1, 3, 3), 16, 40)
    gradients = []
    for function in (
        block_sparse_entmax_attention,
        lambda *x, **y: block_sparse_entmax_attention_reference(*x, **y)[0],
    ):
        q, k, v = inputs()
        scale = (sign * torch.linspace(0.5, 1.5, HEADS, dtype=torch.float64)[: max(1, sum(shape))]).reshape(shape)
        scale.requires_grad_()
        broadcast = scale if function is block_sparse_entmax_attention else scale.reshape(-1, 1, 1)
        output = function(q, k, v, mask, alpha=alpha, scale=broadcast, causal=True)
        gradients.append(torch.autograd.grad((output * v.repeat_interleave(2, 1)).sum(), scale)[0])
    assert gradients[0].abs().min() > 0
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_scale_per_head_works_in_every_function(dtype):
    q, k, v = inputs(dtype)
    scale = torch.linspace(0.2, 0.8, HEADS)
    expected = [block_sparse_entmax_attention(q, k, v, scale=float(s))[:, i] for i, s in enumerate(scale)]
    tolerance = {"rtol": 2e-2, "atol": 2e-2} if dtype == torch.bfloat16 else {}
    output = block_sparse_entmax_attention(q, k, v, scale=scale)
    assert output.dtype == dtype
    torch.testing.assert_close(output, torch.stack(expected, 1), **tolerance)
    decoded = block_sparse_entmax_decode(q[:, :, -1:], k, v, scale=scale)
    torch.testing.assert_close(decoded, output[:, :, -1:], **tolerance)
    exact, certificate = block_sparse_entmax_attention(q.float(), k.float(), v.float(), scale=scale, exact=True)
    assert certificate.rows.all()
    torch.testing.assert_close(exact, output.float(), **tolerance)


@pytest.mark.parametrize("alpha", [np.float32(1.5), torch.tensor(1.5), torch.tensor([1.5])])
def test_numbers_of_other_types_are_numbers(alpha):
    q, k, v = inputs()
    torch.testing.assert_close(
        block_sparse_entmax_attention(q, k, v, alpha=alpha, scale=np.float64(0.3)),
        block_sparse_entmax_attention(q, k, v, scale=0.3),
    )


def test_a_scale_of_another_shape_is_refused():
    with pytest.raises(ValueError, match=r"`scale` must be a number, or a tensor of shape \(\) or \(4,\).*got \(3,\)"):
        block_sparse_entmax_attention(*inputs(), scale=torch.ones(3))


@pytest.mark.parametrize("size", [np.int64(16), (np.int32(16), 16)])
def test_block_sizes_may_be_integers_of_numpy(size):
    mask = BlockMask.from_dense(torch.ones(1, 1, 3, 3, dtype=torch.bool), size, np.int64(40))
    assert mask.block_size == (16, 16)
    assert all(type(x) is int for x in (*mask.block_size, *mask.length))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_a_mask_keeps_its_indices_when_it_is_moved_to_a_dtype(dtype):
    dense = torch.zeros(1, 1, 1, 300, dtype=torch.bool)
    dense[..., 257] = True
    mask = BlockMask.from_dense(dense, (1, 16), (1, 4800)).to(dtype)
    assert mask.kv_indices.dtype == torch.int32
    assert torch.equal(mask.to_dense(), dense)


@pytest.mark.parametrize("excess", [0.01, 1e-3, 1e-4, 1e-6, 1e-8, 1e-10, 1e-12])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_alphas_near_one_are_as_accurate_as_others(dtype, excess):
    """Weights sum to 1, results are those of float64, and tend to softmax."""
    results = {}
    for name, kind, alpha in (
        ("single", dtype, 1 + excess),
        ("double", torch.float64, 1 + excess),
        ("soft", dtype, 1.0),
    ):
        leaves = [x.to(kind).requires_grad_() for x in inputs(torch.float64)]
        output = block_sparse_entmax_attention(*leaves, alpha=alpha, causal=True)
        results[name] = [output, *torch.autograd.grad((output * leaves[2].repeat_interleave(2, 1)).sum(), leaves)]
    for single, double, soft in zip(*results.values(), strict=True):
        torch.testing.assert_close(single.double(), double, rtol=1e-5, atol=2e-5)
        torch.testing.assert_close(single, soft, rtol=0, atol=2e-5 + 30 * excess)
    q, k, v = (x.to(dtype) for x in inputs(torch.float64))
    ones = block_sparse_entmax_attention(q, k, torch.ones_like(v), alpha=1 + excess)
    torch.testing.assert_close(ones, torch.ones_like(ones), rtol=0, atol=1e-5)
    decoded = block_sparse_entmax_decode(q[:, :, -1:], k, v, alpha=1 + excess)
    torch.testing.assert_close(decoded.double(), results["double"][0][:, :, -1:], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("function", [block_sparse_entmax_attention, block_sparse_entmax_decode])
def test_triton_refuses_alphas_near_one(function):
    require_interpreter()
    with pytest.raises(ValueError, match=r"`alpha` must be 1 or at least 1\.01 for the backend 'triton'"):
        function(*inputs(torch.float32), alpha=1.001, backend="triton")
