"""What may be seen: real tokens, and no future ones."""

import pytest

from sparselib.masks import visible_pairs


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
