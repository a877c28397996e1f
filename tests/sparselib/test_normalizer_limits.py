"""Normalisers where float32 runs out of digits: alphas near 1, and very long rows."""

import math
import sys

import pytest
import torch
from entmax import entmax15 as sorted_entmax15
from entmax import sparsemax as sorted_sparsemax
from test_normalizers import drawn_scores, gradient

from sparselib import Entmax, entmax, entmax15, sparsemax
from sparselib.kernels.threshold import threshold

#: Largest error of float32 and float64.
TOLERANCE = {torch.float32: 1e-6, torch.float64: 1e-12}
#: What `test_near_one_equals_bisection` adds to 1.
EXCESSES = [0.0, 1e-12, 1e-8, 2**-23, 1e-6, 1e-4, 1e-3, 1e-2, 0.1]


def bisected(scores, excess):
    """Return the alpha-entmax for ``excess = alpha - 1``, by bisection in float64; `excess` may be negative."""
    x = scores.double() - scores.double().amax(-1, keepdim=True)

    def weights(t):
        y = x - t
        return (y if excess == 0 else (excess * y).clamp_min(-1).log1p() / excess).exp()

    low, high = (
        torch.zeros(*x.shape[:-1], 1).double(),
        torch.full((*x.shape[:-1], 1), math.log(x.shape[-1]) + 1).double(),
    )
    for _ in range(70):
        middle = (low + high) / 2
        too_low = weights(middle).sum(-1, keepdim=True) > 1
        low, high = torch.where(too_low, middle, low), torch.where(too_low, high, middle)
    return weights(low)


