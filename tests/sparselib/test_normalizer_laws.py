"""Laws that every normaliser obeys, on a lattice of scores, so that ties are common."""

from fractions import Fraction

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from sparselib import entmax, entmax15, sparsemax, topk_softmax

NORMALIZERS = {
    "entmax15": entmax15,
    "sparsemax": sparsemax,
    "softmax": lambda scores: entmax(scores, 1),
    "alpha 1.25": lambda scores: entmax(scores, 1.25),
    "alpha 1.75": lambda scores: entmax(scores, 1.75),
    "top 3": lambda scores: topk_softmax(scores, 3),
}

quarters = st.integers(-24, 24).map(lambda number: number / 4)
rows = arrays("float64", array_shapes(min_dims=2, max_dims=2, max_side=12), elements=quarters).map(torch.from_numpy)
law = settings(deadline=None, max_examples=60)


@pytest.fixture(params=NORMALIZERS, scope="module")
def normalizer(request):
    return NORMALIZERS[request.param]


@given(scores=rows)
@law
def test_rows_are_distributions(normalizer, scores):
    probabilities = normalizer(scores)
    assert (probabilities >= 0).all()
    assert (probabilities.sum(-1) - 1).abs().max() < 1e-12


@given(scores=rows)
@law
def test_a_larger_score_never_gets_less(normalizer, scores):
    assert (normalizer(scores).gather(-1, scores.argsort(-1)).diff(dim=-1) >= -1e-15).all()


@given(scores=rows, shift=st.integers(-100, 100))
@law
def test_a_shift_changes_nothing(normalizer, scores, shift):
    torch.testing.assert_close(normalizer(scores + shift), normalizer(scores), rtol=0, atol=1e-12)


@given(scores=rows, random=st.randoms(use_true_random=False))
@law
def test_a_permutation_permutes(normalizer, scores, random):
    order = torch.tensor(random.sample(range(scores.shape[-1]), scores.shape[-1]))
    torch.testing.assert_close(normalizer(scores[:, order]), normalizer(scores)[:, order], rtol=0, atol=1e-12)


@given(scores=rows)
@law
@pytest.mark.parametrize(("sparse", "scale", "power"), [(entmax15, Fraction(1, 2), 2), (sparsemax, Fraction(1), 1)])
def test_support_in_exact_arithmetic(sparse, scale, power, scores):
    """A key has weight iff the row would sum to less than one with tau at its score; rounding decides only on a tie."""
    for row, probabilities in zip(scores.tolist(), sparse(scores).tolist(), strict=True):
        x = [Fraction(score) * scale for score in row]
        for own, probability in zip(x, probabilities, strict=True):
            total = sum((other - own) ** power for other in x if other > own)
            if total == 1:
                assert probability < 1e-15
            else:
                assert (probability > 0) == (total < 1)
