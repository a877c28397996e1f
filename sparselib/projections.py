"""Learned linear projections, one per head, that move a query close to the keys it attends to (section 4.2)."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from sparselib.blocks.chunks import TOKENS, Chunks
from sparselib.checks import integer_at_least, one_of
from sparselib.control import LayerCall
from sparselib.dense_attention import PLAIN, Scoring, gold_graph
from sparselib.masks import visible_pairs
from sparselib.normalizers import Normalizer, entmax15
from sparselib.triplets import Edges, gold_edges, sample_negatives

__all__ = ["LOSSES", "Batch", "Projection", "fit_projection", "set_loss", "triplet_loss"]


@dataclass(frozen=True)
class Batch:
    """One layer's queries and keys of a batch of sequences, padded on the right.

    Parameters
    ----------
    q, k : Tensor ``[B, H, n, D]``, before scaling
    lengths : integer Tensor ``[B]``, the real tokens of each sequence
    causal : bool, whether the model is a decoder
    normalizer : callable, the model's own, whose edges are gold
    scoring : Scoring, the model's own
    mask : Bool Tensor ``[B, 1, n, n]``, optional, the pairs that the model shows, such as those of a window

    Examples
    --------
    >>> batch = Batch(torch.randn(1, 2, 4, 8), torch.randn(1, 2, 4, 8), lengths=torch.tensor([3]), causal=True)
    >>> batch.visible[0, 0].int().tolist()
    [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [0, 0, 0, 0]]
    """

    q: Tensor
    k: Tensor
    lengths: Tensor
    causal: bool = False
    normalizer: Normalizer = entmax15
    scoring: Scoring = PLAIN
    mask: Tensor | None = None

    @classmethod
    def of(cls, call: LayerCall, lengths: Tensor, causal: bool = False) -> "Batch":
        """Return the queries and keys of an observed call, with the layer's own scoring, normaliser and mask.

        Parameters
        ----------
        call : LayerCall
        lengths, causal : as in :class:`Batch`

        Examples
        --------
        >>> q = k = 4 * torch.eye(3).view(1, 1, 3, 3)
        >>> call = LayerCall(0, q, k, visible=torch.ones(1, 1, 3, 3, dtype=torch.bool))
        >>> torch.equal(Batch.of(call, lengths=torch.tensor([3])).gold, call.gold())
        True
        """
        return cls(call.q, call.k, lengths, causal, call.normalizer, call.scoring, call.visible)

    @property
    def visible(self) -> Tensor:
        """Pairs of real tokens that the model shows, without the future if causal: ``Bool[B, 1, n, n]``."""
        visible = visible_pairs(len(self.q), self.q.shape[2], self.k.shape[2], self.lengths, self.causal)
        return visible if self.mask is None else visible & self.mask

    @property
    def gold(self) -> Tensor:
        """The exact edges of the model's own attention (section 4.1): ``Bool[B, H, n, n]``."""
        visible = self.visible
        return gold_graph(self.q, self.k, visible, normalizer=self.normalizer, scoring=self.scoring) & visible


@dataclass(frozen=True)
class Projection:
    """One affine map per head, shared by queries and keys: ``[B, H, n, D]`` -> ``[B, H, n, R]``.

    Parameters
    ----------
    weight : Tensor ``[H, D, R]``
    bias : Tensor ``[H, R]``
        Stays zero, because it cancels in every query-key distance. The paper counts it: 4,160 = 16 (64 * 4 + 4) per layer.

    Examples
    --------
    >>> Projection(torch.ones(2, 8, 3), torch.zeros(2, 3))(torch.ones(1, 2, 5, 8)).shape
    torch.Size([1, 2, 5, 3])
    """

    weight: Tensor
    bias: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        return x @ self.weight.to(x.dtype) + self.bias.to(x.dtype).unsqueeze(1)

    def to(self, device: torch.device | str) -> "Projection":
        """Return the same projection on another device."""
        return Projection(self.weight.to(device), self.bias.to(device))


def triplet_loss(positive: Tensor, negative: Tensor, query: Tensor, queries: int, margin: float) -> Tensor:
    """Return the mean hinge ``[margin + |q - k_P|^2 - |q - k_N|^2]_+`` over triplets (Eq. 7).

    Parameters
    ----------
    positive, negative : Tensor ``[E]``, the squared distances of E triplets
    query, queries : unused, as only :func:`set_loss` needs them
    margin : float

    Examples
    --------
    >>> triplet_loss(torch.tensor([0.5, 3.0]), torch.tensor([2.0, 1.0]), None, 0, margin=1.0)
    tensor(1.5000)
    """
    return (margin + positive - negative).clamp_min(0).mean()