@pytest.mark.parametrize("per_head", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("excess", [1e-15, 1e-10, 1e-8, 1e-7, 1e-6])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_alpha_near_one_is_softmax(dtype, excess, scale, masked, per_head):
    alpha = torch.full((3, 1, 1), 1 + excess, dtype=torch.float64) if per_head else 1 + excess
    scores, upstream = (
        drawn_scores((2, 3, 5, 40), scale, dtype, masked),
        drawn_scores((2, 3, 5, 40), dtype=dtype, seed=1),
    )
    tolerance = 1e-3 if dtype == torch.float16 else 1e-5
    expected = scores.softmax(-1), gradient(lambda z: z.softmax(-1), scores, upstream)
    found = entmax(scores, alpha), gradient(lambda z: entmax(z, alpha), scores, upstream)
    torch.testing.assert_close(found, expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("excess", EXCESSES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_near_one_equals_bisection(dtype, excess, scale):
    """Values, and the gradient of alpha against a difference of fourth order, which also steps below alpha = 1."""
    scores, upstream = drawn_scores((3, 4, 30), scale, dtype), drawn_scores((3, 4, 30), dtype=dtype, seed=1)
    alpha = torch.full((3, 1, 1), 1 + excess, dtype=dtype, requires_grad=True)
    excess = float(alpha.detach()[0] - 1)
    probabilities = entmax(scores, alpha)
    error = (probabilities.detach().double() - bisected(scores, excess)).abs().max()
    assert error < TOLERANCE[dtype]
    (found,) = torch.autograd.grad((probabilities * upstream).sum(), alpha)
    step = 1e-3 if excess < 0.05 else 1e-5
    totals = {k: (bisected(scores, excess + k * step) * upstream).sum((1, 2)) for k in (-2, -1, 1, 2)}
    expected = (8 * (totals[1] - totals[-1]) - (totals[2] - totals[-2])) / (12 * step)
    torch.testing.assert_close(found.flatten().double(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("alpha", [1.0001, 1.01, 1.1, 1.3, 1.7, 1.95, 2.0])
def test_float32_equals_float64_for_any_alpha(alpha):
    scores, upstream = (
        drawn_scores((3, 4, 200), 2.0, torch.float32),
        drawn_scores((3, 4, 200), dtype=torch.float32, seed=1),
    )
    found = []
    for dtype in (torch.float32, torch.float64):
        inputs = scores.to(dtype).requires_grad_(), torch.full((3, 1, 1), alpha).to(dtype).requires_grad_()
        probabilities = entmax(*inputs)
        gradients = torch.autograd.grad((probabilities * upstream).sum(), inputs)
        found.append([x.detach().double() for x in (probabilities, *gradients)])
    torch.testing.assert_close(*found, rtol=1e-5, atol=2e-6)
    assert (found[0][0].sum(-1) - 1).abs().max() < 1e-6


@pytest.mark.parametrize("logit", [-12.0, -17.5, -100.0])
def test_learned_alphas_may_round_to_one(logit):
    """The error of `entmax` recommends 1 + sigmoid(x), which float32 rounds to 1."""
    scores, upstream = drawn_scores((4, 9), 2.0, torch.float32), drawn_scores((4, 9), dtype=torch.float32, seed=1)
    alpha = (1 + torch.tensor(logit).sigmoid()).requires_grad_()
    probabilities = entmax(scores, alpha)
    torch.testing.assert_close(probabilities, scores.softmax(-1), rtol=0, atol=1e-5)
    (found,) = torch.autograd.grad((probabilities * upstream).sum(), alpha)
    p = scores.double().softmax(-1)
    squares = p.log().square()
    # The limit of the derivative by alpha.
    expected = (upstream * p * ((p * squares).sum(-1, keepdim=True) - squares)).sum() / 2
    torch.testing.assert_close(found.double(), expected, rtol=1e-3, atol=0)


def test_alphas_up_to_two_do_not_import_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "entmax", None)
    scores = drawn_scores((3, 5, 9), dtype=torch.float32)
    assert torch.equal(entmax(scores, torch.tensor(2.0)) > 0, sparsemax(scores) > 0)
    found = entmax(scores, torch.tensor([1.0, 1.5, 2.0])[:, None, None])
    expected = torch.stack([scores[0].softmax(-1), entmax15(scores[1]), sparsemax(scores[2])])
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)
    torch.testing.assert_close(entmax(torch.tensor([0.0, -1, -1]), torch.tensor(2.0)), torch.tensor([1.0, 0, 0]))
    upstream = drawn_scores((3, 5, 9), dtype=torch.float32, seed=1)
    slopes = (gradient(f, scores, upstream) for f in (lambda z: entmax(z, torch.tensor(2.0)), sparsemax))
    torch.testing.assert_close(*slopes, rtol=0, atol=1e-6)


def test_alphas_from_one_to_three_in_one_tensor():
    scores = drawn_scores((3, 9))
    alpha = torch.tensor([[1.0], [2.0], [3.0]], dtype=torch.float64, requires_grad=True)
    found = entmax(scores, alpha)
    expected = torch.stack([scores[0].softmax(-1), sparsemax(scores[1]), entmax(scores[2], 3.0)])
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-9)
    (slopes,) = torch.autograd.grad((found * scores).sum(), alpha)
    assert slopes.isfinite().all()


LONG_ROWS = {
    "zeros": lambda keys: torch.zeros(1, keys),
    "equal": lambda keys: torch.full((1, keys), 7.3),
    "within 1e-6": lambda keys: 1 + 1e-6 * torch.rand(1, keys, generator=torch.Generator().manual_seed(0)),
    "within 1e-3": lambda keys: 1e-3 * torch.rand(1, keys, generator=torch.Generator().manual_seed(0)),
    "drawn": lambda keys: drawn_scores((1, keys), dtype=torch.float32),
}


@pytest.mark.parametrize("keys", [9_999, 99_999, 10**6])
@pytest.mark.parametrize("row", LONG_ROWS)
def test_long_rows_sum_to_one(row, keys):
    scores = LONG_ROWS[row](keys)
    for normalizer in (entmax15, sparsemax, Entmax(1.0001), Entmax(1.3), Entmax(1.7)):
        assert abs(normalizer(scores).double().sum() - 1) < 1e-6, normalizer


@pytest.mark.parametrize("row", LONG_ROWS)
@pytest.mark.parametrize(("ours", "theirs"), [(entmax15, sorted_entmax15), (sparsemax, sorted_sparsemax)])
def test_long_rows_have_the_support_of_sorting(ours, theirs, row):
    scores = LONG_ROWS[row](10**6)
    assert torch.equal(ours(scores) > 0, theirs(scores.double(), dim=-1) > 0)


@pytest.mark.parametrize("alpha", [1.5, 2.0])
@pytest.mark.parametrize("keys", [9_999, 99_999, 10**6])
def test_thresholds_of_long_rows(keys, alpha):
    u = torch.empty(1, keys)
    threshold(torch.zeros(1, keys), alpha, u)
    assert abs(u.double().pow(1 / (alpha - 1)).sum() - 1) < 1e-5
