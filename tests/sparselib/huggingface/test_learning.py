"""Learning of a layer's projection for `sparsify`."""

import pytest
import torch

from sparselib.blocks.chunks import TOKENS, Chunks
from sparselib.dense_attention import gold_graph
from sparselib.huggingface import learning
from sparselib.huggingface.layers import NeededEdges
from sparselib.projections import contrastive_loss


def long_batch(n=160, seed=0):
    """Two sequences, of which the second is shorter, with queries close to the keys that they need."""
    generator = torch.Generator().manual_seed(seed)
    topics = 3 * torch.randn(2, 2, 8, 6, generator=generator)
    q, k = (topics.repeat_interleave(n // 8, 2) + torch.randn(2, 2, n, 6, generator=generator) for _ in range(2))
    lengths = torch.tensor([n, 100])
    batch = NeededEdges(q, k, lengths, edges=torch.zeros(2, 2, n, n, dtype=torch.bool))
    return NeededEdges(q, k, lengths, edges=gold_graph(q, k, batch.visible) & batch.visible)


def test_a_step_learns_from_at_most_so_many_queries(monkeypatch):
    learned_from = []

    def recorded(projection, batch, **options):
        learned_from.append(batch.gold.any(-1).any(1).sum().item())
        return contrastive_loss(projection, batch, **options)

    monkeypatch.setattr(learning, "contrastive_loss", recorded)
    learning.ProjectionLearner(2, 6, 3, 0, TOKENS).add(long_batch())
    assert learned_from == [learning.MOST_QUERIES, 100]


@pytest.mark.parametrize("chunks", [TOKENS, Chunks(20, "mean")])
def test_learning_brings_needed_keys_closer(chunks):
    batch = long_batch()
    learner = learning.ProjectionLearner(2, 6, 3, 0, chunks)
    options = {"loss": "triplet", "margin": 1.0, "chunks": chunks}

    def loss():
        return contrastive_loss(learner.projection, batch, generator=torch.Generator().manual_seed(1), **options).item()

    before = loss()
    for _ in range(40 // learner.steps):
        learner.add(batch)
    assert loss() < 0.7 * before
