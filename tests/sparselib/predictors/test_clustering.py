"""k-means buckets against the double loop over nearest centroids, and the fit against scikit-learn's."""

import numpy as np
import pytest
import torch
from drawing import drawn
from sklearn.cluster import KMeans

from sparselib.predictors import Clustering, fit_centroids


def nearest(x, centroids, b, h, token, top_k):
    """Ids of the top_k nearest centroids, nearest first."""
    distance = [sum((x[b, h, token] - center) ** 2).item() for center in centroids[h]]
    return sorted(range(len(distance)), key=lambda c: distance[c])[:top_k]


@pytest.mark.parametrize("top_k", [1, 2, 5])
def test_intersection_equals_its_loop(case, centroids, top_k):
    def edge(b, h, i, j):
        query = nearest(case.q, centroids, b, h, i, top_k)
        return bool(set(query) & set(nearest(case.k, centroids, b, h, j, top_k)))

    assert torch.equal(case.predict(Clustering(centroids, top_k)), case.looped(edge))


@pytest.mark.parametrize("top_k", [1, 2, 5])
def test_rank_aligned_equals_its_loop(case, centroids, top_k):
    def edge(b, h, i, j):
        query = nearest(case.q, centroids, b, h, i, top_k)
        key = nearest(case.k, centroids, b, h, j, top_k)
        return any(mine == other for mine, other in zip(query, key, strict=True))

    predictor = Clustering(centroids, top_k, match="rank_aligned")
    assert torch.equal(case.predict(predictor), case.looped(edge))


def test_two_clusters_are_matched_as_sets_and_the_diagonal_is_not_forced():
    """k = 2 is a true set intersection, and no diagonal is forced."""
    centroids = torch.tensor([[[0.0], [10.0], [20.0], [30.0]]])
    q = torch.tensor([4.0, 26.0]).view(1, 1, 2, 1)  # clusters (0, 1) and (3, 2)
    k = torch.tensor([6.0, 6.0]).view(1, 1, 2, 1)  # clusters (1, 0): those of the first query, swapped
    assert Clustering(centroids, 2).predict(q, k)[0, 0].tolist() == [[True, True], [False, False]]
    assert not Clustering(centroids, 2, match="rank_aligned").predict(q, k).any()


def test_rank_aligned_is_about_half_as_dense_for_two_of_eight_clusters():
    generator = torch.Generator().manual_seed(0)
    q, k = (torch.randn(4, 1, 200, 4, generator=generator) for _ in range(2))
    centroids = torch.randn(1, 8, 4, generator=generator)
    aligned = Clustering(centroids, 2, match="rank_aligned").predict(q, k)
    crossed = Clustering(centroids, 2).predict(q, k)
    assert not (aligned & ~crossed).any()
    assert 0.35 < aligned.sum() / crossed.sum() < 0.65


def test_equally_near_centroids_go_to_the_first():
    centroids = torch.zeros(1, 4, 2)
    queries, _ = Clustering(centroids, 2).assign(torch.ones(1, 1, 3, 2), torch.ones(1, 1, 3, 2))
    assert (queries == torch.tensor([True, True, False, False])).all()


def test_every_real_token_has_top_k_clusters(centroids):
    x = drawn(2, 2, 6, 4)
    queries, keys = Clustering(centroids, 3).assign(x, x, [6, 2])
    assert queries.sum(-1).tolist() == keys.sum(-1).tolist() == [[[3] * 6] * 2, [[3, 3, 0, 0, 0, 0]] * 2]


def test_fit_is_one_sklearn_fit_per_head():
    generator = torch.Generator().manual_seed(0)
    points = [torch.randn(60, 4, generator=generator), torch.randn(45, 4, generator=generator)]
    fitted = fit_centroids(points, clusters=3, seed=7)
    assert fitted.shape == (2, 3, 4)
    assert fitted.dtype == torch.float32
    for head, own in zip(points, fitted, strict=True):
        peer = KMeans(3, init="k-means++", n_init=3, max_iter=300, random_state=7).fit(head.numpy())
        np.testing.assert_allclose(own, peer.cluster_centers_, rtol=1e-5, atol=1e-6)


def test_fit_finds_separate_clusters_again_and_again():
    generator = torch.Generator().manual_seed(0)
    centers = torch.tensor([[0.0, 0.0], [50.0, 0.0], [0.0, 50.0]])
    points = (centers[:, None] + torch.randn(3, 40, 2, generator=generator)).reshape(1, 120, 2)
    before = torch.get_rng_state(), np.random.get_state()[1].tolist()  # noqa: NPY002
    fitted = fit_centroids(points, 3, seed=0)
    assert torch.equal(fitted, fit_centroids(points, 3, seed=0))
    assert torch.cdist(centers, fitted[0]).min(dim=1).values.max() < 1
    assert torch.equal(before[0], torch.get_rng_state())
    assert before[1] == np.random.get_state()[1].tolist()  # noqa: NPY002


@pytest.mark.parametrize(
    ("points", "clusters", "named"),
    [
        (torch.zeros(1, 3, 2), 4, "points"),
        (torch.full((1, 5, 2), torch.nan), 2, "points"),
        (torch.zeros(1, 3, 2), 0, "clusters"),
    ],
)
def test_fit_errors_name_the_argument(points, clusters, named):
    with pytest.raises(ValueError, match=named):
        fit_centroids(points, clusters, seed=0)


@pytest.mark.parametrize(
    ("build", "named"),
    [
        (lambda: Clustering(torch.zeros(2, 3, 4), 0), "top_k"),
        (lambda: Clustering(torch.zeros(2, 3, 4), 4), "top_k"),
        (lambda: Clustering(torch.zeros(2, 3, 4), 1, "first"), "match"),
        (lambda: Clustering(torch.zeros(3, 4)), "centroids"),
        (lambda: Clustering(torch.full((2, 3, 4), torch.inf)), "centroids"),
    ],
)
def test_errors_name_the_argument(build, named):
    with pytest.raises(ValueError, match=named):
        build()
