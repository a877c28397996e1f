"""Attention graphs in small files, for everything that reads them."""

from collections.abc import Callable
from contextlib import ExitStack

import pytest
import torch

from replication.graphs.shards import LayerGraphs, open_graphs, writing_graphs


@pytest.fixture
def graphs_of(tmp_path) -> Callable[..., LayerGraphs]:
    """Make the open graphs of sentences of these lengths, drawn at random unless `q` and `k` are given."""
    with ExitStack() as opened:

        def make(lengths, *, causal=False, heads=2, dimension=4, scale=2.0, seed=0, q=None, k=None, sequence=None):
            shape = (len(lengths), heads, max(lengths), dimension)
            if q is None:
                generator = torch.Generator().manual_seed(seed)
                q, k = (torch.randn(shape, generator=generator) * scale for _ in range(2))
            if sequence is None:
                sequence = torch.arange(len(lengths))
            path = tmp_path / "graphs.safetensors"
            with writing_graphs([path], sequence, *q.shape[1:], causal=causal) as writer:
                writer.write(0, 0, q, k, torch.tensor(lengths))
            return opened.enter_context(open_graphs(path))

        yield make
