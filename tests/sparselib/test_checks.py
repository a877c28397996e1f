"""Counts and sizes: fractions are refused by name, and NumPy's integers are accepted."""

from functools import partial

import numpy as np
import pytest
import torch

from sparselib import masks, topk_softmax
from sparselib.blocks import Chunks, ClusteredBlocks, NearestBlocks
from sparselib.forms import form
from sparselib.predictors import (
    BigBird,
    Clustering,
    Hashing,
    Longformer,
    Quantization,
    Routing,
    TopK,
    fit_centroids,
    fit_routing_centroids,
)
from sparselib.projections import fit_projection

CENTROIDS = torch.eye(4)[None]
POINTS = torch.arange(80.0).view(1, 20, 4)
GENERATOR = torch.Generator()
COUNTS = {
    "k": [partial(topk_softmax, torch.zeros(1, 5)), TopK, partial(form, "Window")],
    "bins": [Quantization],
    "buckets": [Hashing],
    "rounds": [partial(Hashing, 4)],
    "global_count": [Longformer],
    "random_keys": [BigBird, lambda n: masks.bigbird(n, [8], 1, GENERATOR)],
    "top_k": [partial(Clustering, CENTROIDS)],
    "width": [partial(Routing, CENTROIDS), masks.sliding_window, lambda n: masks.dilated(n, 2)],
    "dilation": [partial(masks.dilated, 3)],
    "size": [masks.block, Chunks],
    "stride": [masks.strided, lambda n: masks.fixed(n, 1)],
    "summary": [partial(masks.fixed, 4)],
    "positions": [lambda n: masks.global_tokens([0, n])],
    "globals_": [lambda n: masks.longformer(n, [8], GENERATOR)],
    "count": [
        lambda n: masks.random_keys(n, [8], 1, GENERATOR),
        NearestBlocks,
        partial(ClusteredBlocks, CENTROIDS),
    ],
    "clusters": [lambda n: fit_centroids(POINTS, n, seed=0), lambda n: fit_routing_centroids(POINTS, n, seed=0)],
    "dimension": [lambda n: fit_projection([], dimension=n)],
    "epochs": [lambda n: fit_projection([], dimension=4, epochs=n)],
    "queries": [lambda n: masks.to_dense(masks.causal(), 1, 1, n)],
}
CASES = [pytest.param(name, call, id=f"{name}{n}") for name, calls in COUNTS.items() for n, call in enumerate(calls)]


@pytest.mark.parametrize("value", [2.5, 2.0, np.float64(2), torch.tensor(2.5), True, "2"])
@pytest.mark.parametrize(("name", "call"), CASES)
def test_what_is_no_integer_is_refused_by_name(name, call, value):
    with pytest.raises(ValueError, match=rf"^`{name}` must be an integer, got "):
        call(value)


@pytest.mark.parametrize(("name", "call"), [case for case in CASES if case.values[0] not in ("dimension", "epochs")])
def test_integers_of_numpy_are_accepted(name, call):
    call(np.int64(2))
