"""Files of projections hold what was saved, and nothing that is not a projection is taken for one."""

import pytest
import torch

from replication.files.storage import FormatError, read_header
from replication.graphs import projections
from sparselib.projections import Projection, fit_projection


def test_saved_and_loaded_it_is_the_same(tmp_path):
    projection = Projection(torch.randn(2, 5, 3), torch.zeros(2, 3))
    path = tmp_path / "projection.safetensors"
    projections.save(path, projection, losses=[1.0, 0.5])
    loaded = projections.load(path)
    assert torch.equal(loaded.weight, projection.weight)
    assert torch.equal(loaded.bias, projection.bias)
    assert read_header(path, kind="projection")["losses"] == [1.0, 0.5]
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(FormatError):
        projections.load(path)


def test_a_layer_is_learned_from_in_batches_of_the_asked_size(graphs_of):
    graphs = graphs_of([6, 4, 5])
    found, losses = projections.fit_layer_projection(graphs, {"dimension": 3, "batch_size": 2}, seed=1)
    expected, _ = fit_projection([graphs.batch(0, 2), graphs.batch(2, 3)], dimension=3, seed=1)
    assert len(losses) == 2
    assert torch.equal(found.weight, expected.weight)
