"""Boolean masks and mask rules in the support backend, against dense attention in float64 and against the gather backend."""

import pytest
import torch

from sparselib import attention
from sparselib.kernels import BlockMask, block_sparse_entmax_attention, support, support_library
from sparselib.kernels.block_operator import attend
from sparselib.normalizers import Entmax

pytestmark = pytest.mark.skipif(
    support_library.library() is None, reason="the support backend was not compiled: no C++ compiler at installation"
)


def random_inputs(batch=2, heads=4, kv_heads=2, queries=75, keys=310, width=16, size=1.0):
    generator = torch.Generator().manual_seed(queries + keys)
    shapes = [(batch, heads, queries, width), *[(batch, kv_heads, keys, width)] * 2]
    q, k, v = (torch.randn(shape, generator=generator) for shape in shapes)
    return [q * size, k, v]


def gradients(output, leaves):
    upstream = torch.randn(output.shape, generator=torch.Generator().manual_seed(1)).bfloat16()  # exact in all dtypes
    return output.detach(), *torch.autograd.grad(output, leaves, upstream.to(output.dtype))


def kernel(inputs, mask, backend="support", **rules):
    leaves = [x.detach().requires_grad_() for x in inputs]
    return gradients(attend(*leaves, mask=mask, backend=backend, **rules)[0], leaves)


