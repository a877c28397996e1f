"""The gathered path against its twin, its peers, and bad input."""

from functools import partial

import entmax as package
import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from sparselib.kernels import BlockMask, block_sparse_entmax_attention
from sparselib.kernels.operator import attend
from sparselib.kernels.reference import block_sparse_entmax_attention_reference

ALPHAS = [1, 1.25, 1.5, 2]
gather_attention = partial(attend, backend="gather")


def drawn(n, d=16, *, heads=2, kv_heads=None, batch=2, dtype=torch.float64):
    generator = torch.Generator().manual_seed(n + d)
    shapes = [(batch, heads, n, d), *[(batch, kv_heads or heads, n, d)] * 2]
    return [torch.randn(x, generator=generator, dtype=torch.float64).mul_(1.5).to(dtype) for x in shapes]


def drawn_mask(n, *, block=16, batch=2, heads=2, density=0.4):
    """Per-head blocks, among them a row that visits nothing and one that visits everything."""
    blocks = -(-n // block)
    dense = torch.rand(batch, heads, blocks, blocks, generator=torch.Generator().manual_seed(n)) < density
    dense[0, 0, 0] = False
    dense[-1, -1, -1] = True
    return BlockMask.from_dense(dense, block, n)


def agrees(inputs, mask=None, **rules):
    """Output, tau and gradients are the twin's."""
    leaves = [x.detach().requires_grad_() for x in inputs]
    found = gather_attention(*leaves, mask, **rules)
    expected = block_sparse_entmax_attention_reference(*leaves, mask, **rules)
    upstream = torch.randn(found[0].shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    gradients = [torch.autograd.grad(output, leaves, upstream) for output, _ in (found, expected)]
    torch.testing.assert_close((*found, *gradients[0]), (*expected, *gradients[1]), rtol=1e-9, atol=1e-10)
    return found


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("n", [1, 63, 64, 65, 127, 129, 300])
def test_lengths_of_sequences(n, alpha):
    agrees(drawn(n), drawn_mask(n), alpha=alpha)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("d", [32, 64, 128])
def test_head_dimensions(d, alpha):
    agrees(drawn(65, d), drawn_mask(65), alpha=alpha, scale=0.3)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("lengths", [None, torch.tensor([70, 0]), torch.tensor([65, 129])])
def test_rules_of_tokens(lengths, causal, masked, alpha):
    mask = drawn_mask(129) if masked else None
    output, tau = agrees(drawn(129), mask, alpha=alpha, causal=causal, lengths=lengths)
    if lengths is not None:
        padded = torch.arange(129) >= lengths[:, None, None]
        assert (output[padded.expand(tau.shape)] == 0).all()
        assert tau[padded.expand(tau.shape)].isposinf().all()


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("kv_heads", [1, 2])
def test_grouped_heads_and_broadcast_masks(kv_heads, alpha):
    agrees(drawn(65, heads=4, kv_heads=kv_heads), drawn_mask(65, batch=1, heads=4), alpha=alpha, causal=True)
    agrees(drawn(65, heads=4, kv_heads=kv_heads), drawn_mask(65, heads=1, density=0.6), alpha=alpha)


def test_other_blocks_and_more_keys_than_queries():
    q, k, v = drawn(100)
    dense = torch.rand(2, 2, 4, 13, generator=torch.Generator().manual_seed(0)) < 0.5
    agrees([q[:, :, :30], k, v[..., :5]], BlockMask.from_dense(dense, (8, 8), (30, 100)))
    agrees([q[:, :, :30], k, v], None)


def test_full_blocks_are_visited_too():
    inputs, mask = drawn(64), drawn_mask(64)
    half = mask.to_dense() & (torch.arange(4) < 2)
    first, second = (BlockMask.from_dense(x, 16, 64) for x in (half, mask.to_dense() & ~half))
    split = BlockMask(first.kv_num_blocks, first.kv_indices, 16, 64, second.kv_num_blocks, second.kv_indices)
    torch.testing.assert_close(agrees(inputs, split), agrees(inputs, mask))


def test_non_contiguous_inputs():
    inputs = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in drawn(65)]
    assert not inputs[0].is_contiguous()
    agrees(inputs, drawn_mask(65))


@pytest.mark.parametrize("scores", ["equal", "one huge key", "ties"])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_adversarial_scores(alpha, scores):
    q, k, v = drawn(65)
    if scores == "equal":
        k = torch.zeros_like(k)
    elif scores == "ties":
        k = k[:, :, :5].repeat(1, 1, 13, 1)
    else:
        k[:, :, 3] *= 1000
    agrees([q, k, v], alpha=alpha)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_gradcheck(alpha):
    inputs = [x.requires_grad_() for x in drawn(6, 3, batch=1)]
    mask = drawn_mask(6, block=2, batch=1, density=0.6)
    assert torch.autograd.gradcheck(lambda *x: gather_attention(*x, mask, alpha=alpha)[0], inputs)


@pytest.mark.parametrize("causal", [False, True])
def test_softmax_is_pytorchs(causal):
    q, k, v = drawn(129)
    found = block_sparse_entmax_attention(q, k, v, alpha=1, causal=causal)
    torch.testing.assert_close(found, scaled_dot_product_attention(q, k, v, is_causal=causal))


@pytest.mark.parametrize(("alpha", "normalizer"), [(1.5, package.entmax15), (2, package.sparsemax)])
def test_dense_is_the_entmax_packages(alpha, normalizer):
    q, k, v = drawn(129)
    expected = normalizer(q @ k.mT / 4, dim=-1) @ v
    torch.testing.assert_close(block_sparse_entmax_attention(q, k, v, alpha=alpha), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_error_is_at_most_twice_pytorchs(alpha, dtype):
    """Both against the float64 twin; half precision may not be worse than the twin in that dtype."""
    inputs, mask = drawn(129, dtype=dtype), drawn_mask(129)
    exact = block_sparse_entmax_attention_reference(*(x.double() for x in inputs), mask, alpha=alpha)[0]
    plain = block_sparse_entmax_attention_reference(*inputs, mask, alpha=alpha)[0]
    found = block_sparse_entmax_attention(*inputs, mask, alpha=alpha)
    assert found.dtype == dtype
    assert (found - exact).abs().max() <= 2 * (plain - exact).abs().max()


def test_gradients_of_half_precision_are_in_its_dtype():
    inputs = [x.requires_grad_() for x in drawn(65, dtype=torch.bfloat16)]
    gradients = torch.autograd.grad(block_sparse_entmax_attention(*inputs, drawn_mask(65)).sum(), inputs)
    assert all(g.dtype == torch.bfloat16 and g.isfinite().all() for g in gradients)


def broken(value):
    def change(q, k, v):
        return q, k, v.index_fill(2, torch.tensor([1]), value)

    return change


@pytest.mark.parametrize(
    ("change", "rules", "named"),
    [
        (lambda q, k, v: (q[0], k, v), {}, r"q of shape \(2, 65, 16\)"),
        (lambda q, k, v: (q[:1], k, v), {}, r"k of shape \(2, 2, 65, 16\).*q of shape \(1, 2, 65, 16\)"),
        (lambda q, k, v: (q[..., :8], k, v), {}, "k of shape.*q of shape"),
        (lambda q, k, v: (q[:, :1], k, v), {}, "k of shape.*heads"),
        (lambda q, k, v: (q, k, v[:, :, :5]), {}, "v of shape.*k of shape"),
        (lambda q, k, v: (q, k.float(), v), {}, "k: torch.float32"),
        (lambda q, k, v: (q.long(), k.long(), v.long()), {}, "q: torch.int64"),
        (lambda q, k, v: (q, k, v.to("meta")), {}, r"v: \(2, 2, 65, 16\) on meta"),
        (lambda q, k, v: (q.repeat(1, 1, 1, 17), k.repeat(1, 1, 1, 17), v), {}, "q of shape.*272"),
        (broken(float("nan")), {}, "v of shape.*NaN"),
        (broken(float("inf")), {}, "v of shape.*NaN"),
        (None, {"alpha": 0.9}, "alpha: 0.9"),
        (None, {"alpha": float("nan")}, "alpha"),
        (None, {"scale": float("inf")}, "scale"),
        (None, {"block_mask": drawn_mask(64)}, r"block_mask of shape \(64, 64\).*\(65, 65\)"),
        (None, {"block_mask": drawn_mask(65, heads=3)}, "block_mask of shape.*q of shape"),
        (None, {"block_mask": drawn_mask(65).to_dense()}, "block_mask: BlockMask expected"),
        (lambda q, k, v: (q[:, :, :9], k, v), {"causal": True}, "causal.*shape"),
        (None, {"lengths": torch.tensor([66, 1])}, r"lengths: \[66, 1\] of shape \(2,\).*\(2, 2, 65, 16\)"),
        (None, {"lengths": torch.tensor([-1, 1])}, "lengths"),
        (None, {"lengths": torch.tensor([1])}, r"lengths of shape \(1\)"),
        (None, {"lengths": torch.tensor([1.0, 2.0])}, "lengths: int32"),
        (None, {"lengths": torch.tensor([1, 2], device="meta")}, "lengths.*meta"),
    ],
)
def test_errors_name_the_argument(change, rules, named):
    inputs = drawn(65)
    with pytest.raises(ValueError, match=named):
        block_sparse_entmax_attention(*(change(*inputs) if change else inputs), **rules)


def test_scores_that_overflow_are_refused():
    q, k, v = (x * 1e30 for x in drawn(65, dtype=torch.float32))
    with pytest.raises(ValueError, match="overflow"):
        block_sparse_entmax_attention(q, k, v)


def test_other_devices_are_refused():
    with pytest.raises(NotImplementedError, match="meta"):
        block_sparse_entmax_attention(*(x.to("meta") for x in drawn(65)))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("name", ["q", "k", "v"])
def test_one_number_that_is_not_finite_is_found(name, value, dtype):
    inputs = dict(zip("qkv", drawn(9, dtype=dtype), strict=True))
    inputs[name][-1, 0, 4, 3] = value
    with pytest.raises(ValueError, match=rf"^{name} of shape \(2, 2, 9, 16\): NaN or infinite"):
        block_sparse_entmax_attention(**inputs)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_the_largest_numbers_of_a_dtype_are_finite(dtype):
    q, k, v = drawn(9, dtype=dtype)
    v[0, 0, :2, 0] = torch.tensor([1, -1], dtype=dtype) * torch.finfo(dtype).max
    assert block_sparse_entmax_attention(q, k, v).shape == v.shape


@pytest.mark.parametrize("shape", [(0, 2, 8, 16), (1, 2, 0, 16)])
def test_nothing_attends_to_nothing(shape):
    q = torch.zeros(shape, requires_grad=True)
    output = block_sparse_entmax_attention(q, q, q)
    output.sum().backward()
    assert output.shape == q.grad.shape == shape
