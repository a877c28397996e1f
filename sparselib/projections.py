"""Learning where to look: head-wise linear projections that bring a query close to the keys it attends to (section 4.2)."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from sparselib.blocks.chunks import TOKENS, Chunks
from sparselib.checks import one_of
from sparselib.dense_attention import gold_graph
from sparselib.masks import visible_pairs
from sparselib.predictors.distance import squared_distances

__all__ = ["LOSSES", "Batch", "Projection", "fit_projection", "set_loss", "triplet_loss"]


@dataclass(frozen=True)
class Batch:
    """Sequences of one layer, padded on the right: `q`, `k` ``[B, H, n, D]`` before scaling, `lengths` ``[B]`` real tokens.

    >>> batch = Batch(torch.randn(1, 2, 4, 8), torch.randn(1, 2, 4, 8), lengths=torch.tensor([3]), causal=True)
    >>> batch.visible[0, 0].int()
    tensor([[1, 0, 0, 0],
            [1, 1, 0, 0],
            [1, 1, 1, 0],
            [0, 0, 0, 0]], dtype=torch.int32)
    >>> bool((batch.gold <= batch.visible).all())
    True
    """

    q: Tensor
    k: Tensor
    lengths: Tensor
    causal: bool = False

    @property
    def visible(self) -> Tensor:
        """``Bool[B, 1, n, n]``: pairs of real positions, not in the future if the model is causal."""
        return visible_pairs(len(self.q), self.q.shape[2], self.k.shape[2], self.lengths, self.causal)

    @property
    def gold(self) -> Tensor:
        """``Bool[B, H, n, n]``: the exact edges of 1.5-entmax (section 4.1)."""
        return gold_graph(self.q, self.k, self.visible) & self.visible


@dataclass(frozen=True)
class Projection:
    """One affine map per head, shared by queries and keys: ``weight [H, D, R]``, ``bias [H, R]``.

    The bias cancels in every distance between a query and a key, so it is never learned and stays at its start, zero.
    It is kept because the paper counts it (4,160 = 16 (64 * 4 + 4) parameters in a layer of 16 heads).

    >>> project = Projection(torch.ones(2, 8, 3), torch.zeros(2, 3))
    >>> project(torch.ones(1, 2, 5, 8)).shape
    torch.Size([1, 2, 5, 3])
    """

    weight: Tensor
    bias: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        """Project ``[B, H, n, D]`` to ``[B, H, n, R]``, in the dtype of `x`."""
        return x @ self.weight.to(x.dtype) + self.bias.to(x.dtype).unsqueeze(1)

    def to(self, device: torch.device | str) -> "Projection":
        """The same projection on another device."""
        return Projection(self.weight.to(device), self.bias.to(device))


def triplet_loss(positive: Tensor, negative: Tensor, query: Tensor, queries: int, margin: float) -> Tensor:
    """Mean hinge over triplets, Eq. 7: ``[margin + |q - k_P|^2 - |q - k_N|^2]_+``.

    ``positive`` and ``negative`` are the squared distances of ``E`` triplets; ``query`` and ``queries`` are not needed.

    >>> triplet_loss(torch.tensor([0.5, 3.0]), torch.tensor([2.0, 1.0]), None, 0, margin=1.0)
    tensor(1.5000)
    """
    return (margin + positive - negative).clamp_min(0).mean()


def set_loss(positive: Tensor, negative: Tensor, query: Tensor, queries: int, margin: float) -> Tensor:
    """What the authors' code optimises: one hinge per query, over the sums of its positive and negative distances.

    ``query [E]`` numbers the query of each triplet, out of ``queries``; a query without triplet adds nothing.

    >>> set_loss(torch.tensor([0.5, 3.0]), torch.tensor([2.0, 1.0]), torch.tensor([0, 1]), queries=2, margin=1.0)
    tensor(1.5000)
    """
    difference = torch.zeros(queries, dtype=positive.dtype, device=positive.device)
    difference = difference.index_add(0, query, positive - negative)
    present = torch.zeros(queries, dtype=torch.bool, device=positive.device).index_fill(0, query, True)
    return (margin + difference[present]).clamp_min(0).sum() / queries


LOSSES = {"triplet": triplet_loss, "set": set_loss}


def fit_projection(
    batches: Iterable[Batch],
    *,
    dimension: int,
    loss: str = "triplet",
    margin: float = 1.0,
    learning_rate: float = 0.01,
    epochs: int = 1,
    seed: int = 0,
    chunks: Chunks = TOKENS,
) -> tuple[Projection, list[float]]:
    """The projection of every head of one layer, learned with Adam, and the loss of every step; defaults are Table 5's.

    Parameters
    ----------
    batches : iterable of Batch
        Queries and keys of the layer, read once an epoch.
    dimension : int
        R, the size of the projected space.
    loss : ``"triplet"`` or ``"set"``
        Eq. 7, or the reference code's form of it.
    chunks : Chunks
        Whose vectors are contrasted; a pair of chunks is positive if any pair of their tokens is (section 6.1).

    Raises ``ValueError`` if the loss is unknown, there is no batch, or `batches` can be read only once and there are several
    epochs.

    >>> batch = Batch(torch.randn(2, 4, 16, 64), torch.randn(2, 4, 16, 64), torch.tensor([16, 9]))
    >>> projection, losses = fit_projection([batch], dimension=4)
    >>> projection(batch.q).shape
    torch.Size([2, 4, 16, 4])
    """
    one_of("loss", loss, LOSSES)
    if epochs > 1 and iter(batches) is batches:
        raise ValueError(f"batches: an iterator, which {epochs} epochs can't read again; give a list, or a DataLoader")
    generator = torch.Generator().manual_seed(seed)
    weight, optimizer, losses = None, None, []
    for _ in range(epochs):
        for batch in batches:
            if weight is None:
                weight = _initial_weight(batch.q.shape[1], batch.q.shape[3], dimension, generator)
                optimizer = torch.optim.Adam([weight], lr=learning_rate)
            projection = Projection(weight, torch.zeros(weight.shape[0], dimension))
            value = contrastive_loss(projection, batch, loss=loss, margin=margin, generator=generator, chunks=chunks)
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
            losses.append(value.item())
    if weight is None:
        raise ValueError("batches: there is none to learn from")
    return Projection(weight.detach(), torch.zeros(weight.shape[0], dimension)), losses


def _initial_weight(heads: int, size: int, dimension: int, generator: torch.Generator) -> Tensor:
    """As the reference code's: it initialises a ``[H, D, R]`` tensor as torch does a convolution, of fan-in D * R."""
    uniform = torch.rand((heads, size, dimension), generator=generator) * 2 - 1
    return uniform.mul_((size * dimension) ** -0.5).requires_grad_()


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

    From ``Bool[B, H, Q, K]`` and ``Bool[B, 1, Q, K]`` to three integer tensors ``[E]``: row of the query in ``B * H * Q``, key
    of the edge, key of the negative.
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
