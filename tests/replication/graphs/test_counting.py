"""Counting every window at once against one window at a time."""

import numpy as np
import pytest
import torch
from drawing import drawn, drawn_mask

from replication.graphs.counting import Counter, pack
from replication.graphs.shards import Batch
from sparselib.masks.combine import combine
from sparselib.metrics import empty_rows, exact_fraction
from sparselib.predictors import (
    BigBird,
    Clustering,
    Distance,
    Hashing,
    Longformer,
    Nothing,
    Quantization,
    Routing,
    TopK,
)

HEADS, PROJECTED = 2, 4
WINDOWS = [0, 1, 2, 3, 6, 7, 50, 140]


def make_batch(lengths, causal):
    shape = len(lengths), HEADS, max(lengths), 8
    return Batch(drawn(*shape) * 1.5, drawn(*shape, seed=1) * 1.5, torch.tensor(lengths), causal)


@pytest.fixture(params=["bidirectional", "causal"])
def causal(request):
    return request.param == "causal"


# One word of 64 keys and more; exactly one; ragged; single tokens.
@pytest.fixture(params=[[9, 4, 1], [1, 1], [64, 63], [130, 65, 2]], ids=str)
def batch(request, causal):
    return make_batch(request.param, causal)


@pytest.fixture(params=["none", "first", "first_last"])
def global_tokens(request):
    return request.param


def one_window_at_a_time(batch, predicted, windows, global_tokens):
    """Predicted edges, hits, exact rows, and rows that the predicted graph alone leaves empty, each `[B, H, W]`."""
    limits = {"lengths": batch.lengths, "causal": batch.causal}
    graphs = [combine(predicted, window, global_tokens, **limits) for window in windows]
    found = [
        (
            graph.sum((2, 3)),
            (graph & batch.gold).sum((2, 3)),
            (exact_fraction(graph, batch.gold, **limits) * batch.lengths[:, None]).round().long(),
            empty_rows(predicted, **limits),
        )
        for graph in graphs
    ]
    return [torch.stack(measure, dim=-1) for measure in zip(*found, strict=True)]


def assert_counts(counts, member, expected):
    for name, count in zip(("predicted", "hits", "exact_rows", "keyless_rows"), expected, strict=True):
        np.testing.assert_array_equal(getattr(counts, name)[member], count, err_msg=name)


PREDICTORS = {
    "nothing": Nothing(),
    "distance": Distance(2.0),
    "quantization": Quantization(3),
    "clustering": Clustering(drawn(HEADS, 5, PROJECTED, seed=2), 2),
    "routing": Routing(drawn(HEADS, 3, PROJECTED, seed=3)),
    "hashing": Hashing(4, 2),
    "topk": TopK(3),
    "longformer": Longformer(2),
    "bigbird": BigBird(3),
}


@pytest.mark.parametrize("name", PREDICTORS)
def test_a_predicted_graph(batch, global_tokens, name):
    q, k = batch.q[..., :PROJECTED], batch.k[..., :PROJECTED]
    predicted = PREDICTORS[name].predict(q, k, lengths=batch.lengths, causal=batch.causal)
    counts = Counter(batch, WINDOWS, global_tokens).count(pack(predicted))
    assert_counts(counts, 0, one_window_at_a_time(batch, predicted, WINDOWS, global_tokens))


@pytest.mark.parametrize("limits", [[0.0, 0.5, 2.0, 10.0, 1e6], [3.0]])
def test_every_threshold_of_a_distance(batch, global_tokens, limits):
    q, k = batch.q[..., :PROJECTED].contiguous(), batch.k[..., :PROJECTED].contiguous()
    counts = Counter(batch, WINDOWS, global_tokens).count_thresholds(q, k, limits)
    assert len(counts.predicted) == len(limits)
    for member, limit in enumerate(limits):
        predicted = Distance(limit).predict(q, k, lengths=batch.lengths, causal=batch.causal)
        assert_counts(counts, member, one_window_at_a_time(batch, predicted, WINDOWS, global_tokens))


@pytest.mark.parametrize("windows", [[0], [5], [1, 4]])
def test_any_windows(windows, causal):
    batch = make_batch([20, 7], causal)
    predicted = Distance(2.0).predict(batch.q, batch.k, lengths=batch.lengths, causal=causal)
    expected = one_window_at_a_time(batch, predicted, windows, "none")
    assert_counts(Counter(batch, windows, "none").count(pack(predicted)), 0, expected)
    assert_counts(Counter(batch, windows, "none").count_thresholds(batch.q, batch.k, [2.0]), 0, expected)


def test_more_windows_than_a_byte_can_number():
    batch = make_batch([300], False)
    windows = list(range(290))
    counts = Counter(batch, windows, "none").count_thresholds(batch.q, batch.k, [2.0])
    last = Counter(batch, windows[-1:], "none").count_thresholds(batch.q, batch.k, [2.0])
    np.testing.assert_array_equal(counts.predicted[..., -1:], last.predicted)


def test_a_pair_at_the_limit_is_covered_and_padding_may_hold_anything(causal):
    q = torch.zeros(2, HEADS, 5, PROJECTED)
    k = torch.zeros(2, HEADS, 5, PROJECTED)
    k[:, :, 1] = 1.0  # 4 away from every query
    q[1, :, 3:] = k[1, :, 3:] = 1e4
    batch = Batch(q, k, torch.tensor([5, 3]), causal)
    counts = Counter(batch, [0], "none").count_thresholds(q, k, [3.9, 4.0])
    visible = batch.visible.sum((1, 2, 3))
    beyond = batch.visible[..., 1].sum((1, 2))  # the pairs with the second key
    np.testing.assert_array_equal(counts.predicted[0, :, 0, 0], visible - beyond)
    np.testing.assert_array_equal(counts.predicted[1, :, 0, 0], visible)


def test_sizes(batch):
    counter = Counter(batch, [0], "none")
    n = batch.lengths
    np.testing.assert_array_equal(counter.gold_size, batch.gold.sum((2, 3)))
    np.testing.assert_array_equal(counter.visible_size, n * (n + 1) // 2 if batch.causal else n * n)
    np.testing.assert_array_equal(counter.rows_per_sentence, n)


@pytest.mark.parametrize("keys", [1, 7, 8, 63, 64, 65, 130, 200])
def test_packed_words_hold_key_j_in_bit_j(keys):
    graph = drawn_mask(2, 3, keys, density=0.5, seed=keys)
    words = pack(graph)
    assert words.shape == (2, 3, -(-keys // 64))
    assert words.dtype == np.uint64
    for (i, j), row in zip(np.ndindex(2, 3), words.reshape(6, -1).tolist(), strict=True):
        bits = sum(word << 64 * number for number, word in enumerate(row))
        assert bits == sum(1 << key for key in range(keys) if graph[i, j, key])


@pytest.mark.parametrize("windows", [[3, 1], [1, 1], [-1, 0]])
def test_windows_must_be_distinct_increasing_and_not_negative(windows):
    with pytest.raises(ValueError, match="windows must be distinct"):
        Counter(make_batch([3], False), windows, "none")


def test_unknown_global_tokens_are_refused():
    with pytest.raises(ValueError, match="`global_tokens` must be one of"):
        Counter(make_batch([3], False), [0], "last")
