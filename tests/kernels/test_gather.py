"""The gather backend against the reference, PyTorch and the entmax package, and rejected input."""

from functools import partial

import entmax as package
import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from sparselib.kernels import BlockMask, block_sparse_entmax_attention
from sparselib.kernels.block_operator import attend
from sparselib.kernels.reference import block_sparse_entmax_attention_reference

ALPHAS = [1, 1.25, 1.5, 2]
gather_attention = partial(attend, backend="gather")


def random_inputs(n, d=16, *, heads=2, kv_heads=None, batch=2, dtype=torch.float64):
    generator = torch.Generator().manual_seed(n + d)
    shapes = [(batch, heads, n, d), *[(batch, kv_heads or heads, n, d)] * 2]
    return [torch.randn(x, generator=generator, dtype=torch.float64).mul_(1.5).to(dtype) for x in shapes]


def random_mask(n, *, block=16, batch=2, heads=2, density=0.4):
    """Return random blocks per head, including one row without visits and one that visits all blocks."""
    blocks = -(-n // block)
    dense = torch.rand(batch, heads, blocks, blocks, generator=torch.Generator().manual_seed(n)) < density
    dense[0, 0, 0] = False
    dense[-1, -1, -1] = True
    return BlockMask.from_dense(dense, block, n)


def check_against_reference(inputs, mask=None, **rules):
    """Check that output, tau and gradients equal the reference."""
    leaves = [x.detach().requires_grad_() for x in inputs]
    result = gather_attention(*leaves, mask, **rules)
    expected = block_sparse_entmax_attention_reference(*leaves, mask, **rules)
    upstream = torch.randn(result[0].shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    gradients = [torch.autograd.grad(output, leaves, upstream) for output, _ in (result, expected)]
    torch.testing.assert_close((*result, *gradients[0]), (*expected, *gradients[1]), rtol=1e-9, atol=1e-10)
    return result


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("n", [1, 63, 64, 65, 127, 129, 300])
def test_lengths_of_sequences(n, alpha):
    check_against_reference(random_inputs(n), random_mask(n), alpha=alpha)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("d", [32, 64, 128])
def test_head_dimensions(d, alpha):
    check_against_reference(random_inputs(65, d), random_mask(65), alpha=alpha, scale=0.3)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("lengths", [None, torch.tensor([70, 0]), torch.tensor([65, 129])])
def test_token_masks(lengths, causal, masked, alpha):
    mask = random_mask(129) if masked else None
    output, tau = check_against_reference(random_inputs(129), mask, alpha=alpha, causal=causal, lengths=lengths)
    if lengths is not None:
        padded = torch.arange(129) >= lengths[:, None, None]
        assert (output[padded.expand(tau.shape)] == 0).all()
        assert tau[padded.expand(tau.shape)].isposinf().all()


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("kv_heads", [1, 2])
def test_grouped_heads_and_broadcast_masks(kv_heads, alpha):
    check_against_reference(
        random_inputs(65, heads=4, kv_heads=kv_heads), random_mask(65, batch=1, heads=4), alpha=alpha, causal=True
    )
    check_against_reference(
        random_inputs(65, heads=4, kv_heads=kv_heads), random_mask(65, heads=1, density=0.6), alpha=alpha
    )


def test_other_block_sizes_and_more_keys_than_queries():
    q, k, v = random_inputs(100)
    dense = torch.rand(2, 2, 4, 13, generator=torch.Generator().manual_seed(0)) < 0.5
    check_against_reference([q[:, :, :30], k, v[..., :5]], BlockMask.from_dense(dense, (8, 8), (30, 100)))
    check_against_reference([q[:, :, :30], k, v], None)


def test_full_blocks_are_visited():
    inputs, mask = random_inputs(64), random_mask(64)
    half = mask.to_dense() & (torch.arange(4) < 2)
    first, second = (BlockMask.from_dense(x, 16, 64) for x in (half, mask.to_dense() & ~half))
    split = BlockMask(first.kv_num_blocks, first.kv_indices, 16, 64, second.kv_num_blocks, second.kv_indices)
    torch.testing.assert_close(check_against_reference(inputs, split), check_against_reference(inputs, mask))


def test_non_contiguous_inputs():
    inputs = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in random_inputs(65)]
    assert not inputs[0].is_contiguous()
    check_against_reference(inputs, random_mask(65))


@pytest.mark.parametrize("scores", ["equal", "one huge key", "ties"])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_adversarial_scores(alpha, scores):
    q, k, v = random_inputs(65)
    if scores == "equal":
        k = torch.zeros_like(k)
    elif scores == "ties":
        k = k[:, :, :5].repeat(1, 1, 13, 1)
    else:
        k[:, :, 3] *= 1000
    check_against_reference([q, k, v], alpha=alpha)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_gradcheck(alpha):
    inputs = [x.requires_grad_() for x in random_inputs(6, 3, batch=1)]
    mask = random_mask(6, block=2, batch=1, density=0.6)
    assert torch.autograd.gradcheck(lambda *x: gather_attention(*x, mask, alpha=alpha)[0], inputs)


@pytest.mark.parametrize("causal", [False, True])
def test_softmax_equals_pytorch(causal):
    q, k, v = random_inputs(129)
    output = block_sparse_entmax_attention(q, k, v, alpha=1, causal=causal)
    torch.testing.assert_close(output, scaled_dot_product_attention(q, k, v, is_causal=causal))


@pytest.mark.parametrize(("alpha", "normalizer"), [(1.5, package.entmax15), (2, package.sparsemax)])
def test_dense_equals_the_entmax_package(alpha, normalizer):
    q, k, v = random_inputs(129)
    expected = normalizer(q @ k.mT / 4, dim=-1) @ v
    torch.testing.assert_close(block_sparse_entmax_attention(q, k, v, alpha=alpha), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_error_is_at_most_twice_pytorchs(alpha, dtype):
    """Compare the kernel and the reference in the same dtype with the reference in float64."""
    inputs, mask = random_inputs(129, dtype=dtype), random_mask(129)
    exact = block_sparse_entmax_attention_reference(*(x.double() for x in inputs), mask, alpha=alpha)[0]
    plain = block_sparse_entmax_attention_reference(*inputs, mask, alpha=alpha)[0]
    output = block_sparse_entmax_attention(*inputs, mask, alpha=alpha)
    assert output.dtype == dtype
    assert (output - exact).abs().max() <= 2 * (plain - exact).abs().max()


def test_gradients_of_half_precision_have_its_dtype():
    inputs = [x.requires_grad_() for x in random_inputs(65, dtype=torch.bfloat16)]
    gradients = torch.autograd.grad(block_sparse_entmax_attention(*inputs, random_mask(65)).sum(), inputs)
    assert all(g.dtype == torch.bfloat16 and g.isfinite().all() for g in gradients)


def with_value(value):
    """Return a change that sets the second row of v."""

    def change(q, k, v):
        return q, k, v.index_fill(2, torch.tensor([1]), value)

    return change


@pytest.mark.parametrize(
    ("change", "rules", "message"),
    [
        (lambda q, k, v: (q[0], k, v), {}, r"`q` must have shape \(B, H, n, D\), got \(2, 65, 16\)"),
        (
            lambda q, k, v: (q[:1], k, v),
            {},
            r"`k` must match `q` of shape \(1, 2, 65, 16\).*got shape \(2, 2, 65, 16\)",
        ),
        (lambda q, k, v: (q[..., :8], k, v), {}, "`k` must match `q`.*head dimension"),
        (lambda q, k, v: (q[:, :1], k, v), {}, "`k` must have a number of heads that divides the 1 heads"),
        (lambda q, k, v: (q, k, v[:, :, :5]), {}, "`v` must match `k`.*length"),
        (lambda q, k, v: (q, k.float(), v), {}, r"`k` must have the dtype of `q` \(torch.float64\), got torch.float32"),
        (lambda q, k, v: (q.long(), k.long(), v.long()), {}, "`q` must be float16, .* got torch.int64"),
        (lambda q, k, v: (q, k, v.to("meta")), {}, r"`v` must be on the device of `q` \(cpu\), got meta"),
        (lambda q, k, v: (q.repeat(1, 1, 1, 17), k.repeat(1, 1, 1, 17), v), {}, "`q` must have a head dimension.*272"),
        (with_value(float("nan")), {}, "`v` must be finite"),
        (with_value(float("inf")), {}, "`v` must be finite"),
        (None, {"alpha": 0.9}, "`alpha` must be from 1.*got 0.9"),
        (None, {"alpha": float("nan")}, "`alpha` must be from 1.*got nan"),
        (None, {"scale": float("inf")}, "`scale` must be finite, got inf"),
        (None, {"block_mask": random_mask(64)}, r"`block_mask` must have the lengths.*\(65, 65\), got \(64, 64\)"),
        (
            None,
            {"block_mask": random_mask(65, heads=3)},
            r"`block_mask` must have the batch size and heads.*got \(2, 3\)",
        ),
        (None, {"block_mask": random_mask(65).to_dense()}, "`block_mask` must be a BlockMask, got .*Tensor"),
        (lambda q, k, v: (q[:, :, :9], k, v), {"causal": True}, "`causal` and `lengths` must .*9 queries and 65 keys"),
        (None, {"lengths": torch.tensor([66, 1])}, r"`lengths` must be from 0 to 65.*got \[66, 1\]"),
        (None, {"lengths": torch.tensor([-1, 1])}, "`lengths` must be from 0 to 65"),
        (None, {"lengths": torch.tensor([1])}, r"`lengths` must have shape \(2,\), the batch size, got \(1,\)"),
        (None, {"lengths": torch.tensor([1.0, 2.0])}, "`lengths` must be an int32 or int64 tensor, got torch.float32"),
        (
            None,
            {"lengths": torch.tensor([1, 2], device="meta")},
            r"`lengths` must be on the device of `q` \(cpu\), got meta",
        ),
    ],
)
def test_errors_name_the_argument(change, rules, message):
    inputs = random_inputs(65)
    with pytest.raises(ValueError, match=message):
        block_sparse_entmax_attention(*(change(*inputs) if change else inputs), **rules)


def test_scores_that_overflow_are_rejected():
    q, k, v = (x * 1e30 for x in random_inputs(65, dtype=torch.float32))
    with pytest.raises(ValueError, match="overflow"):
        block_sparse_entmax_attention(q, k, v)


def test_other_devices_are_rejected():
    with pytest.raises(NotImplementedError, match="`q` must be on a CPU or CUDA device, got meta"):
        block_sparse_entmax_attention(*(x.to("meta") for x in random_inputs(65)))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("name", ["q", "k", "v"])
def test_a_single_nonfinite_number_is_rejected(name, value, dtype):
    inputs = dict(zip("qkv", random_inputs(9, dtype=dtype), strict=True))
    inputs[name][-1, 0, 4, 3] = value
    with pytest.raises(ValueError, match=rf"^`{name}` must be finite, got NaN or infinite entries"):
        block_sparse_entmax_attention(**inputs)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_the_largest_finite_numbers_are_accepted(dtype):
    q, k, v = random_inputs(9, dtype=dtype)
    v[0, 0, :2, 0] = torch.tensor([1, -1], dtype=dtype) * torch.finfo(dtype).max
    assert block_sparse_entmax_attention(q, k, v).shape == v.shape


@pytest.mark.parametrize("shape", [(0, 2, 8, 16), (1, 2, 0, 16)])
def test_empty_inputs(shape):
    q = torch.zeros(shape, requires_grad=True)
    output = block_sparse_entmax_attention(q, q, q)
    output.sum().backward()
    assert output.shape == q.grad.shape == shape