def set_loss(positive: Tensor, negative: Tensor, query: Tensor, queries: int, margin: float) -> Tensor:
    """Return the loss of the authors' code: one hinge per query, over the sums of its positive and negative distances.

    Parameters
    ----------
    positive, negative, margin : as in :func:`triplet_loss`
    query : integer Tensor ``[E]``, the number of each triplet's query
    queries : int, the number of queries, of which those without triplets add nothing

    Examples
    --------
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
    edges: dict[int, Edges] | None = None,
) -> tuple[Projection, list[float]]:
    """Learn the projections of one layer's heads with Adam (defaults: Table 5); return them and the loss of every step.

    Parameters
    ----------
    batches : iterable of Batch, read once per epoch, so no iterator for several epochs
    dimension : int, the size R of the projected space
    loss : ``"triplet"`` (Eq. 7), or ``"set"`` as in the reference code
    margin, learning_rate, epochs : number
    seed : int, of the initial weights and of the negatives
    chunks : Chunks, whose vectors are contrasted; a pair is positive if any pair of their tokens is (section 6.1)
    edges : dict, optional, which several epochs fill by a batch's number; pass it to fits of other seeds to the same batches

    Raises
    ------
    ValueError

    Examples
    --------
    >>> batch = Batch(torch.randn(2, 4, 16, 64), torch.randn(2, 4, 16, 64), torch.tensor([16, 9]))
    >>> projection, losses = fit_projection([batch], dimension=4)
    >>> projection(batch.q).shape
    torch.Size([2, 4, 16, 4])
    """
    one_of("loss", loss, LOSSES)
    for name, value in (("dimension", dimension), ("epochs", epochs)):
        integer_at_least(name, value, 1)
    if epochs > 1 and iter(batches) is batches:
        raise ValueError(f"`batches` must be readable {epochs} times, got an iterator; pass a list or a DataLoader")
    generator = torch.Generator().manual_seed(seed)
    weight, optimizer, losses = None, None, []
    edges = {} if edges is None else edges
    for _ in range(epochs):
        for number, batch in enumerate(batches):
            if epochs > 1 and number not in edges:  # one epoch would keep what it does not use again
                edges[number] = gold_edges(chunks.blocks(batch.gold), chunks.blocks(batch.visible))
            if weight is None:
                # As in the reference code: torch's default for a convolution with fan-in D * R.
                heads, size = batch.q.shape[1], batch.q.shape[3]
                uniform = torch.rand((heads, size, dimension), generator=generator) * 2 - 1
                weight = uniform.mul_((size * dimension) ** -0.5).requires_grad_()
                optimizer = torch.optim.Adam([weight], lr=learning_rate)
            projection = Projection(weight, torch.zeros(weight.shape[0], dimension))
            options = {"loss": loss, "margin": margin, "generator": generator, "chunks": chunks}
            value = contrastive_loss(projection, batch, edges.get(number), **options)
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
            losses.append(value.item())
    if weight is None:
        raise ValueError("`batches` must hold at least one batch to learn from, got none")
    return Projection(weight.detach(), torch.zeros(weight.shape[0], dimension)), losses


def contrastive_loss(
    projection: Projection,
    batch: Batch,
    edges: Edges | None = None,
    *,
    loss: str,
    margin: float,
    generator: torch.Generator,
    chunks: Chunks = TOKENS,
) -> Tensor:
    """Return one batch's loss: each gold edge between chunks is a positive, paired with one negative key of its query."""
    if edges is None:
        edges = gold_edges(chunks.blocks(batch.gold), chunks.blocks(batch.visible))
    q, k = (chunks.vectors(projection(x), batch.lengths) for x in (batch.q, batch.k))
    queries, keys = q.flatten(0, 2), k.flatten(0, 2)
    first = edges.query // q.shape[2] * k.shape[2]  # of the keys of the query's head
    triplets = torch.stack([edges.query, first + edges.positive, first + sample_negatives(edges, generator)])
    with torch.no_grad():
        near, far = _squared_distances(queries, keys, triplets)
    with torch.enable_grad():
        value = LOSSES[loss](near.requires_grad_(), far, edges.query, len(queries), margin)
        (slope,) = torch.autograd.grad(value, near)
    # Both losses depend on `near - far`. Most triplets soon have no slope, so only the others go through the backward pass.
    active = slope.nonzero()[:, 0]
    near, far = _squared_distances(queries, keys, triplets[:, active])
    linear = slope[active] @ (near - far)
    return value.detach() + linear - linear.detach()


def _squared_distances(queries: Tensor, keys: Tensor, triplets: Tensor) -> list[Tensor]:
    """Return the squared distances of triplets ``[3, E]`` to their positive and to their negative key."""
    query, *sides = triplets
    chosen = queries.index_select(0, query)
    return [(chosen - keys.index_select(0, side)).square().sum(-1) for side in sides]
