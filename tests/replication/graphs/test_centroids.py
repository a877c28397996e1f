"""Which points centroids are fitted on, and that every number of clusters in a grid gets its own."""

import pytest
import torch
from drawing import drawn

from replication.files.storage import FormatError
from replication.graphs import centroids, projections
from replication.graphs.centroids import fit_block_layer, fit_layer, sample_points
from sparselib.blocks.chunks import Chunks
from sparselib.predictors import fit_centroids, fit_routing_centroids
from sparselib.projections import Projection

LENGTHS = [5, 9, 1, 7]
COUNTS = {"kmeans": [2, 5], "routing": [3]}


@pytest.fixture
def projection():
    generator = torch.Generator().manual_seed(0)
    return Projection(torch.randn(2, 4, 3, generator=generator), torch.randn(2, 3, generator=generator))


@pytest.fixture
def graphs(graphs_of):
    """Padding is far away from everything else."""
    q, k = drawn(2, len(LENGTHS), 2, 9, 4, seed=1)
    for sentence, length in enumerate(LENGTHS):
        q[sentence, :, length:] = k[sentence, :, length:] = 1e6
    return graphs_of(LENGTHS, q=q, k=k)


def looped(graphs, projection):
    """Projected queries and keys of every real token, `[H, R]` each."""
    batch = graphs.batch(0, len(LENGTHS))
    return [
        torch.stack([x[sentence, head, token] @ projection.weight[head] + projection.bias[head] for head in range(2)])
        for x in (batch.q, batch.k)
        for sentence, length in enumerate(LENGTHS)
        for token in range(length)
    ]


def matched(points, union):
    """For each of points `[H, N, R]`, which member of the union it is, in all heads at once."""
    distance = (points.transpose(0, 1)[:, None] - torch.stack(union)[None]).abs().amax((-1, -2))
    assert (distance.amin(1) < 1e-5).all()
    return distance.argmin(1).tolist()


@pytest.mark.parametrize("batch_size", [1, 3, 16])
def test_with_room_for_all_every_real_query_and_key_is_taken_once(graphs, projection, batch_size):
    union = looped(graphs, projection)
    points = sample_points(graphs.batches(batch_size), projection, points=1000, seed=0)
    assert points.shape == (2, 2 * sum(LENGTHS), 3)
    assert sorted(matched(points, union)) == list(range(len(union)))


def test_fewer_points_are_drawn_without_replacement_from_everywhere(graphs, projection):
    union = looped(graphs, projection)
    reached = set()
    for seed in range(30):
        chosen = matched(sample_points(graphs.batches(16), projection, points=10, seed=seed), union)
        assert len(set(chosen)) == 10
        reached |= set(chosen)
    assert reached == set(range(len(union)))


def test_same_seed_same_points_and_the_global_generator_untouched(graphs, projection):
    before = torch.get_rng_state()
    first, again, other = (sample_points(graphs.batches(16), projection, points=10, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(before, torch.get_rng_state())


def test_every_number_of_clusters_is_fitted_on_the_sample(graphs, projection):
    fitted = fit_layer(graphs, projection, COUNTS, points=30, seed=4)
    sample = sample_points(graphs.batches(16), projection, points=30, seed=4)
    assert fitted.keys() == {"kmeans-2", "kmeans-5", "routing-3"}
    for clusters in (2, 5):
        assert torch.equal(fitted[f"kmeans-{clusters}"], fit_centroids(sample, clusters, 4))
    assert torch.equal(fitted["routing-3"], fit_routing_centroids(sample, 3, 4))


def test_centroids_of_chunks_are_fitted_on_real_chunks_of_queries_and_keys(graphs, projection):
    chunks, batch = Chunks(2), graphs.batch(0, len(LENGTHS))
    union = []
    for x in (batch.q, batch.k):
        vectors = chunks.vectors(projection(x), LENGTHS)
        union += [vectors[s, :, i] for s, length in enumerate(LENGTHS) for i in range(-(-length // 2))]
    points = sample_points(graphs.batches(16), projection, points=1000, seed=0, chunks=chunks)
    assert sorted(matched(points, union)) == list(range(2 * (3 + 5 + 1 + 4)))
    fitted = fit_block_layer(graphs, projection, chunks, [2, 3], points=1000, seed=0)
    assert fitted.keys() == {"kmeans-2", "kmeans-3"}
    assert torch.equal(fitted["kmeans-3"], fit_centroids(points, 3, 0))


def test_saved_and_loaded_they_are_the_same(tmp_path, graphs, projection):
    fitted = fit_layer(graphs, projection, COUNTS, points=30, seed=4)
    path = tmp_path / "centroids.safetensors"
    centroids.save(path, fitted, seed=4)
    loaded = centroids.load(path)
    assert loaded.keys() == fitted.keys()
    assert all(torch.equal(loaded[name], tensor) for name, tensor in fitted.items())
    projections.save(path, projection)
    with pytest.raises(FormatError, match="must contain centroids, got projection"):
        centroids.load(path)
