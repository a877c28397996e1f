"""Grids: every combination, in order, and the predictor that each stands for."""

import doctest
import json

import pytest
import torch

from replication.graphs import grids
from replication.graphs.grids import Member, cluster_counts, expand
from replication.results.settings import arguments_of
from sparselib import predictors

CENTROIDS = {"kmeans-4": torch.zeros(2, 4, 3), "kmeans-8": torch.zeros(2, 8, 3), "routing-4": torch.ones(2, 4, 3)}


def test_the_example_in_the_docstring():
    assert doctest.testmod(grids).attempted == 2
    assert doctest.testmod(grids).failed == 0


def test_lists_are_combined_and_single_values_repeated():
    members = expand(
        {
            "near": {"predictor": "Distance", "threshold": [1.0, 2.0], "metric": "euclidean"},
            "k-means": {"predictor": "Clustering", "clusters": [4, 8], "top_k": [1, 2]},
            "window": {"predictor": "Nothing"},
        }
    )
    assert [(m.method, m.predictor, m.arguments) for m in members] == [
        ("near", "Distance", {"threshold": 1.0, "metric": "euclidean"}),
        ("near", "Distance", {"threshold": 2.0, "metric": "euclidean"}),
        ("k-means", "Clustering", {"clusters": 4, "top_k": 1}),
        ("k-means", "Clustering", {"clusters": 4, "top_k": 2}),
        ("k-means", "Clustering", {"clusters": 8, "top_k": 1}),
        ("k-means", "Clustering", {"clusters": 8, "top_k": 2}),
        ("window", "Nothing", {}),
    ]


def test_the_section_itself_is_left_alone():
    methods = {"near": {"predictor": "Distance", "threshold": [1.0, 2.0]}}
    kept = json.loads(json.dumps(methods))
    expand(methods)
    assert methods == kept


def test_settings_are_told_apart_and_do_not_depend_on_the_order_of_arguments():
    assert arguments_of(Member("m", "Clustering", {"top_k": 1, "clusters": 4}).setting) == {"clusters": 4, "top_k": 1}
    assert (
        Member("m", "Clustering", {"top_k": 1, "clusters": 4}).setting
        == Member("m", "Clustering", {"clusters": 4, "top_k": 1}).setting
    )
    assert Member("m", "Nothing").setting == ""


@pytest.mark.parametrize(
    "section", [{"threshold": 1.0}, {"predictor": "distance"}, {"predictor": "Pattern"}, {"predictor": "os"}]
)
def test_an_unknown_predictor_is_named_with_its_method(section):
    with pytest.raises(ValueError, match=r"mine: `predictor` must be one of .*Distance.*; got"):
        expand({"mine": section})


def test_centroids_are_those_of_the_method_and_the_number_of_clusters():
    build = {
        "kmeans-8": Member("m", "Clustering", {"clusters": 8, "top_k": 2}),
        "kmeans-4": Member("m", "Clustering", {"clusters": 4}),
        "routing-4": Member("m", "Routing", {"clusters": 4, "width": 3}),
    }
    for name, member in build.items():
        assert member.build(CENTROIDS, seed=0).centroids is CENTROIDS[name]
    assert build["kmeans-8"].build(CENTROIDS, 0).top_k == 2
    assert build["routing-4"].build(CENTROIDS, 0).width == 3
    assert build["kmeans-8"].arguments == {"clusters": 8, "top_k": 2}


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("Longformer", {"global_count": 2}), ("BigBird", {"random_keys": 2}), ("Hashing", {"buckets": 4})],
)
def test_random_predictors_get_the_seed(name, arguments):
    built = Member("m", name, arguments).build({}, seed=17)
    assert built == getattr(predictors, name)(**arguments, seed=17)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("Nothing", {}), ("Distance", {"threshold": 2.0}), ("Quantization", {"bins": 4}), ("TopK", {"k": 3})],
)
def test_other_predictors_are_built_from_their_arguments(name, arguments):
    assert Member("m", name, arguments).build({}, seed=17) == getattr(predictors, name)(**arguments)


@pytest.mark.parametrize(
    ("member", "error", "named"),
    [
        (Member("m", "Clustering", {"clusters": 5}), KeyError, "kmeans-5"),
        (Member("m", "Routing", {"clusters": 8}), KeyError, "routing-8"),
        (Member("m", "Distance", {"threshold": -1.0}), ValueError, "threshold"),
        (Member("m", "Distance", {"limit": 1.0}), TypeError, "limit"),
    ],
)
def test_arguments_that_do_not_fit_are_named(member, error, named):
    with pytest.raises(error, match=named):
        member.build(CENTROIDS, seed=0)


def test_cluster_counts_are_what_any_method_asks_for():
    methods = {
        "a": {"predictor": "Clustering", "clusters": [8, 4], "top_k": [1, 2]},
        "b": {"predictor": "Clustering", "clusters": 6},
        "c": {"predictor": "Routing", "clusters": [3, 4]},
        "d": {"predictor": "Distance", "threshold": 1.0},
    }
    assert cluster_counts(methods) == {"kmeans": [4, 6, 8], "routing": [3, 4]}
    assert cluster_counts({"d": methods["d"]}) == {}
