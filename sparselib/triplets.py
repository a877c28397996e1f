"""Triplets of the contrastive loss: the edges of a gold graph, each with a random negative key of its query (section 4.2)."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor


class Edges(NamedTuple):
    """Gold edges whose query has a negative, and all negatives: integers ``[E]``, but ``keys`` ``[N]``.

    Parameters
    ----------
    query : the edge's row in B * H * Q
    positive : the edge's key
    first, negatives : where the query's negatives begin in ``keys``, and their number
    keys : the negative keys of one row after the other
    """

    query: Tensor
    positive: Tensor
    first: Tensor
    negatives: Tensor
    keys: Tensor


def gold_edges(gold: Tensor, visible: Tensor) -> Edges:
    """Return the edges of a gold graph; the negatives of a query are its visible keys that are no edge.

    Parameters
    ----------
    gold : Bool Tensor ``[B, H, Q, K]``
    visible : Bool Tensor that broadcasts to it

    Examples
    --------
    >>> gold = torch.tensor([[True, False], [True, True]])[None, None]
    >>> edges = gold_edges(gold, torch.ones_like(gold))
    >>> edges.query, edges.positive
    (tensor([0]), tensor([0]))
    """
    # The reference code also draws padding and future keys. NumPy selects ten times as fast as PyTorch.
    is_negative = (visible & ~gold).flatten(0, 2).numpy()
    keys = is_negative.shape[-1]
    key = np.arange(keys, dtype=np.int16 if keys < 2**15 else np.int32)
    counts = is_negative.sum(-1)
    query, positive = np.divmod(np.flatnonzero(gold.flatten(0, 2).numpy() & (counts > 0)[:, None]), keys)
    first = counts.cumsum() - counts
    columns = query, positive, first[query], counts[query], np.broadcast_to(key, is_negative.shape)[is_negative]
    return Edges(*map(torch.from_numpy, columns))


def sample_negatives(edges: Edges, generator: torch.Generator) -> Tensor:
    """Draw one negative key per edge, uniformly and with replacement: ``[E]``.

    Examples
    --------
    >>> gold = torch.tensor([[True, False]])[None, None]
    >>> sample_negatives(gold_edges(gold, torch.ones_like(gold)), torch.Generator())
    tensor([1])
    """
    draw = torch.rand(len(edges.query), generator=generator, dtype=torch.float64)
    return edges.keys[edges.first + (draw * edges.negatives).long()].long()
