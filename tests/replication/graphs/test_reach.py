"""What is reached in two steps, against the search for a position in between."""

import pytest
import torch
from drawing import drawn_mask
from hypothesis import given, settings
from hypothesis import strategies as st

from replication.graphs.reach import _path, factorised_reach, two_steps
from sparselib import masks


@given(n=st.integers(1, 8), seed=st.integers(0, 99))
@settings(deadline=None)
def test_two_steps_go_through_some_position(n, seed):
    second, first = drawn_mask(2, n, n, density=0.3, seed=seed)
    found = two_steps(second, first)
    for i in range(n):
        for j in range(n):
            assert found[i, j] == any(second[i, a] and first[a, j] for a in range(n))


def test_factorised_patterns_are_measured_as_by_hand():
    """Sixteen positions in blocks of four, whose last columns are the summaries."""
    table = factorised_reach((16,)).set_index(["pattern", "heads"])
    own_block = 4 * (1 + 2 + 3 + 4)
    summaries = sum(1 for i in range(16) for j in (3, 7, 11, 15) if j <= i)
    assert table.loc[("fixed", "interleaved"), "keys"] == (own_block + summaries) / 2 / 16
    assert table.loc[("fixed", "per_head"), "keys"] == (own_block + summaries) / 2 / 16
    assert (table["path"] == 3).all()
    assert (table["reached"] == 1).all()


def test_the_path_of_a_window_is_as_long_as_it_takes():
    """Nine positions, each sees the one before: eight layers, through nine positions; two layers reach 9 + 8 + 7 of 45."""
    window = masks.to_dense(masks.intersection(masks.causal(), masks.sliding_window(3)), 1, 1, 9)[0]
    assert _path([window, window]) == (9, pytest.approx((9 + 8 + 7) / 45))


def test_layers_that_never_reach_everything_are_an_error():
    with pytest.raises(ValueError, match="never reach every earlier position"):
        _path([torch.eye(5, dtype=torch.bool)[None]])
