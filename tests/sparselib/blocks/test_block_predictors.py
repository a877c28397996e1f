"""Block predictors against double loops, what holds for each of them, and that version 2 takes memory linear in n."""

import pytest
import torch
from drawing import drawn
from hypothesis import given, settings
from hypothesis import strategies as st

from sparselib.blocks import ClusteredBlocks, NearestBlocks


def centers(clusters=5):
    return drawn(2, clusters, 4, seed=1, dtype=torch.float64)


PREDICTORS = {
    "nearest": NearestBlocks(3),
    "nearest, dot": NearestBlocks(3, "dot"),
    "clustered": ClusteredBlocks(centers(), 2),
}


@pytest.fixture(params=PREDICTORS)
def predictor(request):
    return PREDICTORS[request.param]


def listed(case, predictor):
    """The lists of real queries as sets: {(b, h, i): {j, ...}}; padded queries have none."""
    found = case.predict(predictor)
    n = case.q.shape[2]
    assert found.dtype == torch.int64
    assert found.shape == (*case.q.shape[:3], min(predictor.count, n))
    rows = {}
    for b, h, i in torch.cartesian_prod(*map(torch.arange, found.shape[:3])).tolist():
        row = [j for j in found[b, h, i].tolist() if j != n]
        assert len(set(row)) == len(row)
        if i < case.lengths[b]:
            rows[b, h, i] = set(row)
        else:
            assert row == []
    return rows


def visible(case, b, i):
    return range(i + 1 if case.causal else case.lengths[b])


@pytest.mark.parametrize("count", [1, 3, 40])
@pytest.mark.parametrize("metric", ["sq_euclidean", "dot"])
def test_nearest_equals_its_loop(case, count, metric):
    for (b, h, i), found in listed(case, NearestBlocks(count, metric)).items():
        q, k = case.q[b, h, i], case.k[b, h]
        far = {j: ((q - k[j]) ** 2).sum() if metric == "sq_euclidean" else -(q @ k[j]) for j in visible(case, b, i)}
        assert found == set(sorted(far, key=far.get)[:count])


def test_nearest_in_parts_is_nearest_at_once(monkeypatch):
    q, k = drawn(2, 2, 2, 50, 4)
    at_once = NearestBlocks(4).predict(q, k)
    monkeypatch.setattr("sparselib.blocks.predictors._SCORES", 1000)
    assert torch.equal(NearestBlocks(4).predict(q, k), at_once)


@pytest.mark.parametrize("count", [1, 3, 40])
@pytest.mark.parametrize("clusters", [1, 5])
def test_clustered_equals_its_loop(case, clusters, count):
    centroids = centers(clusters)

    def nearest(side, b, h, c):
        x = getattr(case, side)[b, h]
        return sorted(range(case.lengths[b]), key=lambda i: ((x[i] - centroids[h, c]) ** 2).sum())[:count]

    for (b, h, i), found in listed(case, ClusteredBlocks(centroids, count)).items():
        owner = next((c for c in range(clusters) if i in nearest("q", b, h, c)), None)
        keys = set() if owner is None else set(nearest("k", b, h, owner))
        assert found == keys & set(visible(case, b, i))


def test_some_queries_are_picked_by_nobody(case):
    """They have no learned block."""
    if max(case.lengths) == 16:
        assert any(row == set() for row in listed(case, ClusteredBlocks(centers(), 1)).values())


def test_padding_changes_nothing(predictor):
    """Whatever it holds, and however much of it there is."""
    q, k = drawn(2, 3, 2, 12, 4, dtype=torch.float64)
    lengths = [12, 5, 1]
    reference = predictor.predict(q, k, lengths=lengths)
    longer = [torch.nn.functional.pad(x, (0, 0, 0, 7), value=torch.nan) for x in (q, k)]
    padded = predictor.predict(*longer, lengths=lengths)
    assert torch.equal(padded[:, :, :12].masked_fill(padded[:, :, :12] == 19, 12), reference)
    assert (padded[:, :, 12:] == 19).all()


def test_no_global_randomness(predictor):
    q, k = drawn(2, 3, 2, 12, 4, dtype=torch.float64)
    before = torch.get_rng_state()
    assert torch.equal(predictor.predict(q, k), predictor.predict(q, k, lengths=[12, 12, 12]))
    assert torch.equal(before, torch.get_rng_state())


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(sorted(PREDICTORS)), lengths=st.lists(st.integers(1, 20), min_size=1, max_size=3),
    causal=st.booleans(), seed=st.integers(0, 100),
)  # fmt: skip
def test_a_list_holds_no_padding_no_future_and_no_block_twice(name, lengths, causal, seed):
    n = max(lengths)
    q, k = drawn(2, len(lengths), 2, n, 4, seed=seed, dtype=torch.float64)
    found = PREDICTORS[name].predict(q, k, lengths=lengths, causal=causal)
    for b, length in enumerate(lengths):
        for i in range(n):
            for row in found[b, :, i].tolist():
                real = [j for j in row if j != n]
                assert len(set(real)) == len(real)
                assert all(0 <= j < min(length, i + 1 if causal else n) for j in real)
                assert real == [] or i < length


@pytest.mark.parametrize(("name", "bad"), [("q", torch.nan), ("k", torch.inf)])
def test_refuses_values_that_are_not_finite(predictor, name, bad):
    q, k = torch.zeros(2, 3, 2, 6, 4)
    (q if name == "q" else k)[1, 1, 2, 3] = bad
    with pytest.raises(ValueError, match=f"`{name}` must be finite"):
        predictor.predict(q, k)


@pytest.mark.parametrize("lengths", [[-1, 3, 3], [3, 3, 7], [3, 3]])
def test_refuses_wrong_lengths(predictor, lengths):
    with pytest.raises(ValueError, match="lengths"):
        predictor.predict(torch.zeros(3, 2, 6, 4), torch.zeros(3, 2, 6, 4), lengths=lengths)


@pytest.mark.parametrize("shape", [(3, 6, 4), (2, 2, 6, 4), (3, 2, 7, 4), (3, 2, 6, 5)])
def test_refuses_mismatched_shapes(predictor, shape):
    with pytest.raises(ValueError, match="`q` and `k`"):
        predictor.predict(torch.zeros(3, 2, 6, 4), torch.zeros(shape))


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: NearestBlocks(0), "count"),
        (lambda: NearestBlocks(2, "cosine"), "metric"),
        (lambda: ClusteredBlocks(torch.zeros(2, 0, 4), 2), "centroids"),
        (lambda: ClusteredBlocks(torch.zeros(2, 3, 4), 0), "count"),
    ],
)
def test_bad_arguments_are_named(make, name):
    with pytest.raises(ValueError, match=name):
        make()


@pytest.mark.parametrize("shape", [(1, 5, 4), (2, 5, 3)])
def test_centroids_must_match_heads_and_dimension(shape):
    with pytest.raises(ValueError, match="centroids"):
        ClusteredBlocks(torch.ones(shape), 2).predict(torch.zeros(3, 2, 6, 4), torch.zeros(3, 2, 6, 4))


def test_a_sentence_without_blocks_has_none(predictor):
    q, k = drawn(2, 3, 2, 6, 4)
    found = predictor.predict(q, k, lengths=[0, 6, 4])
    assert (found[0] == 6).all()
    assert (found[1] < 6).any()