def oracle(inputs, mask, alpha):
    leaves = [x.detach().double().requires_grad_() for x in inputs]
    q, k, v = leaves[0], *(x.repeat_interleave(leaves[0].shape[1] // x.shape[1], 1) for x in leaves[1:])
    return gradients(attention(q, k, v, mask, normalizer=Entmax(alpha))[0], leaves)


def check(inputs, mask, alpha=1.5):
    """Check output and gradients: at most three times as far from float64 as the gather backend, or a few last bits."""
    results, gathered = (kernel(inputs, mask, backend, alpha=alpha) for backend in ("support", "gather"))
    for result, other, expected in zip(results, gathered, oracle(inputs, mask, alpha), strict=True):
        error, allowed = ((x.double() - expected).norm() for x in (result, other))
        assert error <= 3 * allowed + 1e-6 * expected.norm()
    return results


def random_mask(*shape, density):
    return torch.rand(shape, generator=torch.Generator().manual_seed(2)) < density


@pytest.mark.parametrize("alpha", [1, 1.25, 1.5, 2])
@pytest.mark.parametrize("density", [0.0, 0.01, 0.2, 0.9])
@pytest.mark.parametrize("size", [0.02, 1, 4], ids=lambda size: f"scores of {size}")
def test_random_masks(size, density, alpha):
    mask = random_mask(2, 4, 75, 310, density=density)
    mask[:, :, 7] = False
    output, dq, *_ = check(random_inputs(size=size), mask, alpha)
    assert not output[:, :, 7].any()
    assert not dq[:, :, 7].any()


def test_scores_of_ten_thousand():
    q, k, v = random_inputs()
    check([q.round() * 1e4, k.round(), v], random_mask(2, 1, 75, 310, density=0.3))


@pytest.mark.parametrize("shape", [(2, 1, 75, 310), (1, 4, 1, 310), (2, 1, 75, 1), (1, 1, 1, 1), (2, 4, 75, 310)])
def test_shapes_that_broadcast(shape):
    mask = random_mask(*shape, density=0.6)
    check(random_inputs(), mask)


def test_strides():
    mask = random_mask(310, 75, 2, density=0.4).permute(2, 1, 0)[:, None]
    assert mask.stride(-1) != 1
    check(random_inputs(), mask)
    wide = random_mask(2, 1, 75, 700, density=0.4)[..., 13:323]
    check(random_inputs(), wide)


@pytest.mark.parametrize("first", [0, 100, 290])
@pytest.mark.parametrize("width", [1, 9, 300])
def test_keys_that_no_row_of_a_tile_sees(first, width):
    """The kernel skips them, whichever tile and panel they begin and end in."""
    mask = torch.zeros(1, 1, 75, 310, dtype=torch.bool)
    mask[..., 10:60, first : first + width] = True
    mask[..., 40, 3] = True
    check(random_inputs(), mask)


@pytest.mark.parametrize("alpha", [1, 1.5])
@pytest.mark.parametrize("first", [0, 5, 290])
def test_a_few_queries(first, alpha):
    """They read the keys as they are, from any first key."""
    mask = random_mask(2, 4, 3, 310, density=0.6)
    mask[..., :first] = False
    check(random_inputs(queries=3), mask, alpha)


@pytest.mark.parametrize("sizes", [(0, 4, 2, 5, 5), (1, 4, 2, 0, 5), (1, 4, 2, 5, 0)])
def test_sizes_of_zero(sizes):
    batch, _, _, queries, keys = sizes
    results = kernel(random_inputs(*sizes), torch.ones(batch, 1, queries, keys, dtype=torch.bool))
    assert results[0].shape == (batch, 4, queries, 16)
    assert not any(x.any() for x in results)


def test_ties():
    q, k, v = random_inputs()
    check([q, k[:, :, :5].repeat(1, 1, 62, 1), v], random_mask(2, 4, 75, 310, density=0.5))
    check([q, torch.zeros_like(k), v], random_mask(2, 4, 75, 310, density=0.5))


@pytest.mark.parametrize("kind", [torch.nan, torch.inf])
def test_entries_that_are_not_finite_act_as_in_gather(kind):
    inputs, mask = random_inputs(), random_mask(2, 4, 75, 310, density=0.5)
    inputs[2][0, 0, 7, 3] = kind
    outputs = [attend(*inputs, mask=mask, backend=backend)[0] for backend in ("support", "gather")]
    torch.testing.assert_close(*outputs, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_computed_in_single(dtype):
    inputs, mask = [x.to(dtype) for x in random_inputs()], random_mask(2, 4, 75, 310, density=0.5)
    for result, expected in zip(kernel(inputs, mask), kernel([x.float() for x in inputs], mask), strict=True):
        torch.testing.assert_close(result, expected.to(dtype))


@pytest.mark.parametrize("rules", [{"causal": True}, {"lengths": torch.tensor([290, 31])}])
def test_masks_together_with_other_rules(rules):
    inputs, mask = random_inputs(queries=310), random_mask(2, 4, 310, 310, density=0.5)
    blocks = BlockMask.from_dense(random_mask(2, 4, 20, 20, density=0.4), 16, 310)
    results = (kernel(inputs, mask, backend, block_mask=blocks, **rules) for backend in ("support", "gather"))
    for result, expected in zip(*results, strict=True):
        torch.testing.assert_close(result, expected, atol=2e-5, rtol=1e-4)


MODS = {
    "window": lambda b, h, i, j: (i - j).abs() <= 6,
    "documents": lambda b, h, i, j: i // 40 == j // 40,
    "heads and batch": lambda b, h, i, j: (i + h) % (b + 2) == j % (b + 2),
    "nothing": lambda b, h, i, j: torch.tensor(False),
}


@pytest.mark.parametrize("name", MODS)
def test_mask_rules(name, monkeypatch):
    inputs = random_inputs(queries=310)
    places = [
        torch.arange(n).view([-1 if axis == own else 1 for axis in range(4)]) for own, n in enumerate((2, 4, 310, 310))
    ]
    check(inputs, MODS[name](*places).expand(2, 4, 310, 310))
    expected = block_sparse_entmax_attention(*inputs, mask_mod=MODS[name], backend="gather")
    masks, forward = [], support.forward
    monkeypatch.setattr(support, "forward", lambda *x, **rules: masks.append(x[3].mask) or forward(*x, **rules))
    torch.testing.assert_close(
        block_sparse_entmax_attention(*inputs, mask_mod=MODS[name]), expected, atol=1e-5, rtol=1e-4
    )
    assert len(masks) == 1


def test_a_rule_of_too_many_pairs_is_not_written_out_by_default(monkeypatch):
    calls, inputs = [], random_inputs(queries=310)
    monkeypatch.setattr("sparselib.kernels.block_operator.MOST_WRITTEN", 310 * 309)
    monkeypatch.setattr(support, "forward", lambda *x, **rules: calls.append(1))
    block_sparse_entmax_attention(*inputs, mask_mod=MODS["window"])
    assert not calls
