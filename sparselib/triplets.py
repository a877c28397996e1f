"""Triplets of the contrastive loss: the edges of a gold graph, each with a random negative key of its query (section 4.2)."""

from typing import NamedTuple

import torch
from torch import Tensor


class Edges(NamedTuple):
    """Gold edges whose query has a negative, and what it takes to draw negatives: integers ``[E]``, but ``before`` ``[X]``.

    Parameters
    ----------
    query : the edge's row in B * H * Q
    positive : the edge's key
    negatives : the number of negatives of its query
    before : of each pair that is no negative, the negatives before it, as if each earlier row had ``keys`` of them
    first : the number of such pairs in earlier rows
    keys : int, the number of keys
    """

    query: Tensor
    positive: Tensor
    negatives: Tensor
    before: Tensor
    first: Tensor
    keys: int


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
    keys = gold.shape[-1]
    query, positive = gold.flatten(0, 2).nonzero(as_tuple=True)
    row, key = (gold | ~visible).flatten(0, 2).nonzero(as_tuple=True)
    counts = torch.bincount(row, minlength=gold[..., 0].numel())
    first = counts.cumsum(0) - counts
    before = row * keys + key - (torch.arange(len(row), device=row.device) - first[row])
    negatives = (keys - counts)[query]
    kept = negatives > 0
    query = query[kept]
    return Edges(query, positive[kept], negatives[kept], before, first[query], keys)


def sample_negatives(edges: Edges, generator: torch.Generator) -> Tensor:
    """Draw one negative key per edge, uniformly and with replacement: ``[E]``.

    Examples
    --------
    >>> gold = torch.tensor([[True, False]])[None, None]
    >>> sample_negatives(gold_edges(gold, torch.ones_like(gold)), torch.Generator())
    tensor([1])
    """
    draw = torch.rand(len(edges.query), generator=generator, dtype=torch.float64)
    rank = (draw * edges.negatives).int()
    # The r-th negative comes after r others, and after the other pairs of its row with at most r negatives before them.
    passed = torch.searchsorted(edges.before, edges.query * edges.keys + rank, right=True) - edges.first
    return rank + passed
