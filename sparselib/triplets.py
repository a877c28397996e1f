"""Triplets of the contrastive loss: the edges of a gold graph, each with a random negative key of its query (section 4.2)."""

from typing import NamedTuple

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
    # The reference code also draws padding and future keys.
    is_negative = (visible & ~gold).flatten(0, 2)
    keys = gold.shape[-1]
    key = torch.arange(keys, dtype=torch.int16 if keys < 2**15 else torch.int32, device=gold.device)
    # By parts that fit in the cache: six times as fast as at once.
    parts = is_negative.split(512)
    counts = torch.cat([part.sum(-1) for part in parts])
    negative = torch.cat([key.expand_as(part).masked_select(part) for part in parts])
    query, positive = (gold.flatten(0, 2) & (counts > 0)[:, None]).nonzero(as_tuple=True)
    first = counts.cumsum(0) - counts
    return Edges(query, positive, first[query], counts[query], negative)


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
