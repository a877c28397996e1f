"""Attention without weights against the dense form in float64, and where each kernel computes it."""

import pytest
import torch
from torch.autograd import forward_ad
from torch.autograd.functional import jacobian

from sparselib import Entmax, attention, entmax15, sparsemax, topk_softmax
from sparselib.dense_attention import Scoring, attention_output
from sparselib.exact_output import exact_output, has_kernel
from sparselib.kernels import support, support_library

NORMALIZERS = [entmax15, sparsemax, Entmax(1.25), Entmax(1.1), Entmax(1), Entmax(1.001), Entmax(2.5), topk_softmax]


def inputs(queries=40, keys=70, batch=2, heads=3, width=16):
    generator = torch.Generator().manual_seed(queries + keys)
    sizes = [(queries, width), (keys, width), (keys, width + 5)]
    return [torch.randn(batch, heads, *size, generator=generator) for size in sizes]


def random_mask(*shape, density=0.5):
    return torch.rand(shape, generator=torch.Generator().manual_seed(1)) < density


def both_passes(tensors, mask, **rules):
    leaves = [x.detach().requires_grad_() for x in tensors]
    output, _ = attention(*leaves, mask, **rules)
    upstream = torch.randn(output.shape, generator=torch.Generator().manual_seed(2)).bfloat16().to(output)
    return output.detach(), *torch.autograd.grad(output, leaves, upstream)


def check(tensors, mask, **rules):
    """Check that output and gradients are at most three times as far from float64 as the dense form, or a few last bits."""
    results, dense = (both_passes(tensors, mask, weights=weights, **rules) for weights in (False, True))
    exact = both_passes([x.double() for x in tensors], mask, **rules)
    for result, other, expected in zip(results, dense, exact, strict=True):
        assert result.dtype == other.dtype
        assert result.shape == expected.shape
        error, allowed = ((x.double() - expected).norm() for x in (result, other))
        assert error <= 3 * allowed + 2e-6 * expected.norm()
    return results


@pytest.fixture
def calls(monkeypatch):
    """The support kernel's forward passes."""
    if support_library.library() is None:
        pytest.skip("the support backend was not compiled: no C++ compiler at installation")
    found, forward = [], support.forward
    monkeypatch.setattr(support, "forward", lambda *x, **rules: found.append(rules["keep"]) or forward(*x, **rules))
    return found


@pytest.mark.parametrize("normalizer", [*NORMALIZERS[:-1], lambda scores: topk_softmax(scores, 3)])
@pytest.mark.parametrize("masked", [False, True])
def test_equals_the_form_with_weights(normalizer, masked):
    mask = random_mask(2, 3, 40, 70) if masked else None
    if masked:
        mask[0, :, 5] = False  # an empty row
        mask[1, 2] = False
    output, *_ = check(inputs(), mask, normalizer=normalizer)
    if masked:
        assert not output[0, :, 5].any()
        assert not output[1, 2].any()


@pytest.mark.parametrize("shape", [(70,), (40, 70), (40, 1), (3, 1, 70), (2, 1, 1, 70), (1, 3, 40, 1), ()])
@pytest.mark.parametrize("normalizer", [entmax15, Entmax(1)])
def test_masks_that_broadcast(shape, normalizer):
    check(inputs(), random_mask(*shape, density=0.7), normalizer=normalizer)


def test_scale():
    check(inputs(), None, scale=3.0)
    check(inputs(), random_mask(40, 70), scale=-0.3)
    check(inputs(), random_mask(40, 70), scale=0)


def test_scores_of_ten_thousand():
    q, k, v = inputs()
    check([q.round() * 4e4, k.round(), v], random_mask(2, 3, 40, 70))


def test_ties():
    q, k, v = inputs()
    check([q, k[:, :, :7].repeat(1, 1, 10, 1), v], random_mask(2, 3, 40, 70))


def test_strides():
    tensors = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in inputs()]
    tensors[0] = torch.cat([tensors[0]] * 2, -1)[..., ::2]
    assert not any(x.is_contiguous() for x in tensors)
    check(tensors, random_mask(70, 40).T)


@pytest.mark.parametrize("sizes", [(0, 70), (40, 0), (0, 0), (40, 70, 0), (40, 70, 2, 0)])
def test_sizes_of_zero(sizes):
    output, weights = attention(*inputs(*sizes), weights=False)
    assert output.shape == attention(*inputs(*sizes), weights=True)[0].shape if sizes[1] else True
    assert weights is None
    assert not output.any() or sizes[1]


def test_hidden_tokens_that_are_nan_change_nothing():
    q, k, v = inputs()
    mask = random_mask(2, 1, 40, 70)
    mask[..., 60:] = False
    expected = both_passes([q, k, v], mask, weights=False)
    k[:, :, 60:] = v[:, :, 60:] = torch.nan
    for result, other in zip(both_passes([q, k, v], mask, weights=False), expected, strict=True):
        torch.testing.assert_close(result, other)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_computed_in_single(dtype, calls):
    half = [x.to(dtype) for x in inputs()]
    results = both_passes(half, random_mask(2, 3, 40, 70), weights=False)
    for result, expected in zip(
        results, both_passes([x.float() for x in half], random_mask(2, 3, 40, 70)), strict=True
    ):
        torch.testing.assert_close(result, expected.to(dtype))
    assert calls == [True]


