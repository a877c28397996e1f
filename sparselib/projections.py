"""Learning where to look: head-wise linear projections that bring a query close to the keys it attends to (section 4.2)."""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from sparselib.chunks import TOKENS, Chunks
from sparselib.graphs import Batch, LayerGraphs
from sparselib.predictors.distance import squared_distances
from sparselib.storage import read_tensors, write_tensors

KIND = "projection"


@dataclass(frozen=True)
class Projection:
    """One affine map per head, shared by queries and keys: ``weight [H, D, R]``, ``bias [H, R]``.

    The bias cancels in every distance between a query and a key, so it is never learned and stays at its start, zero.
    It is kept because the paper counts it (4,160 = 16 (64 * 4 + 4) parameters in a layer of 16 heads).
    """

    weight: Tensor
    bias: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        """Project ``[B, H, n, D]`` to ``[B, H, n, R]``, in the dtype of `x`."""
        return x @ self.weight.to(x.dtype) + self.bias.to(x.dtype).unsqueeze(1)

    def to(self, device: torch.device | str) -> "Projection":
        """The same projection on another device."""
        return Projection(self.weight.to(device), self.bias.to(device))

    def save(self, path: str | Path, **header: object) -> None:
        write_tensors(path, {"weight": self.weight, "bias": self.bias}, kind=KIND, **header)

    @classmethod
    def load(cls, path: str | Path) -> "Projection":
        return cls(**read_tensors(path, kind=KIND))


def triplet_loss(positive: Tensor, negative: Tensor, query: Tensor, queries: int, margin: float) -> Tensor:
    """Mean hinge over triplets, Eq. 7: ``[margin + |q - k_P|^2 - |q - k_N|^2]_+``.

    ``positive`` and ``negative`` are the squared distances of ``E`` triplets; ``query`` and ``queries`` are not needed.
    """
    return (margin + positive - negative).clamp_min(0).mean()


def set_loss(positive: Tensor, negative: Tensor, query: Tensor, queries: int, margin: float) -> Tensor:
    """What the authors' code optimises: one hinge per query, over the sums of its positive and negative distances.

    ``query [E]`` numbers the query of each triplet, out of ``queries``; a query without triplet adds nothing.
    """
    difference = torch.zeros(queries, dtype=positive.dtype, device=positive.device)
    difference = difference.index_add(0, query, positive - negative)
    present = torch.zeros(queries, dtype=torch.bool, device=positive.device).index_fill(0, query, True)
    return (margin + difference[present]).clamp_min(0).sum() / queries


LOSSES = {"triplet": triplet_loss, "set": set_loss}


def fit_projection(
    graphs: LayerGraphs,
    *,
    dimension: int,
    loss: str = "triplet",
    margin: float = 1.0,
    learning_rate: float = 0.01,
    batch_size: int = 16,
    epochs: int = 1,
    seed: int = 0,
    chunks: Chunks = TOKENS,
) -> tuple[Projection, list[float]]:
    """Learn the projection of every head of one layer with Adam; the defaults are Table 5's.

    Parameters
    ----------
    dimension : int
        R, the size of the projected space.
    loss : ``"triplet"`` or ``"set"``
        Eq. 7, or the reference code's form of it.
    chunks : Chunks
        Whose vectors are contrasted; a pair of chunks is positive if any pair of their tokens is (section 6.1).

    Returns
    -------
    The projection, and the loss of every step.
    """
    if loss not in LOSSES:
        raise ValueError(f"loss must be one of {', '.join(LOSSES)}; got {loss!r}")
    generator = torch.Generator().manual_seed(seed)
    # The reference initialises a [H, D, R] tensor as torch does a convolution: fan-in D * R.
    bound = (graphs.dimension * dimension) ** -0.5
    shape = (graphs.heads, graphs.dimension, dimension)
    weight = (torch.rand(shape, generator=generator) * 2 - 1).mul_(bound).requires_grad_()
    bias = torch.zeros(graphs.heads, dimension)
    optimizer = torch.optim.Adam([weight], lr=learning_rate)
    losses = []
    for _ in range(epochs):
        for batch in graphs.batches(batch_size):
            value = contrastive_loss(
                Projection(weight, bias), batch, loss=loss, margin=margin, generator=generator, chunks=chunks
            )
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
            losses.append(value.item())
    return Projection(weight.detach(), bias), losses


def contrastive_loss(
    projection: Projection,
    batch: Batch,
    *,
    loss: str,
    margin: float,
    generator: torch.Generator,
    chunks: Chunks = TOKENS,
) -> Tensor:
    """The loss of one batch: every gold edge between chunks is a positive, with one negative key of the same query."""
    query, positive, negative = sample_triplets(chunks.blocks(batch.gold), chunks.blocks(batch.visible), generator)
    q, k = (chunks.vectors(projection(x), batch.lengths) for x in (batch.q, batch.k))
    distances = squared_distances(q, k).flatten(0, 2)
    return LOSSES[loss](distances[query, positive], distances[query, negative], query, len(distances), margin)


def sample_triplets(gold: Tensor, visible: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """A uniform negative for every gold edge, from the visible keys of its query that are no edge, with replacement.

    The reference code also draws padding and future keys; this does not. An edge of a query without any
    negative is left out.

    Parameters
    ----------
    gold, visible : ``Bool[B, H, Q, K]``, ``Bool[B, 1, Q, K]``

    Returns
    -------
    query, positive, negative : integer Tensors ``[E]``
        Row of the query in ``B * H * Q``, key of the edge, key of the negative.
    """
    keys = gold.shape[-1]
    # Running count of negatives over the whole tensor, so that one search finds the r-th negative of any row.
    count = (visible & ~gold).flatten().cumsum(0, dtype=torch.int32)
    last = count[keys - 1 :: keys]
    before = torch.cat([last.new_zeros(1), last[:-1]])
    query, positive = gold.flatten(0, 2).nonzero(as_tuple=True)
    has_negative = (last > before)[query]
    query, positive = query[has_negative], positive[has_negative]
    available = (last - before)[query]
    draw = torch.rand(len(query), generator=generator, dtype=torch.float64)
    rank = before[query] + 1 + (draw * available).int()
    negative = torch.searchsorted(count, rank) - query * keys
    return query, positive, negative
