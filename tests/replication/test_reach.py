"""What is reached in two steps, against the search for a position in between."""

from drawing import drawn_mask
from hypothesis import given, settings
from hypothesis import strategies as st

from replication.reach import two_steps


@given(n=st.integers(1, 8), seed=st.integers(0, 99))
@settings(deadline=None)
def test_two_steps_go_through_some_position(n, seed):
    second, first = drawn_mask(2, n, n, density=0.3, seed=seed)
    found = two_steps(second, first)
    for i in range(n):
        for j in range(n):
            assert found[i, j] == any(second[i, a] and first[a, j] for a in range(n))