def test_autocast_computes_in_its_dtype(calls):
    with torch.autocast("cpu", torch.bfloat16):
        output, _ = attention(*inputs(), weights=False)
    assert output.dtype == torch.bfloat16
    torch.testing.assert_close(output, attention(*(x.bfloat16() for x in inputs()), weights=False)[0])


def test_the_kernel_computes_what_it_can(calls):
    q, k, v = inputs()
    attention(q, k, v, weights=False)
    attention(q, k, v, random_mask(40, 70), weights=False)
    attention_output(q, k, v, scoring=Scoring(2.0))
    assert len(calls) == 3
    attention(q, k, v)
    attention(q.double(), k.double(), v.double(), weights=False)
    for normalizer in (lambda scores: scores.softmax(-1), Entmax(1), Entmax(1.001), Entmax(2.5)):
        attention(q, k, v, normalizer=normalizer, weights=False)
    for scoring in (Scoring(softcap=2.0), Scoring(bias=torch.zeros(40, 70)), Scoring(sinks=torch.zeros(3))):
        attention_output(q, k, v, scoring=scoring)
    torch.vmap(lambda *x: attention(*x, weights=False)[0])(q[None], k[None], v[None])
    torch.compile(lambda *x: attention(*x, weights=False)[0], backend="eager")(q, k, v)
    assert len(calls) == 3


@pytest.mark.parametrize("needed", [(0, 1, 2), (1,), (0, 2)])
@pytest.mark.parametrize("normalizer", [entmax15, Entmax(1.25), Entmax(1)])
def test_second_derivatives_are_those_of_the_dense_form(normalizer, needed):
    mask = random_mask(2, 3, 40, 70)
    mask[0, :, 5] = False

    def second(weights, dtype=torch.float32):
        leaves = [x.to(dtype).requires_grad_() for x in inputs()]
        own = [leaves[i] for i in needed]
        output, _ = attention(*leaves, mask, normalizer=normalizer, scale=-0.5, weights=weights)
        first = torch.autograd.grad(output.square().sum(), own, create_graph=True)
        return torch.autograd.grad(sum(x.square().sum() for x in first), own)

    for result, other, expected in zip(second(False), second(True), second(True, torch.float64), strict=True):
        error, allowed = ((x.double() - expected).norm() for x in (result, other))
        assert error <= 3 * allowed + 2e-6 * expected.norm()


def test_forward_mode_and_batched_gradients_are_those_of_the_dense_form():
    q, k, v = inputs()
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(q, torch.ones_like(q))
        tangents = [forward_ad.unpack_dual(attention(dual, k, v, weights=x)[0]).tangent for x in (False, True)]
    torch.testing.assert_close(*tangents)
    q = q[:1, :1, :4]
    results = [
        jacobian(lambda q, x=x: attention(q, k[:1, :1], v[:1, :1], weights=x)[0].sum(-1), q, vectorize=True)
        for x in (False, True)
    ]
    torch.testing.assert_close(*results, atol=1e-5, rtol=1e-4)


def test_without_a_compiled_library_the_dense_form_computes_everything(monkeypatch):
    monkeypatch.setattr(support_library, "library", lambda: None)
    q, k, v = inputs()
    assert not has_kernel(q, k, v, entmax15)
    assert exact_output(q, k, v, None, entmax15) is None
    mask = random_mask(40, 70)
    assert torch.equal(attention(q, k, v, mask, weights=False)[0], attention(q, k, v, mask)[0])


def test_softmax_without_restriction_is_pytorchs(monkeypatch):
    masks = []
    monkeypatch.setattr(
        "sparselib.exact_output.scaled_dot_product_attention", lambda q, k, v, mask, **_: masks.append(mask) or v
    )
    everything = torch.ones(40, 70, dtype=torch.bool)
    attention(*inputs(), everything, normalizer=Entmax(1), weights=False)
    assert masks == [None]
    masks.clear()
    everything[3, 1] = False
    attention(*inputs(), everything, normalizer=Entmax(1), weights=False)
    assert len(masks) == (support_library.library() is None)
    monkeypatch.setattr(support_library, "library", lambda: None)
    masks.clear()
    attention(*inputs(), everything, normalizer=Entmax(1), weights=False)
    assert torch.equal(masks[0][0, 0], everything)
    everything[3] = False  # PyTorch's kernels differ in what an empty row returns
    attention(*inputs(), everything, normalizer=Entmax(1), weights=False)
    assert len(masks) == 1


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("normalizer", NORMALIZERS[:-1])
@pytest.mark.parametrize("masked", [False, True])
def test_a_gpu_computes_the_same(normalizer, masked):
    mask = random_mask(2, 3, 40, 70).cuda() if masked else None
    check([x.cuda() for x in inputs()], mask, normalizer=normalizer)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_on_a_gpu_triton_computes_entmax_without_masks():
    tensors = [x.cuda() for x in inputs()]
    assert exact_output(*tensors, None, entmax15) is not None
    assert exact_output(*tensors, random_mask(40, 70).cuda(), entmax15) is None
    assert exact_output(*(x.double() for x in tensors), None, entmax15) is None
