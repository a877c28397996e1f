"""The sweep's table against measures computed for every sentence, head and window on its own, and averaged by a loop."""

import numpy as np
import pandas as pd
import pytest
import torch
from drawing import drawn

from replication.graphs.grids import expand, predictor_class
from replication.graphs.sweep import MEASURES, sweep_layer
from sparselib.masks.combine import combine
from sparselib.metrics import empty_rows, exact_fraction, precision, recall, sparsity
from sparselib.projections import Projection

LENGTHS = [12, 7, 1, 9]
WINDOWS = [0, 1, 4, 7, 30]
METHODS = {
    "window": {"predictor": "Nothing"},
    "near": {"predictor": "Distance", "threshold": [0.5, 2.0, 8.0]},
    "both": {"predictor": "Distance", "metric": ["sq_euclidean", "euclidean"], "threshold": [0.5, 2.0]},
    "quantization": {"predictor": "Quantization", "bins": [2, 5]},
    "k-means": {"predictor": "Clustering", "clusters": [3, 5], "top_k": [1, 2]},
    "routing": {"predictor": "Routing", "clusters": 3},
    "reformer": {"predictor": "Hashing", "buckets": [2, 4]},
    "longformer": {"predictor": "Longformer", "global_count": [1, 2]},
    "bigbird": {"predictor": "BigBird", "random_keys": 2},
    "top": {"predictor": "TopK", "k": 2},
}
RANDOM = [method for method, section in METHODS.items() if predictor_class(section["predictor"]).needs.seed]
KEY = ["method", "setting", "head", "window"]


PROJECTION = Projection(drawn(2, 4, 3, seed=0) * 0.5, drawn(2, 3, seed=1))
CENTROIDS = {
    "kmeans-3": drawn(2, 3, 3, seed=2),
    "kmeans-5": drawn(2, 5, 3, seed=3),
    "routing-3": drawn(2, 3, 3, seed=4),
}


def sweep(graphs, methods=METHODS, windows=WINDOWS, global_tokens="first_last", seed=7, **settings):
    students = {seed: (PROJECTION, CENTROIDS)}
    return sweep_layer(graphs, students, expand(methods), windows, global_tokens, **settings)


def looped(graphs, global_tokens, seed):
    rows = []
    for member in expand(METHODS):
        for window in WINDOWS:
            sums = np.zeros((len(MEASURES), graphs.heads))
            for number, length in enumerate(LENGTHS):
                batch = graphs.batch(number, number + 1)
                predictor = member.build(CENTROIDS, seed * 100_000_000 + number)
                predicted = predictor.predict(PROJECTION(batch.q), PROJECTION(batch.k), causal=graphs.causal)
                graph = combine(predicted, window, global_tokens, causal=graphs.causal)
                measured = [f(graph, batch.gold, causal=graphs.causal) for f in (recall, precision, exact_fraction)]
                measured.insert(1, sparsity(graph, causal=graphs.causal))
                sums += torch.stack([*measured, empty_rows(predicted, causal=graphs.causal).double() / length])[
                    :, 0
                ].numpy()
            for head, measures in enumerate(sums.T / len(LENGTHS)):
                point = zip(KEY, (member.method, member.setting, head, window), strict=True)
                rows.append(dict(point) | dict(zip(MEASURES, measures, strict=True)))
    return pd.DataFrame(rows)


def assert_same(ours, theirs, columns):
    """In the same order of rows, up to the order of sums."""
    ours, theirs = (table.sort_values(KEY).reset_index(drop=True)[[*KEY, *columns]] for table in (ours, theirs))
    pd.testing.assert_frame_equal(ours, theirs, rtol=0, atol=1e-12, check_dtype=False)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("global_tokens", ["first", "first_last"])
def test_equals_its_loop(graphs_of, causal, global_tokens):
    graphs = graphs_of(LENGTHS, causal=causal)
    assert_same(sweep(graphs, global_tokens=global_tokens), looped(graphs, global_tokens, 7), MEASURES)


def test_equals_its_loop_where_rows_may_be_empty(graphs_of):
    graphs = graphs_of(LENGTHS)
    table = sweep(graphs, global_tokens="none")
    assert (table["keyless"] > 0).any()
    assert_same(table, looped(graphs, "none", 7), MEASURES)


def test_precision_of_a_graph_without_edges_is_that_of_the_metric(graphs_of):
    table = sweep(graphs_of(LENGTHS), {"window": METHODS["window"]}, [0], "none")
    none = torch.zeros(1, 1, 3, 3, dtype=torch.bool)
    assert (table["precision"] == precision(none, ~none).item()).all()


