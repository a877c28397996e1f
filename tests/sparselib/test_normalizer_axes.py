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
