"""Routing against the double loop over each centroid's sorted tokens; its fit against one update by hand."""

import functools
import math

import pytest
import torch
from drawing import drawn

from sparselib.predictors import Routing, fit_routing_centroids


def takers(x, centroids, b, h, length, width):
    """For every real token, the centroids that rank it among their `width` best."""
    taken = {token: [] for token in range(length)}
    for c, center in enumerate(centroids[h]):
        scores = [float(x[b, h, i] @ center) / float(x[b, h, i].norm()) for i in range(length)]
        for token in sorted(range(length), key=lambda i: -scores[i])[:width]:
            taken[token].append(c)
    return taken


def looped(case, centroids, width, keep):
    @functools.cache
    def centroids_of(side, b, h):
        length = case.lengths[b]
        size = math.ceil(length / centroids.shape[1]) if width is None else width
        return takers(getattr(case, side), centroids, b, h, length, size)

    def edge(b, h, i, j):
        query, key = centroids_of("q", b, h)[i], centroids_of("k", b, h)[j]
        return bool(set(query[:keep]) & set(key[:keep]))

    return case.looped(edge)


@pytest.mark.parametrize("width", [None, 1, 4, 50])
def test_equals_its_loop(case, centroids, width):
    assert torch.equal(case.predict(Routing(centroids, width)), looped(case, centroids, width, keep=None))


@pytest.mark.parametrize("width", [None, 4])
def test_one_membership_keeps_the_lowest_centroid(case, centroids, width):
    predictor = Routing(centroids, width, membership="one")
    assert torch.equal(case.predict(predictor), looped(case, centroids, width, keep=1))


def test_every_centroid_takes_the_ceiling_of_n_over_clusters():
    generator = torch.Generator().manual_seed(0)
    x, centroids = torch.randn(2, 3, 36, 4, generator=generator), torch.randn(3, 5, 4, generator=generator)
    queries, keys = Routing(centroids).assign(x, x, [36, 20])
    assert queries.sum(dim=2).unique(dim=1).tolist() == [[[8] * 5], [[4] * 5]]
    assert torch.equal(queries, keys)


def test_ties_keep_their_order_in_the_sentence():
    queries, _ = Routing(torch.ones(1, 1, 2), 2).assign(torch.ones(1, 1, 4, 2), torch.ones(1, 1, 4, 2))
    assert queries.flatten().tolist() == [True, True, False, False]


def test_one_membership_leaves_queries_empty_and_is_sparser_than_all():
    """The reference code's reduction, on 4 clusters and 36 tokens."""
    generator = torch.Generator().manual_seed(0)
    q, k = (torch.randn(50, 4, 36, 4, generator=generator) for _ in range(2))
    centroids = torch.randn(4, 4, 4, generator=generator)
    full, reduced = (Routing(centroids, membership=kind).predict(q, k) for kind in ("all", "one"))
    assert not (reduced & ~full).any()
    assert reduced.double().mean() < full.double().mean()
    assert not reduced.any(-1).all()


def test_fit_starts_at_random_points_and_stays_there_without_decay():
    points = drawn(2, 40, 4)
    centroids = fit_routing_centroids(points, 3, seed=0, decay=1.0)
    directions = points / points.norm(dim=-1, keepdim=True)
    assert centroids.shape == (2, 3, 4)
    assert torch.cdist(centroids, directions).min(-1).values.max() < 1e-3
    assert len(torch.cdist(centroids[0], directions[0]).argmin(-1).unique()) == 3


def test_fit_moves_each_centroid_towards_the_mean_of_its_points():
    points = drawn(2, 40, 4, dtype=torch.float64)
    start = fit_routing_centroids(points, 3, seed=0, decay=1.0)
    fitted = fit_routing_centroids(points, 3, seed=0, decay=0.9)  # 40 points: a single update
    for h in range(2):
        total = torch.zeros(3, 4, dtype=torch.float64)
        for point in points[h]:
            direction = point / point.norm()
            total[max(range(3), key=lambda c, h=h, x=direction: float(start[h, c] @ x))] += direction
        for c in range(3):
            moved = 0.9 * start[h, c] + 0.1 * total[c] / total[c].norm()
            torch.testing.assert_close(fitted[h, c], moved / moved.norm())


def test_fit_returns_unit_vectors_and_depends_on_the_seed_alone():
    points = drawn(2, 2000, 4)
    before = torch.get_rng_state()
    first, again, other = (fit_routing_centroids(points, 6, seed) for seed in (0, 0, 1))
    assert torch.equal(before, torch.get_rng_state())
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    torch.testing.assert_close(first.norm(dim=-1), torch.ones(2, 6))


@pytest.mark.parametrize(
    ("build", "named"),
    [
        (lambda: Routing(torch.zeros(2, 3, 4), 0), "width"),
        (lambda: Routing(torch.zeros(2, 3, 4), membership="some"), "membership"),
        (lambda: Routing(torch.zeros(3, 4)), "centroids"),
        (lambda: fit_routing_centroids(torch.zeros(1, 3, 2), 4, seed=0), "points"),
        (lambda: fit_routing_centroids(torch.full((1, 3, 2), torch.inf), 2, seed=0), "points"),
        (lambda: fit_routing_centroids(torch.zeros(1, 3, 2), 2, seed=0, decay=1.5), "decay"),
    ],
)
def test_errors_name_the_argument(build, named):
    with pytest.raises(ValueError, match=named):
        build()
