"""Fixed-size bins against the double loop over sorted lists."""

import math

import pytest
import torch
from drawing import drawn

from sparselib.predictors import Quantization


def bins_of(x, b, h, dimension, length, bins):
    """Bin of each real token: sort, cut the sorted list into pieces of ceil(n / bins)."""
    values = [float(x[b, h, i, dimension]) for i in range(length)]
    order = sorted(range(length), key=lambda i: values[i])
    size = math.ceil(length / bins)
    return {token: rank // size for rank, token in enumerate(order)}


@pytest.mark.parametrize("bins", [1, 2, 3, 4, 20])
def test_equals_its_loop(case, bins):
    def edge(b, h, i, j):
        n = case.lengths[b]
        pairs = ((bins_of(case.q, b, h, d, n, bins), bins_of(case.k, b, h, d, n, bins)) for d in range(4))
        return any(query_bins[i] == key_bins[j] for query_bins, key_bins in pairs)

    assert torch.equal(case.predict(Quantization(bins)), case.looped(edge))


def test_bins_hold_the_ceiling_of_n_over_bins():
    x = drawn(1, 1, 10, 1)
    queries, _ = Quantization(4).assign(x, x)
    assert queries.sum(dim=2).flatten().tolist() == [3, 3, 3, 1]


def test_ties_keep_their_order_in_the_sentence():
    x = torch.tensor([1.0, 0.0, 1.0, 0.0, 1.0, 0.0]).view(1, 1, 6, 1)
    queries, _ = Quantization(3).assign(x, x)
    assert queries[0, 0].int().argmax(-1).tolist() == [1, 0, 2, 0, 2, 1]


def test_queries_and_keys_are_ranked_separately():
    q = torch.tensor([0.0, 1.0]).view(1, 1, 2, 1)
    assert torch.equal(Quantization(2).predict(q, q + 100)[0, 0], torch.eye(2, dtype=torch.bool))


def test_one_bucket_per_dimension_for_real_tokens_and_none_for_padding():
    x = drawn(2, 3, 9, 4)
    queries, keys = Quantization(3).assign(x, x, torch.tensor([9, 5]))
    assert queries.shape == keys.shape == (2, 3, 9, 12)
    assert (queries[0].sum(-1) == 4).all()
    assert (queries[1, :, :5].sum(-1) == 4).all()
    assert not queries[1, :, 5:].any()


def test_error_names_the_argument():
    with pytest.raises(ValueError, match="bins"):
        Quantization(0)
