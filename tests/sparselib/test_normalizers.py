"""Sparse normalisers against the `entmax` package, and against the definition of the support."""

import entmax as reference
import pytest
import torch

from sparselib import entmax, entmax15, normalizer_rows, sparsemax, topk_softmax
from sparselib.kernels import threshold

SHAPES = [(1,), (3, 1), (4, 2), (2, 3, 17), (40, 128), (2, 2, 3, 512)]


def topk_of_eight(scores):
    """Softmax over the best eight, row by row."""
    rows = []
    for row in scores.reshape(-1, scores.shape[-1]):
        kept = row >= row.sort(descending=True).values[min(8, len(row)) - 1]
        rows.append(torch.where(kept, row, -torch.inf).softmax(0))
    return torch.stack(rows).reshape(scores.shape)


# Ours and its independent twin.
PAIRS = {
    "entmax15": (entmax15, lambda z: reference.entmax15(z, dim=-1)),
    "sparsemax": (sparsemax, lambda z: reference.sparsemax(z, dim=-1)),
    "alpha 1": (lambda z: entmax(z, 1), lambda z: z.softmax(-1)),
    "alpha 1.25": (lambda z: entmax(z, 1.25), lambda z: reference.entmax_bisect(z, 1.25)),
    "alpha 1.5": (lambda z: entmax(z, 1.5), lambda z: reference.entmax15(z, dim=-1)),
    "alpha 2": (lambda z: entmax(z, 2), lambda z: reference.sparsemax(z, dim=-1)),
    "topk": (lambda z: topk_softmax(z, 8), topk_of_eight),
}
ALPHAS = {"entmax15": 1.5, "sparsemax": 2.0}


def drawn_scores(shape, scale=1.0, dtype=torch.float64, masked=False, seed=0):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(shape, generator=generator, dtype=torch.float64) * scale
    if masked:
        hidden = torch.rand(shape, generator=generator) < 0.4
        hidden[..., -1] = False
        scores = scores.masked_fill(hidden, -torch.inf)
    return scores.to(dtype)


def excess(scores, alpha):
    """What the row would sum to, less one, if tau were each score: a key has weight iff this is negative."""
    x = scores.double() * (alpha - 1)
    beyond = (x[..., :, None] - x[..., None, :]).nan_to_num(0.0, posinf=torch.inf).relu()  # -inf - -inf is nan
    return beyond.pow(1 / (alpha - 1)).sum(-2) - 1