def test_one_row_for_every_member_head_and_window(graphs_of):
    table = sweep(graphs_of(LENGTHS))
    assert list(table) == ["seed", *KEY, *MEASURES, "gold_sparsity"]
    expected = [
        (member.method, member.setting, head, window)
        for member in expand(METHODS)
        for head in range(2)
        for window in WINDOWS
    ]
    assert list(table[KEY].itertuples(index=False, name=None)) == expected


@pytest.mark.parametrize("causal", [False, True])
def test_gold_sparsity_is_per_head_over_sentences(graphs_of, causal):
    graphs = graphs_of(LENGTHS, causal=causal)
    table = sweep(graphs, {"window": METHODS["window"]})
    for head in range(2):
        singles = (graphs.batch(number, number + 1) for number in range(len(LENGTHS)))
        expected = np.mean([sparsity(batch.gold, causal=causal)[0, head] for batch in singles])
        assert table.query("head == @head")["gold_sparsity"].tolist() == pytest.approx([expected] * len(WINDOWS))


@pytest.mark.parametrize("batch_size", [2, 3, 10])
def test_batches_do_not_show_except_in_random_draws(graphs_of, batch_size):
    graphs = graphs_of(LENGTHS)
    methods = {method: section for method, section in METHODS.items() if method not in RANDOM}
    assert_same(sweep(graphs, methods, batch_size=batch_size), sweep(graphs, methods), MEASURES)


def test_same_seed_same_table_and_the_global_generator_untouched(graphs_of):
    graphs = graphs_of(LENGTHS)
    before = torch.get_rng_state()
    pd.testing.assert_frame_equal(sweep(graphs), sweep(graphs), check_exact=True)
    assert torch.equal(before, torch.get_rng_state())


def test_another_seed_changes_the_random_baselines_and_nothing_else(graphs_of):
    graphs = graphs_of(LENGTHS)
    one, other = (sweep(graphs, seed=seed).drop(columns="seed") for seed in (7, 1007))
    for method in METHODS:
        same = one.query("method == @method").equals(other.query("method == @method"))
        assert same == (method not in RANDOM), method


def test_seeds_together_are_the_seeds_one_by_one(graphs_of):
    """Each with its students, and what no seed changes counted once."""
    graphs = graphs_of(LENGTHS)
    others = {name: drawn(*of.shape, seed=11) for name, of in CENTROIDS.items()}
    students = {7: (PROJECTION, CENTROIDS), 8: (Projection(drawn(2, 4, 3, seed=12), PROJECTION.bias), others)}
    both = sweep_layer(graphs, students, expand(METHODS), WINDOWS, "first")
    for seed, of_seed in both.groupby("seed"):
        alone = sweep_layer(graphs, {seed: students[seed]}, expand(METHODS), WINDOWS, "first")
        pd.testing.assert_frame_equal(of_seed.reset_index(drop=True), alone, check_exact=True)
    tables = [of_seed.drop(columns="seed").set_index(KEY) for _, of_seed in both.groupby("seed")]
    unlike = (tables[0][list(MEASURES)] != tables[1][list(MEASURES)]).any(axis=1).groupby("method").any()
    assert set(unlike[unlike].index) == set(METHODS) - {"window"}


def test_sentences_draw_apart(graphs_of):
    """The same sentence twice, and its random keys are not the same twice."""
    q, k = (drawn(1, 2, 12, 4, seed=seed).expand(2, -1, -1, -1) for seed in (5, 6))
    both = graphs_of([12, 12], q=q, k=k)
    bigbird = {"bigbird": METHODS["bigbird"]}
    mean = sweep(both, bigbird, [0], "none")["recall"]
    alone = sweep(graphs_of([12], q=q[:1], k=k[:1]), bigbird, [0], "none")["recall"]
    assert not np.allclose(mean, alone)


def test_wider_windows_never_cover_less(graphs_of):
    table = sweep(graphs_of(LENGTHS), global_tokens="none")
    for _, rows in table.groupby(["method", "setting", "head"]):
        assert (rows["recall"].diff().dropna() >= 0).all()
        assert (rows["sparsity"].diff().dropna() <= 0).all()
        assert (rows["exact"].diff().dropna() >= 0).all()
        assert rows["keyless"].nunique() == 1
    widest = table.query("window == 30")
    assert (widest["recall"] == 1).all()
    assert (widest["sparsity"] == 0).all()


def test_the_order_of_thresholds_does_not_matter(graphs_of):
    graphs = graphs_of(LENGTHS)
    rising, mixed = (
        sweep(graphs, {"near": {"predictor": "Distance", "threshold": threshold}})
        for threshold in ([0.5, 2.0, 8.0], [8.0, 0.5, 2.0])
    )
    assert_same(mixed, rising, MEASURES)
