"""The support backend against the reference in float64, on every kind of processor that it is compiled for."""

from itertools import product

import pytest
import torch

from sparselib import attention
from sparselib.kernels import (
    BlockMask,
    block_sparse_entmax_attention,
    block_sparse_entmax_decode,
    support,
    support_library,
)
from sparselib.kernels.call_lists import visits_of
from sparselib.kernels.reference import block_sparse_entmax_attention_reference

ALPHAS = [1, 1.01, 1.25, 4 / 3, 1.5, 1.9, 2]
#: What ATEN_CPU_CAPABILITY names each build's processors.
CAPABILITIES = {"DEFAULT": "portable", "AVX2": "avx2", "AVX512": "avx512"}
ORDER = list(CAPABILITIES)

pytestmark = pytest.mark.skipif(
    support_library.library() is None, reason="the support backend was not compiled: no C++ compiler at installation"
)


@pytest.fixture(params=ORDER, autouse=True)
def processor(request, monkeypatch):
    """Run on each build that this processor can run."""
    if ORDER.index(request.param) > ORDER.index(torch.backends.cpu.get_cpu_capability()):
        pytest.skip(f"this processor has no {request.param}")
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: request.param)
    library = support_library.library
    library.cache_clear()
    assert f"support_{CAPABILITIES[request.param]}." in library()._name
    yield
    library.cache_clear()


def random_inputs(batch, heads, kv_heads, queries, keys, width, value_width, size=1.0):
    generator = torch.Generator().manual_seed(queries + keys + width)
    shapes = [(batch, heads, queries, width), (batch, kv_heads, keys, width), (batch, kv_heads, keys, value_width)]
    q, k, v = (torch.randn(shape, generator=generator) for shape in shapes)
    return [q * size, k, v]


