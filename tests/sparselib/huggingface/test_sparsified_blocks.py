"""Sparsified models that visit blocks: which blocks hold a predicted pair, with and without a cache, and what they keep."""

import pytest
import torch
from small_models import made, output, text

from sparselib.huggingface import sparsify
from sparselib.huggingface.blocks import _layer_blocks
from sparselib.huggingface.heads import Setting, per_head
from sparselib.huggingface.layers import Layer
from sparselib.projections import Projection


def test_blocks_are_those_that_hold_a_predicted_pair():
    generator = torch.Generator().manual_seed(0)
    q, k = (torch.randn(2, 3, 19, 8, generator=generator) for _ in range(2))
    projection = Projection(torch.randn(3, 8, 4, generator=generator), torch.zeros(3, 4))
    chosen = [Setting("kmeans", 3, clusters=16, top_k=1), Setting("window", 7), Setting("dense")]
    layer = Layer(projection=projection, centroids={16: 2 * torch.randn(3, 16, 4, generator=generator)}, chosen=chosen)
    tokens = per_head(chosen, layer.centroids).predict(projection(q), projection(k))
    padded = torch.zeros(2, 3, 20, 20, dtype=torch.bool)
    padded[:, :, :19, :19] = tokens
    expected = padded.unflatten(3, (10, 2)).any(-1).unflatten(2, (10, 2)).any(3)
    assert torch.equal(_layer_blocks(layer, 2, q, k, None).to_dense(), expected)
    assert 0.1 < expected[:, 0].float().mean() < 0.9


@pytest.mark.parametrize("new", [1, 2, 6])
@pytest.mark.parametrize("unused", [0, 6])
def test_after_a_cache_blocks_are_those_that_hold_a_pair_of_the_new_queries(new, unused):
    generator = torch.Generator().manual_seed(0)
    q, k = (torch.randn(2, 3, 18, 8, generator=generator) for _ in range(2))
    projection = Projection(torch.randn(3, 8, 4, generator=generator), torch.zeros(3, 4))
    chosen = [Setting("kmeans", 3, clusters=16, top_k=1), Setting("window", 7), Setting("dense")]
    layer = Layer(projection=projection, centroids={16: 2 * torch.randn(3, 16, 4, generator=generator)}, chosen=chosen)
    tokens = per_head(chosen, layer.centroids).predict(projection(q), projection(k))[:, :, -new:]
    rows = min(new, 2)
    expected = tokens.unflatten(2, (-1, rows)).any(3).unflatten(3, (9, 2)).any(-1)
    places = torch.nn.functional.pad(k, (0, 0, 0, unused), value=3.0)
    lengths = torch.tensor([18, 18]) if unused else None
    found = _layer_blocks(layer, 2, q[:, :, -new:], places, lengths)
    assert found.block_size == (rows, 2)
    assert found.length == (new, 18 + unused)
    assert torch.equal(found.to_dense()[..., :9], expected)
    assert not found.to_dense()[..., 9:].any()
    assert 0.1 < expected[:, 0].float().mean() < 1


def test_visited_blocks_keep_what_is_predicted():
    model = made("bert")
    result = sparsify(model, text(12), recall=0.9, gold="entmax:1.5", predictors=("kmeans", "window"))
    inputs = text(1, seed=4)[0]
    inputs["attention_mask"][:] = 1
    free = output(model, inputs)
    with result.to_blocks(1):
        by_blocks = output(model, inputs)
    with result:
        torch.testing.assert_close(by_blocks, output(model, inputs), atol=1e-4, rtol=1e-4)
    with result.to_blocks(24):
        torch.testing.assert_close(output(model, inputs), free, atol=1e-4, rtol=1e-4)


def test_heads_predicted_by_distances_have_no_blocks(sparse):
    _, result = sparse
    assert any("distance" in one.predictor for one in result.report.heads)
    with pytest.raises(ValueError, match="`predictors` must not include distance or your own for blocks"):
        result.to_blocks(8)
