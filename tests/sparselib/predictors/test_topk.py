"""Top-k selection against its double loop over sorted scores."""

import pytest
import torch

from sparselib.predictors import TopK


def looped(case, count):
    def edge(b, h, i, j):
        keys = range(i + 1 if case.causal else case.lengths[b])
        scores = {key: float(case.q[b, h, i] @ case.k[b, h, key]) for key in keys}
        return scores[j] >= sorted(scores.values(), reverse=True)[:count][-1]

    return case.looped(edge)


@pytest.mark.parametrize("count", [1, 3, 8, 100])
def test_equals_its_loop(case, count):
    assert torch.equal(case.predict(TopK(count)), looped(case, count))


def test_ties_at_the_last_place_are_all_kept():
    q = torch.ones(1, 1, 1, 1)
    k = torch.tensor([3.0, 1.0, 2.0, 2.0, 2.0]).view(1, 1, 5, 1)
    assert TopK(2).predict(q, k).flatten().tolist() == [True, False, True, True, True]


def test_future_keys_do_not_use_up_places():
    q = torch.ones(1, 1, 3, 1)
    k = torch.tensor([1.0, 2.0, 3.0]).view(1, 1, 3, 1)
    assert TopK(1).predict(q, k, causal=True)[0, 0].tolist() == torch.eye(3, dtype=torch.bool).tolist()


def test_scale_does_not_matter():
    generator = torch.Generator().manual_seed(0)
    q, k = (torch.randn(1, 2, 20, 64, generator=generator) for _ in range(2))
    assert torch.equal(TopK(4).predict(q, k), TopK(4).predict(q / 8, k))


def test_error_names_the_argument():
    with pytest.raises(ValueError, match="`k` must"):
        TopK(0)
