"""Offline and on one thread; attention graphs in small files, for everything that reads them."""

import os
from collections.abc import Callable
from contextlib import ExitStack

os.environ["HF_HUB_OFFLINE"] = "1"  # transformers and datasets read it when they are imported

import pytest
import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # triton reads it when it is imported

from replication.graphs.shards import LayerGraphs, open_graphs, writing_graphs

torch.set_num_threads(1)


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
