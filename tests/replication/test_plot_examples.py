"""What the illustrations choose to show, against loops."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from replication.plots.examples import least_focused, span_around


@given(n=st.integers(1, 9), width=st.integers(1, 9), seed=st.integers(0, 99))
@settings(deadline=None)
def test_the_least_focused_row_is_the_loops(n, width, seed):
    generator = torch.Generator().manual_seed(seed)
    weights = torch.rand(2, n, n, generator=generator).softmax(-1)
    kept = torch.rand(2, n, n, generator=generator) < 0.3
    cut, extent = {}, {}
    for head in range(2):
        for row in range(n):
            keys = [j for j in range(n) if kept[head, row, j]]
            extent[head, row] = max([row, *keys]) - min([row, *keys]) + 1
            cut[head, row] = sum(float(weights[head, row, j]) for j in range(n) if j not in keys)
    # Where no row fits, as in a barely trained model, those that need the least.
    allowed = max(width, min(extent.values()))
    expected = max(value for place, value in cut.items() if extent[place] <= allowed)
    found = least_focused(weights, kept, width)
    assert cut[found] == pytest.approx(expected)
    assert extent[found] <= allowed
    positions = torch.cat([kept[found].nonzero().flatten(), torch.tensor([found[1]])])
    assert {*positions.tolist()} <= {*range(n)[span_around(positions, width, n)]}


@given(length=st.integers(1, 30), width=st.integers(1, 30), data=st.data())
def test_a_span_holds_what_it_is_around(length, width, data):
    first = data.draw(st.integers(0, length - 1))
    last = data.draw(st.integers(first, min(first + width, length) - 1))
    span = span_around(torch.tensor([last, first]), width, length)
    positions = range(length)[span]
    assert len(positions) == min(width, length)
    assert first in positions
    assert last in positions


def test_a_span_is_centred_where_the_ends_allow():
    assert span_around(torch.tensor([10, 13]), 8, 40) == slice(8, 16)
    assert span_around(torch.tensor([1]), 8, 40) == slice(0, 8)
    assert span_around(torch.tensor([39]), 8, 40) == slice(32, 40)


def test_positions_that_need_more_get_it():
    assert span_around(torch.tensor([11, 3]), 8, 40) == slice(3, 12)
    assert span_around(torch.tensor([39, 0]), 8, 40) == slice(0, 40)
