"""Settings of predictors: the papers' variants, and what makes a graph sparser."""

import pandas as pd
import pytest

from replication.claims.settings import described, papers_own, saturated, single, sparser
from replication.results.settings import arguments_of, label


def points(**methods):
    rows = [(name, label(setting)) for name, settings in methods.items() for setting in settings]
    return pd.DataFrame(rows, columns=["method", "setting"])


POINTS = points(
    kmeans=[{"clusters": 4, "top_k": k} for k in (1, 2, 3)],
    reformer=[{"buckets": 8, "rounds": rounds} for rounds in (1, 4)],
    distance=[{"threshold": 0.5}],
    window=[{}],
)


def kept(table):
    return [(row.method, arguments_of(row.setting)) for row in table.itertuples()]


def test_the_papers_variants_hash_once_and_assign_to_one_or_two_centroids():
    assert kept(papers_own(POINTS)) == [
        ("kmeans", {"clusters": 4, "top_k": 1}),
        ("kmeans", {"clusters": 4, "top_k": 2}),
        ("reformer", {"buckets": 8, "rounds": 1}),
        ("distance", {"threshold": 0.5}),
        ("window", {}),
    ]


def test_single_points_assign_to_one_bucket():
    assert kept(single(POINTS))[0] == ("kmeans", {"clusters": 4, "top_k": 1})
    assert [name for name, _ in kept(single(POINTS))] == ["kmeans", "reformer", "distance", "window"]


def test_without_such_arguments_nothing_is_left_out():
    few = POINTS[POINTS["method"] == "distance"]
    assert len(papers_own(few)) == len(single(few)) == 1


def test_settings_are_described_by_method_in_rising_order():
    found = described(POINTS[::-1])
    assert found["kmeans"] == {"clusters": [4], "top_k": [1, 2, 3]}
    assert found["window"] == {}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"threshold": [0.5, 5.0]}, "threshold below 0.5, smaller windows"),
        ({"clusters": [2, 20], "top_k": [1, 2]}, "clusters above 20, smaller windows"),
        ({"clusters": [20], "top_k": [2]}, "clusters above 20, top_k below 2, smaller windows"),
        ({"random_keys": [2, 4]}, "random_keys below 2, smaller windows"),
        ({}, "smaller windows"),
    ],
)
def test_sparser_settings_are_named_where_there_are_any(settings, words):
    assert sparser(settings) == words


@pytest.mark.parametrize(
    ("fewest", "window", "found"),
    [(1, 0, {"longformer"}), (2, 0, set()), (1, 3, set())],
    ids=["ends", "fewer", "narrower"],
)
def test_one_global_key_without_a_window_is_as_sparse_as_longformer_gets(fewest, window, found):
    table = points(longformer=[{"global_count": count} for count in (fewest, 8)], distance=[{"threshold": 0.5}])
    table = table.assign(window=window, seed=0, sparsity=0.9)
    assert saturated(table) == found


@pytest.mark.parametrize(("tokens", "found"), [(64, {"reformer"}), (65, set())], ids=["as many", "fewer"])
def test_with_as_many_buckets_as_tokens_hashing_is_as_sparse_as_it_gets(tokens, found):
    table = points(reformer=[{"buckets": 32}, {"buckets": 64}])
    table = table.assign(window=0, seed=0, sparsity=[0.8, 0.9])
    assert saturated(table, tokens) == found