def gradient(function, scores, upstream):
    leaf = scores.detach().clone().requires_grad_()
    (found,) = torch.autograd.grad(function(leaf), leaf, upstream)
    return found


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", PAIRS)
def test_values_and_gradients_equal_the_packages(name, shape, scale, masked):
    ours, theirs = PAIRS[name]
    scores = drawn_scores(shape, scale, masked=masked)
    upstream = drawn_scores(shape, seed=1)
    torch.testing.assert_close(ours(scores), theirs(scores), rtol=0, atol=1e-12)
    expected = gradient(theirs, scores, upstream)
    torch.testing.assert_close(gradient(ours, scores, upstream), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("alpha", [1.05, 1.25, 1.75, 2.0])
def test_any_alpha_meets_its_optimality_condition(alpha):
    """p ** (alpha - 1) = (alpha - 1) z - tau on the support, and (alpha - 1) z <= tau off it."""
    scores = drawn_scores((20, 30), 2.0)
    probabilities, x = entmax(scores, alpha), scores * (alpha - 1)
    support = probabilities > 0
    tau = x - probabilities ** (alpha - 1)
    highest, lowest = tau.where(support, -torch.inf).amax(-1), tau.where(support, torch.inf).amin(-1)
    assert (highest - lowest).max() < 1e-10
    assert (x <= highest[:, None] + 1e-12)[~support].all()
    assert (probabilities.sum(-1) - 1).abs().max() < 1e-12


@pytest.mark.parametrize("name", PAIRS)
def test_float32_is_exact_to_a_few_units_in_the_last_place(name):
    ours, theirs = PAIRS[name]
    scores = drawn_scores((50, 128), dtype=torch.float32, masked=True)
    assert (ours(scores).double() - theirs(scores.double())).abs().max() < 5e-7


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("keys", [1, 2, 17, 128, 512])
@pytest.mark.parametrize("name", ALPHAS)
def test_support_equals_its_definition_and_the_packages(name, keys, scale, dtype):
    scores = drawn_scores((30, keys), scale, dtype, masked=True)
    support = PAIRS[name][0](scores) > 0
    assert torch.equal(support, excess(scores, ALPHAS[name]) < 0)
    assert torch.equal(support, PAIRS[name][1](scores.double()) > 0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("name", ["entmax15", "sparsemax", "topk", "alpha 1", "alpha 1.25"])
def test_half_precision_is_the_truth_rounded(name, scale, dtype):
    ours, theirs = PAIRS[name]
    scores = drawn_scores((50, 128), scale, dtype, masked=True)
    probabilities, truth = ours(scores), theirs(scores.double())
    assert probabilities.dtype == dtype
    error = (probabilities.double() - truth).abs()
    assert (error <= truth * torch.finfo(dtype).eps / 2 + 2e-7).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", ["entmax15", "sparsemax"])
def test_half_precision_gradients_are_close_to_the_truth(name, dtype):
    ours, theirs = PAIRS[name]
    scores, upstream = drawn_scores((50, 32), dtype=dtype), drawn_scores((50, 32), dtype=dtype, seed=1)
    found = gradient(ours, scores, upstream)
    assert found.dtype == dtype
    truth = gradient(theirs, scores.double(), upstream.double())
    assert (found.double() - truth).abs().max() < 2 * torch.finfo(dtype).eps


@pytest.mark.parametrize("name", PAIRS)
def test_layout_in_memory_does_not_matter(name):
    ours, _ = PAIRS[name]
    scores = drawn_scores((6, 5, 40))
    for view in (scores.transpose(0, 2), scores[::2, :, 1::3], scores[:, :1].expand(6, 7, 40)):
        assert not view.is_contiguous()
        upstream = torch.ones(1, dtype=view.dtype).expand(view.shape)
        torch.testing.assert_close(ours(view), ours(view.contiguous()), rtol=0, atol=1e-15)
        same = gradient(ours, view.contiguous(), upstream.contiguous())
        torch.testing.assert_close(gradient(ours, view, upstream), same, rtol=0, atol=1e-15)


@pytest.mark.parametrize("function", [entmax15, sparsemax, lambda z: topk_softmax(z, 3)])
def test_gradcheck(function):
    assert torch.autograd.gradcheck(function, drawn_scores((4, 9)).requires_grad_())


def test_scores_are_left_alone():
    scores = drawn_scores((5, 9), masked=True)
    kept = scores.clone()
    for ours, _ in PAIRS.values():
        ours(scores)
    assert torch.equal(scores, kept)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("function", "scores", "expected"),
    [
        (entmax15, [0, -2], [1, 0]),
        (entmax15, [0, -2, -2], [1, 0, 0]),
        (entmax15, [1, 1, 1, 1, 0, 0, -1], [0.25] * 4 + [0] * 3),
        (sparsemax, [0.5, 0.5, 0, 0], [0.5, 0.5, 0, 0]),
        (sparsemax, [0, -1, -1], [1, 0, 0]),
    ],
)
def test_a_key_exactly_at_the_threshold_has_no_weight(function, scores, expected, dtype):
    assert function(torch.tensor(scores, dtype=dtype)).tolist() == expected


def test_topk_keeps_every_tie_with_the_kth():
    scores = torch.tensor([1.0, 0.0, 0.0, 0.0, -1.0])
    assert (topk_softmax(scores, 2) > 0).tolist() == [True, True, True, True, False]
    assert torch.equal(topk_softmax(scores, 5), scores.softmax(-1))
    assert torch.equal(topk_softmax(scores, 9), scores.softmax(-1))


@pytest.mark.parametrize("name", PAIRS)
def test_one_huge_score_takes_all(name):
    ours, _ = PAIRS[name]
    for huge in (1e4, 1e30):
        assert ours(torch.tensor([0.0, huge, -huge, 1.0])).tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize("name", PAIRS)
def test_equal_scores_share(name):
    shares = PAIRS[name][0](torch.full((3, 7), -1e4))
    torch.testing.assert_close(shares, torch.full((3, 7), 1 / 7), rtol=0, atol=1e-7)


@pytest.mark.parametrize("function", [entmax15, sparsemax, lambda z: topk_softmax(z, 2)])
def test_a_row_without_finite_scores_is_nan_and_leaves_the_others_alone(function):
    scores = drawn_scores((3, 8))
    expected = function(scores)
    scores[1] = -torch.inf
    found = function(scores)
    assert found[1].isnan().all()
    torch.testing.assert_close(found[[0, 2]], expected[[0, 2]], rtol=0, atol=0)


@pytest.mark.parametrize("cache", [1, 17, 100, 17 * 16])
@pytest.mark.parametrize("name", ALPHAS)
def test_chunks_do_not_show(name, cache, monkeypatch):
    ours, _ = PAIRS[name]
    scores, upstream = drawn_scores((33, 17)), drawn_scores((33, 17), seed=1)
    whole = ours(scores), gradient(ours, scores, upstream)
    monkeypatch.setattr(normalizer_rows, "CACHE_ELEMENTS", cache)
    torch.testing.assert_close(ours(scores), whole[0], rtol=0, atol=1e-15)
    torch.testing.assert_close(gradient(ours, scores, upstream), whole[1], rtol=0, atol=1e-15)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rows_that_newton_leaves_unsettled_are_sorted(dtype, monkeypatch):
    sorted_rows = []
    sort = threshold._by_sorting
    monkeypatch.setattr(threshold, "STEPS", 0)
    monkeypatch.setattr(threshold, "_by_sorting", lambda x: sorted_rows.append(len(x)) or sort(x))
    scores = drawn_scores((100, 128), dtype=dtype)
    probabilities = entmax15(scores)
    assert sum(sorted_rows) > 50
    assert torch.equal(probabilities > 0, excess(scores, 1.5) < 0)
    error = (probabilities.double() - reference.entmax15(scores.double(), dim=-1)).abs().max()
    assert error < {torch.float32: 1.2e-7, torch.float64: 1e-15}[dtype]  # sums are float64 in both


def test_one_alpha_per_head_is_each_heads_own_and_has_a_gradient():
    scores = drawn_scores((2, 3, 4, 9))
    alpha = torch.tensor([1.2, 1.5, 1.9], dtype=torch.float64).view(3, 1, 1).requires_grad_()
    probabilities = entmax(scores, alpha)
    for head, value in enumerate(alpha.flatten().tolist()):
        torch.testing.assert_close(probabilities[:, head], entmax(scores[:, head], value), rtol=0, atol=1e-12)
    weight = drawn_scores((2, 3, 4, 9), seed=1)
    (found,) = torch.autograd.grad((probabilities * weight).sum(), alpha)
    step = 1e-5
    higher, lower = ((entmax(scores, alpha.detach() + sign * step) * weight).sum((0, 2, 3)) for sign in (1, -1))
    torch.testing.assert_close(found.flatten(), (higher - lower) / (2 * step), rtol=0, atol=1e-4)


def test_gradcheck_of_learned_alphas():
    alpha = torch.tensor([1.05, 1.5, 1.95], dtype=torch.float64).view(3, 1, 1).requires_grad_()
    assert torch.autograd.gradcheck(entmax, (drawn_scores((2, 3, 4, 9)).requires_grad_(), alpha))


@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("masked", [False, True])
def test_learned_alphas_equal_the_packages_values_and_gradients(scale, masked):
    scores, upstream = drawn_scores((2, 4, 5, 40), scale, masked=masked), drawn_scores((2, 4, 5, 40), seed=1)
    alpha = torch.tensor([1.1, 1.4, 1.6, 1.9], dtype=torch.float64).view(4, 1, 1)
    found = []
    for function in (entmax, lambda z, a: reference.entmax_bisect(z, a, dim=-1)):
        inputs = scores.clone().requires_grad_(), alpha.clone().requires_grad_()
        probabilities = function(*inputs)
        found.append((probabilities.detach(), *torch.autograd.grad(probabilities, inputs, upstream)))
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("keys", [1, 2, 17, 512, 5000])
def test_newton_settles_long_before_its_bound(keys, scale, dtype, monkeypatch):
    scores, alpha = drawn_scores((30, keys), scale, dtype), torch.linspace(1.01, 1.99, 30, dtype=dtype)[:, None]
    whole = entmax(scores, alpha)
    monkeypatch.setattr("sparselib.normalizer_rows.MOST_STEPS", 30)
    assert torch.equal(entmax(scores, alpha), whole)
    assert (whole.sum(-1) - 1).abs().max() < 1e-5


def test_alphas_of_two_and_above_are_solved_too():
    scores = drawn_scores((3, 9))
    found = entmax(scores, torch.tensor([[1.5], [2.0], [3.0]], dtype=torch.float64))
    torch.testing.assert_close(found[0], entmax15(scores[0]), rtol=0, atol=1e-9)
    torch.testing.assert_close(found[1], sparsemax(scores[1]), rtol=0, atol=1e-9)
    assert (found.sum(-1) - 1).abs().max() < 1e-9


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda z: entmax(z, 0.99), "alpha"),
        (lambda z: entmax(z, torch.tensor([[1.5], [0.99]])), "alpha"),
        (lambda z: entmax(z, torch.tensor([[1.5], [torch.nan]])), "alpha"),
        (lambda z: topk_softmax(z, 0), "k"),
        (lambda z: entmax(z, torch.full((4,), 1.2)), "alpha"),
        (lambda z: entmax(z, torch.full((1, 1, 1), 1.2)), "alpha"),
        *((lambda z, f=f: f(z.long()), "scores") for f in (entmax15, sparsemax)),
        (lambda z: entmax(z.bool(), 1.2), "scores"),
        (lambda z: topk_softmax(z.long(), 2), "scores"),
    ],
)
def test_errors_name_the_argument(call, named):
    with pytest.raises(ValueError, match=rf"^`{named}` must"):
        call(torch.zeros(2, 4))