def random_mask(batch, heads, block, length, density=0.4):
    blocks = [-(-n // size) for n, size in zip(length, block, strict=True)]
    dense = torch.rand(batch, heads, *blocks, generator=torch.Generator().manual_seed(0)) < density
    dense[:, :, 0] = False
    return BlockMask.from_dense(dense, block, length)


def run(function, inputs, mask, upstream, **rules):
    leaves = [x.detach().requires_grad_() for x in inputs]
    output = function(*leaves, mask, **rules)
    output = output if isinstance(output, torch.Tensor) else output[0]
    return output.detach(), *torch.autograd.grad(output, leaves, upstream.to(output.dtype))


def check(inputs, mask=None, **rules):
    """Check output and gradients: at most three times as far from float64 as the gather backend, or a few last bits."""
    upstream = torch.randn(*inputs[0].shape[:3], inputs[2].shape[-1], generator=torch.Generator().manual_seed(1))
    results, gathered = (
        run(block_sparse_entmax_attention, inputs, mask, upstream, backend=backend, **rules)
        for backend in ("support", "gather")
    )
    double = [x.double() for x in inputs]
    exact = run(block_sparse_entmax_attention_reference, double, mask, upstream, **rules)
    for result, other, expected in zip(results, gathered, exact, strict=True):
        error, allowed = ((x.double() - expected).norm() for x in (result, other))
        assert result.shape == expected.shape
        assert error <= 3 * allowed + 1e-6 * expected.norm()
    return results


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("size", [0.01, 1, 4, 1e4], ids=lambda size: f"scores of {size}")
def test_supports_of_every_size(size, alpha):
    if size == 1e4:  # Rounding a score moves the weights, so few keys may be close to one another.
        q, k, v = random_inputs(1, 2, 2, 70, 300, 16, 16)
        check([q.round() * size, k.round(), v], alpha=alpha)
    else:
        check(random_inputs(1, 2, 2, 70, 600, 16, 16, size), alpha=alpha)


@pytest.mark.parametrize(("width", "value_width"), [(1, 1), (3, 20), (16, 17), (64, 64), (100, 256), (256, 5)])
@pytest.mark.parametrize("size", [0.02, 3])
def test_widths(size, width, value_width):
    check(random_inputs(2, 2, 1, 33, 65, width, value_width, size))


@pytest.mark.parametrize(
    ("queries", "keys"), [(1, 1), (1, 700), (4, 513), (5, 513), (31, 2), (32, 256), (33, 257), (700, 1), (257, 513)]
)
@pytest.mark.parametrize("alpha", [1, 1.25, 1.5, 2])
def test_lengths(queries, keys, alpha):
    check(random_inputs(1, 2, 2, queries, keys, 16, 16), alpha=alpha)


@pytest.mark.parametrize("shape", [(0, 2, 2, 5, 5), (1, 0, 1, 5, 5), (1, 2, 2, 0, 5), (1, 2, 2, 5, 0), (1, 2, 2, 0, 0)])
def test_sizes_of_zero(shape):
    inputs = random_inputs(*shape, 16, 16)
    results = run(block_sparse_entmax_attention, inputs, None, torch.ones(*shape[:2], shape[3], 16), backend="support")
    assert [x.shape for x in results] == [torch.Size([*shape[:2], shape[3], 16]), *[x.shape for x in inputs]]
    assert not any(x.any() for x in results)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("lengths", [None, torch.tensor([290, 0]), torch.tensor([37, 300], dtype=torch.int32)])
@pytest.mark.parametrize("block", [None, (16, 16), (100, 7), (1, 1), (512, 40)])
@pytest.mark.parametrize("size", [0.03, 2])
def test_masks(size, block, lengths, causal):
    mask = block and random_mask(2, 4, block, (300, 300))
    output, dq, dk, dv = check(
        random_inputs(2, 4, 2, 300, 300, 16, 16, size), mask, causal=causal, lengths=lengths, alpha=1.5
    )
    if block:
        assert not output[:, :, : min(block[0], 300)].any()  # no visited block
        assert not dq[:, :, : min(block[0], 300)].any()
    if lengths is not None:
        padded = torch.arange(300) >= lengths[:, None, None]
        assert not output[padded.expand(2, 4, 300)].any()
        assert not dk[padded.expand(2, 2, 300)].any()
        assert not dv[padded.expand(2, 2, 300)].any()


@pytest.mark.parametrize(("batch", "heads"), [(1, 1), (1, 4), (2, 1)])
def test_masks_of_all_heads_and_full_blocks(batch, heads):
    mask = random_mask(batch, heads, (64, 32), (300, 130))
    half = mask.to_dense() & (torch.arange(5) < 2)
    first, second = (BlockMask.from_dense(x, (64, 32), (300, 130)) for x in (half, mask.to_dense() & ~half))
    split = BlockMask(
        first.kv_num_blocks, first.kv_indices, (64, 32), (300, 130), second.kv_num_blocks, second.kv_indices
    )
    inputs = random_inputs(2, 4, 1, 300, 130, 16, 16)
    for one, other in zip(check(inputs, mask), check(inputs, split), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("alpha", [1, 1.25, 1.5, 2])
@pytest.mark.parametrize("scores", ["equal", "ties", "one huge key", "negative"])
def test_adversarial_scores(scores, alpha):
    q, k, v = random_inputs(1, 2, 2, 40, 520, 16, 16)
    if scores == "equal":
        k = torch.zeros_like(k)
    elif scores == "ties":
        k = k[:, :, :5].repeat(1, 1, 104, 1)
    elif scores == "one huge key":
        # A gradient of softmax is the small difference of two numbers that are as large as this key.
        k[:, :, 300] *= 1000 if alpha > 1 else 100
    else:
        q, k = q.abs() * 100, -k.abs()
    check([q, k, v], alpha=alpha)


def test_strides():
    base = torch.randn(300, 3, 2, 40, generator=torch.Generator().manual_seed(0))
    views = [base[:, :, 0, ::2].permute(1, 0, 2)[None], base[:, :, 1, 1:21].permute(1, 0, 2)[None]]
    views += [base[:300:1, :1, 0, 3:19].permute(1, 0, 2)[None].expand(1, 3, -1, -1)]
    assert not any(x.is_contiguous() for x in views)
    check(views)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_computed_in_single(dtype):
    inputs = [x.to(dtype) for x in random_inputs(1, 2, 2, 65, 65, 16, 16)]
    upstream = torch.ones(1, 2, 65, 16)
    results = run(block_sparse_entmax_attention, inputs, None, upstream, backend="support")
    exact = run(block_sparse_entmax_attention, [x.float() for x in inputs], None, upstream, backend="support")
    for result, expected in zip(results, exact, strict=True):
        assert torch.equal(result, expected.to(dtype))


@pytest.mark.parametrize("kind", [torch.nan, torch.inf])
@pytest.mark.parametrize("position", [0, 1, 2])
def test_entries_that_are_not_finite_act_as_in_gather(position, kind):
    inputs = random_inputs(1, 2, 2, 40, 40, 16, 16)
    inputs[position][0, 0, 7, 3] = kind

    def outcome(backend):
        try:
            return run(
                block_sparse_entmax_attention, inputs, None, torch.ones(1, 2, 40, 16), backend=backend, check=False
            )[0]
        except ValueError as error:
            return str(error)

    one, other = outcome("support"), outcome("gather")
    assert type(one) is type(other)
    if isinstance(one, str):
        assert one == other
    else:
        torch.testing.assert_close(one, other, equal_nan=True)


@pytest.mark.parametrize("position", [0, 1])
def test_a_few_queries_find_scores_that_are_not_finite(position):
    inputs = random_inputs(1, 2, 2, 3, 40, 16, 16)
    inputs[position][0, 0, 2, 3] = torch.inf
    with pytest.raises(ValueError, match="a score overflows"):
        block_sparse_entmax_attention(*inputs, backend="support", check=False)
    inputs[position][0, 0, 2, 3] = torch.nan
    results = [block_sparse_entmax_attention(*inputs, backend=name, check=False) for name in ("support", "gather")]
    assert not results[1].isfinite().all()
    torch.testing.assert_close(*results, equal_nan=True)


def test_a_few_queries_read_values_with_weight_only():
    q, k, v = random_inputs(1, 2, 2, 3, 400, 16, 16)
    expected = block_sparse_entmax_attention(q, k, v)
    unread = attention(q, k, v)[1].sum(-2) == 0
    assert unread.any()
    v[unread] = torch.nan
    assert torch.equal(block_sparse_entmax_attention(q, k, v, check=False), expected)


def test_a_gradient_that_is_not_finite_acts_as_in_gather():
    inputs, upstream = random_inputs(1, 2, 2, 40, 40, 16, 16), torch.ones(1, 2, 40, 16)
    upstream[0, 0, 3, 3] = torch.nan
    results = [
        run(block_sparse_entmax_attention, inputs, None, upstream, backend=backend) for backend in ("support", "gather")
    ]
    torch.testing.assert_close(*results, equal_nan=True)


@pytest.mark.parametrize(("size", "kind"), [(0.02, "all scores"), (1, "long lists"), (3, "kept lists")])
def test_each_kind_of_backward_pass(size, kind):
    inputs = q, k, v = random_inputs(1, 1, 1, 40, 2000, 16, 16, size)
    if kind == "long lists":  # The first keys make the support look small.
        q.fill_(1)
        k[:, :, :256] = 3 * k[:, :, :256] - 4
        k[:, :, 256:] *= 0.02
    check(inputs)
    visits = visits_of(q, k, (None,) * 4, None, (64, 64), False)
    counts = support.forward(q, k, v, visits, alpha=1.5, scale=0.25, keep=True)[2][40:80]
    assert (counts == {"all scores": -1, "long lists": -2}.get(kind, counts.clamp(min=1))).all()


@pytest.mark.parametrize("size", [0.02, 2])
def test_results_are_bitwise_equal_for_a_number_of_threads(size):
    inputs, upstream = random_inputs(1, 3, 3, 200, 300, 16, 16, size), torch.ones(1, 3, 200, 16)
    before = torch.get_num_threads()
    results = {}
    try:
        for threads, _ in product((1, 2, 3), range(3)):
            torch.set_num_threads(threads)
            new = run(block_sparse_entmax_attention, inputs, None, upstream, backend="support")
            first = results.setdefault(threads, new)
            assert all(torch.equal(x, y) for x, y in zip(first, new, strict=True))
    finally:
        torch.set_num_threads(before)
    for one, other in zip(results[1], results[2], strict=True):
        torch.testing.assert_close(one, other)


def test_it_is_the_default_where_it_can_compute(monkeypatch):
    calls = []
    forward = support.forward
    monkeypatch.setattr(support, "forward", lambda *x, **rules: calls.append(rules["keep"]) or forward(*x, **rules))
    q, k, v = random_inputs(1, 1, 1, 8, 8, 16, 16)
    block_sparse_entmax_attention(q, k, v)
    block_sparse_entmax_attention(q.requires_grad_(), k, v)
    block_sparse_entmax_attention(q, k, v, mask_mod=lambda b, h, i, j: i >= j)
    assert calls == [False, True, True]
    q = q.detach()
    rule = {"score_mod": lambda score, b, h, i, j: score}
    for changed in ({"alpha": 1.001}, rule, {"backend": "gather"}):
        block_sparse_entmax_attention(q, k, v, **changed)
    block_sparse_entmax_attention(q.double(), k.double(), v.double())
    torch.compile(block_sparse_entmax_attention, backend="eager")(q, k, v)
    assert len(calls) == 3


@pytest.mark.parametrize(
    ("dtype", "rules", "message"),
    [
        (torch.float64, {}, "'gather' for a float64 `q`"),
        (torch.float32, {"alpha": 1.001}, "'gather' for an alpha between 1 and 1.01, got 1.001"),
        (torch.float32, {"score_mod": lambda score, b, h, i, j: score}, "`score_mod` must be None"),
    ],
)
def test_it_refuses_what_it_cannot_compute(dtype, rules, message):
    q = torch.zeros(1, 1, 4, 16, dtype=dtype)
    with pytest.raises(ValueError, match=message):
        block_sparse_entmax_attention(q, q, q, backend="support", **rules)


def test_decoding_refuses_it():
    q = torch.zeros(1, 1, 4, 16)
    with pytest.raises(ValueError, match="`backend` must be one of 'gather', 'triton' or None, got 'support'"):
        block_sparse_entmax_decode(q[:, :, :1], q, q, backend="support")


def test_without_a_compiled_library_everything_works(monkeypatch):
    q, k, v = random_inputs(1, 1, 1, 8, 8, 16, 16)
    monkeypatch.setattr(support_library, "library", lambda: None)
    gathered = block_sparse_entmax_attention(q, k, v, backend="gather")
    assert torch.equal(block_sparse_entmax_attention(q, k, v), gathered)
    with pytest.raises(ValueError, match=r"`backend` must be 'gather' or None, because .* install a C\+\+ compiler"):
        block_sparse_entmax_attention(q, k, v, backend="support")
