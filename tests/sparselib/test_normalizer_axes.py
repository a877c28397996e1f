"""Signatures of the entmax package: any axis, an alpha for each head, and a normaliser that knows its alpha."""

import pytest
import torch
from test_normalizers import PAIRS, drawn_scores, gradient

from sparselib import Entmax, entmax, entmax15, normalizers, sparsemax, topk_softmax


@pytest.mark.parametrize("dim", [0, 1, -1, -2])
@pytest.mark.parametrize("name", PAIRS)
def test_any_axis_is_the_last_one_moved(name, dim):
    """Values and gradients; signatures are those of the entmax package."""
    functions = {
        "entmax15": (entmax15, {}),
        "sparsemax": (sparsemax, {}),
        "topk": (topk_softmax, {"k": 3}),
    } | {f"alpha {alpha}": (entmax, {"alpha": float(alpha)}) for alpha in ("1", "1.25", "1.5", "2")}
    function, arguments = functions[name]
    scores = drawn_scores((5, 6, 7))
    moved = function(scores.movedim(dim, -1), **arguments).movedim(-1, dim)
    torch.testing.assert_close(function(scores, dim=dim, **arguments), moved, rtol=0, atol=1e-15)
    torch.testing.assert_close(
        function(scores, dim=dim, **arguments).sum(dim), torch.ones(moved.sum(dim).shape).double()
    )
    upstream = drawn_scores((5, 6, 7), seed=1)
    along = gradient(lambda x: function(x, dim=dim, **arguments), scores, upstream)
    last = gradient(lambda x: function(x, **arguments), scores.movedim(dim, -1), upstream.movedim(dim, -1))
    torch.testing.assert_close(along, last.movedim(-1, dim), rtol=0, atol=1e-15)


def test_an_alpha_for_each_head_fits_any_axis():
    scores = drawn_scores((2, 3, 4, 5))
    alpha = torch.tensor([1.2, 1.5, 1.9], dtype=torch.float64)[:, None, None]
    found = entmax(scores, alpha, dim=2)
    torch.testing.assert_close(found, entmax(scores.transpose(2, 3), alpha).transpose(2, 3), rtol=0, atol=1e-12)


@pytest.mark.parametrize("alpha", [1, 1.25, 1.5, 2])
def test_entmax_of_one_alpha_knows_it(alpha):
    scores = drawn_scores((3, 9))
    assert torch.equal(Entmax(alpha)(scores), entmax(scores, alpha))
    assert torch.equal(Entmax(alpha)(scores, dim=0), entmax(scores, alpha, dim=0))
    assert normalizers.alpha_of(Entmax(alpha)) == alpha
    assert Entmax(alpha) == Entmax(float(alpha))
    with pytest.raises(ValueError, match="`alpha` must be at least 1"):
        Entmax(0.5)


EVERY = {
    "entmax15": entmax15,
    "sparsemax": sparsemax,
    "entmax": lambda scores, dim=-1: entmax(scores, 1.3, dim),
    "alpha per row": lambda scores, dim=-1: entmax(scores, torch.full((1,) * scores.ndim, 1.3), dim),
    "alpha 1": lambda scores, dim=-1: entmax(scores, 1, dim),
    "alpha 3": lambda scores, dim=-1: entmax(scores, 3.0, dim),
    "top 3": lambda scores, dim=-1: topk_softmax(scores, 3, dim),
    "top 99": lambda scores, dim=-1: topk_softmax(scores, 99, dim),
    "Entmax": Entmax(1.5),
}


@pytest.mark.parametrize("shape", [(), (5,), (2, 3, 4, 5), (3, 0)], ids=str)
@pytest.mark.parametrize("name", EVERY)
def test_axes_out_of_range_raise_the_error_of_softmax(name, shape):
    scores = torch.zeros(shape)
    last = max(scores.ndim, 1) - 1
    for dim in (-last - 3, -last - 2, last + 1, last + 4):
        with pytest.raises(IndexError) as expected:
            scores.softmax(dim)
        with pytest.raises(IndexError) as found:
            EVERY[name](scores, dim)
        assert str(found.value) == str(expected.value)


@pytest.mark.parametrize("dim", [0, -1])
@pytest.mark.parametrize("name", EVERY)
def test_a_single_number_gets_weight_one(name, dim):
    scores = torch.tensor(3.0, requires_grad=True)
    probability = EVERY[name](scores, dim)
    assert probability.shape == ()
    assert probability == 1
    probability.backward()
    assert scores.grad == 0


@pytest.mark.parametrize(("shape", "dim"), [((0,), 0), ((3, 0), -1), ((3, 0), 0), ((0, 3), 1), ((2, 0, 4), 1)])
@pytest.mark.parametrize("name", EVERY)
def test_empty_scores_stay_empty(name, shape, dim):
    scores = torch.empty(shape, requires_grad=True)
    probabilities = EVERY[name](scores, dim)
    assert probabilities.shape == scores.shape
    probabilities.sum().backward()
    assert scores.grad.shape == scores.shape


def test_empty_rows_give_alpha_no_gradient():
    alpha = torch.full((3, 1), 1.3, requires_grad=True)
    entmax(torch.empty(3, 0), alpha).sum().backward()
    assert alpha.grad.tolist() == [[0], [0], [0]]
