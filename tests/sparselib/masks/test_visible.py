"""Visible pairs, and the lengths and causality that describe them."""

import pytest
import torch

from sparselib.masks import visible_pairs
from sparselib.masks.visible import causal_and_lengths

TRIANGLE = torch.ones(5, 5, dtype=torch.bool).tril()


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("lengths", [None, [0, 4, 6]])
def test_equals_its_loop(lengths, causal):
    visible = visible_pairs(3, 6, 6, lengths, causal)
    assert visible.shape == (3, 1, 6, 6)
    for b, length in enumerate(lengths or [6, 6, 6]):
        for i in range(6):
            for j in range(6):
                assert visible[b, 0, i, j] == (i < length and j < length and (j <= i or not causal))


@pytest.mark.parametrize("lengths", [[-1, 3], [3, 7], [3], [[3, 3]], [3.0, 3.0], []])
def test_lengths_must_be_one_integer_in_0_to_n_per_sentence(lengths):
    with pytest.raises(ValueError, match="lengths"):
        visible_pairs(2, 6, 6, lengths)


@pytest.mark.parametrize("asked", [{"causal": True}, {"lengths": [4]}])
def test_unequal_sides_have_neither_lengths_nor_a_future(asked):
    assert visible_pairs(1, 4, 6).all()
    with pytest.raises(ValueError, match="as many queries as keys"):
        visible_pairs(1, 4, 6, **asked)


def test_masks_of_lengths_and_causality_are_recognised():
    assert causal_and_lengths(None) == (False, None)
    assert causal_and_lengths(torch.ones(2, 1, 5, 5, dtype=torch.bool)) == (False, None)
    assert causal_and_lengths(TRIANGLE.expand(2, 1, 5, 5)) == (True, None)
    assert causal_and_lengths(torch.ones(1, 1, 1, 1, dtype=torch.bool)) == (False, None)  # one token: no rule is needed
    real = torch.arange(5) < torch.tensor([5, 3, 0])[:, None]
    for causal, rule in ((False, torch.ones_like(TRIANGLE)), (True, TRIANGLE)):
        found, lengths = causal_and_lengths(rule & real[:, None, None])
        assert (found, lengths.tolist()) == (causal, [5, 3, 0])


@pytest.mark.parametrize(
    "mask",
    [
        TRIANGLE.flip(1).expand(2, 1, 5, 5),
        (torch.arange(5) > 1).expand(2, 1, 5, 5),
        torch.ones(2, 1, 3, 5, dtype=torch.bool),
        torch.ones(2, 4, 5, 5, dtype=torch.bool),
    ],
)
def test_other_masks_raise(mask):
    with pytest.raises(ValueError, match=r"`mask` must be .* hide only padding on the right"):
        causal_and_lengths(mask)
