"""The normalisers in one graph of a compiler, in torch.export, without data, under torch.func, and differentiated twice."""

from functools import partial

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from sparselib import attention, entmax, entmax15, sparsemax, topk_softmax

NORMALIZERS = {
    "entmax15": entmax15,
    "sparsemax": sparsemax,
    "entmax 1.3": partial(entmax, alpha=1.3),
    "entmax 1.0001": partial(entmax, alpha=1.0001),
    "top-3": partial(topk_softmax, k=3),
}
each = pytest.mark.parametrize("normalizer", NORMALIZERS.values(), ids=NORMALIZERS)


def scores(*shape, dtype=torch.float32):
    return 2 * torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=dtype)


@each
@pytest.mark.parametrize("dim", [-1, 1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_compiler_sees_one_graph(normalizer, dim, dtype):
    torch.compiler.reset()
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    x = scores(3, 7, 5, dtype=dtype).requires_grad_()
    compiled = torch.compile(lambda x: normalizer(x, dim=dim).square().sum(), backend=backend, fullgraph=True)
    result, expected = compiled(x), normalizer(x, dim=dim).square().sum()
    assert len(graphs) == 1
    torch.testing.assert_close(result, expected)
    gradients = [torch.autograd.grad(y, x)[0] for y in (result, expected)]
    tolerance = 2e-2 if dtype == torch.bfloat16 else 1e-5
    torch.testing.assert_close(*gradients, rtol=tolerance, atol=tolerance)
    compiled(scores(3, 9, 5, dtype=dtype))
    compiled(scores(3, 11, 5, dtype=dtype))
    assert len(graphs) <= 2  # at most one recompilation for other shapes


@each
def test_the_backward_pass_is_traced_too(normalizer):
    torch.compiler.reset()
    x = scores(2, 6).requires_grad_()
    compiled = torch.compile(normalizer, backend="aot_eager", fullgraph=True)
    (actual,), (expected,) = (torch.autograd.grad(f(x).square().sum(), x) for f in (compiled, normalizer))
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-6)


@each
def test_it_can_be_exported(normalizer):
    class Module(torch.nn.Module):
        def forward(self, x):
            return normalizer(x)

    x = scores(2, 6)
    rows = torch.export.Dim("rows", min=2, max=64)
    program = torch.export.export(Module(), (x,), dynamic_shapes=({0: rows},))
    torch.testing.assert_close(program.module()(x), normalizer(x))
    torch.testing.assert_close(program.module()(scores(5, 6)), normalizer(scores(5, 6)))


@each
def test_tensors_without_data_have_shapes(normalizer):
    meta = normalizer(torch.empty(2, 6, device="meta", dtype=torch.bfloat16))
    with FakeTensorMode():
        fake = normalizer(torch.empty(2, 6))
    assert (meta.shape, meta.dtype, meta.device.type) == ((2, 6), torch.bfloat16, "meta")
    assert fake.shape == (2, 6)


@each
@pytest.mark.parametrize("in_dim", [0, 1, 2])
def test_vmap_is_a_loop(normalizer, in_dim):
    x = scores(3, 4, 5)
    expected = torch.stack([normalizer(row) for row in x.unbind(in_dim)])
    torch.testing.assert_close(torch.vmap(normalizer, in_dims=in_dim)(x), expected)


@each
def test_func_has_the_gradients_of_autograd(normalizer):
    x, weights = scores(4, 6, dtype=torch.float64), scores(6, dtype=torch.float64)

    def loss(row):
        return (normalizer(row) * weights).sum()

    leaf = x.clone().requires_grad_()
    (expected,) = torch.autograd.grad(sum(loss(row) for row in leaf), leaf)
    torch.testing.assert_close(torch.vmap(torch.func.grad(loss))(x), expected)
    jacobian = torch.func.jacrev(normalizer)(x[0])
    torch.testing.assert_close(jacobian, torch.autograd.functional.jacobian(normalizer, x[0]))
    torch.testing.assert_close(jacobian.T, jacobian)  # The Jacobian of a gradient is symmetric.


@each
def test_second_derivatives(normalizer):
    """Scores keep a distance from the thresholds, where the third derivative of the normaliser's potential jumps."""
    x = torch.tensor(
        [[2.0, 1.7, 1.5, -3.0, -4.0], [0.1, 0.0, -0.2, -6.0, -7.0]], dtype=torch.float64, requires_grad=True
    )
    assert torch.autograd.gradcheck(normalizer, x)
    assert torch.autograd.gradgradcheck(normalizer, x)
    assert torch.autograd.functional.hessian(lambda x: normalizer(x).square().sum(), x[0]).isfinite().all()


@each
def test_forward_mode_has_the_derivatives_of_reverse_mode(normalizer):
    def loss(x):
        return normalizer(x).square().sum()

    x = scores(2, 6, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(normalizer, x, check_forward_ad=True, check_batched_forward_grad=True)
    assert torch.autograd.gradgradcheck(normalizer, x, check_fwd_over_rev=True)
    forward_over_reverse = torch.func.hessian(loss)(x[0].detach())
    torch.testing.assert_close(forward_over_reverse, torch.autograd.functional.hessian(loss, x[0].detach()))


@each
def test_gradients_come_in_batches_too(normalizer):
    x = scores(2, 6, dtype=torch.float64)
    each_row, batched = (torch.autograd.functional.jacobian(normalizer, x, vectorize=v) for v in (False, True))
    torch.testing.assert_close(batched, each_row)


@each
def test_second_derivatives_of_masked_scores_are_finite(normalizer):
    x = scores(3, 8, dtype=torch.float64).index_fill(1, torch.tensor([1, 5]), -torch.inf).requires_grad_()
    (gradient,) = torch.autograd.grad(normalizer(x).square().sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(gradient.square().sum(), x)
    assert gradient.isfinite().all()
    assert second.isfinite().all()


def test_a_learned_alpha_has_no_second_derivatives():
    x, alpha = scores(2, 6), torch.tensor(1.3, requires_grad=True)
    with pytest.raises(NotImplementedError, match="`alpha` of entmax has no second derivatives; detach it"):
        torch.autograd.grad(entmax(x, alpha).square().sum(), alpha, create_graph=True)


def test_a_learned_alpha_has_no_derivative_in_forward_mode():
    x, alpha = scores(2, 6), torch.tensor(1.3)
    with pytest.raises(NotImplementedError, match="`alpha` of entmax has no derivative in forward mode; detach it"):
        torch.func.jvp(lambda alpha: entmax(x, alpha), (alpha,), (torch.ones(()),))
    _, tangent = torch.func.jvp(lambda x: entmax(x, alpha), (x,), (torch.ones_like(x),))
    torch.testing.assert_close(tangent, torch.zeros_like(x), rtol=0, atol=1e-6)  # a shift changes nothing


@each
def test_masked_attention_is_one_graph(normalizer):
    torch.compiler.reset()
    q, k, v = scores(3, 2, 2, 6, 4).unbind(0)
    mask = torch.ones(2, 1, 6, 6, dtype=torch.bool).tril()
    mask[0, :, 2] = False  # an empty row
    compiled = torch.compile(partial(attention, normalizer=normalizer), backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(q, k, v, mask)[0], attention(q, k, v, mask, normalizer=normalizer)[0])


@each
def test_masked_attention_needs_no_data(normalizer):
    def shapes():
        q, mask = torch.empty(2, 2, 6, 4), torch.ones(2, 1, 6, 6, dtype=torch.bool)
        return [x.shape for x in attention(q, q, q, mask, normalizer=normalizer)]

    with FakeTensorMode():
        fake = shapes()
    with torch.device("meta"):
        meta = shapes()
    assert fake == meta == [(2, 2, 6, 4), (2, 2, 6, 6)]


@each
def test_vmap_may_map_a_mask(normalizer):
    q, masks = scores(3, 1, 2, 6, 4), scores(3, 1, 1, 6, 6) > -1
    masks[0, ..., 2, :] = False  # an empty row

    def attend(q, mask):
        return attention(q, q, q, mask, normalizer=normalizer)[0]

    expected = torch.stack([attend(*pair) for pair in zip(q, masks, strict=True)])
    torch.testing.assert_close(torch.vmap(attend)(q, masks), expected)


def test_forward_mode_of_attention_is_reverse_mode():
    q, tangent = scores(2, 1, 2, 6, 4, dtype=torch.float64).unbind(0)

    def attend(q):
        return attention(q, q, q)[0]

    _, forward = torch.func.jvp(attend, (q,), (tangent,))
    torch.testing.assert_close(forward, torch.autograd.functional.jvp(attend, q, tangent)[1])
