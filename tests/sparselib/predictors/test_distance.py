"""Distance-based pairing against its double loop."""

import pytest
import torch

from sparselib.predictors import Distance, squared_distances


@pytest.mark.parametrize("threshold", [0.5, 2.0, 5.0, 100.0])
@pytest.mark.parametrize(("metric", "power"), [("sq_euclidean", 2), ("euclidean", 1)])
def test_equals_its_loop(case, threshold, metric, power):
    def edge(b, h, i, j):
        squared = sum((x - y) ** 2 for x, y in zip(case.q[b, h, i], case.k[b, h, j], strict=True))
        return squared ** (power / 2) <= threshold

    assert torch.equal(case.predict(Distance(threshold, metric)), case.looped(edge))


def test_default_metric_is_squared_and_the_threshold_belongs_to_the_graph():
    q, k = torch.zeros(1, 1, 1, 4), torch.full((1, 1, 1, 4), 1.0)  # 4 apart when squared, 2 when not
    assert Distance(4.0).predict(q, k).item()
    assert not Distance(3.9).predict(q, k).item()
    assert Distance(2.0, "euclidean").predict(q, k).item()
    assert not Distance(1.9, "euclidean").predict(q, k).item()


def test_squared_distances_are_never_negative_and_close_to_the_direct_ones():
    generator = torch.Generator().manual_seed(0)
    q, k = (torch.randn(2, 3, 50, 4, generator=generator) + 10 for _ in range(2))
    q[:, :, :10] = k[:, :, :10]  # zero, up to cancellation
    distances = squared_distances(q, k)
    direct = (q[..., :, None, :].double() - k[..., None, :, :].double()).square().sum(-1)
    assert (distances >= 0).all()
    assert (distances - direct).abs().max() < 1e-6 * (q.square().sum(-1).max() + k.square().sum(-1).max())


def test_takes_unequal_numbers_of_queries_and_keys():
    assert Distance(1.0).predict(torch.zeros(1, 2, 3, 4), torch.zeros(1, 2, 5, 4)).shape == (1, 2, 3, 5)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [((-0.1,), "threshold"), ((float("nan"),), "threshold"), ((1, "cosine"), "metric")],
)
def test_errors_name_the_argument(arguments, named):
    with pytest.raises(ValueError, match=named):
        Distance(*arguments)
