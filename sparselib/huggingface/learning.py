"""Layers' projections, thresholds and clusters, learned from the edges that their heads need, in one pass each."""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from sparselib.blocks.chunks import TOKENS, Chunks
from sparselib.huggingface.heads import CLUSTERS
from sparselib.huggingface.layers import Layer, NeededEdges
from sparselib.predictors import fit_centroids, squared_distances
from sparselib.projections import Projection, contrastive_loss

LEARNING_RATE, MARGIN = 0.01, 1.0  # Sparsefinder, Table 5
#: Per head: queries and keys to fit clusters to, and gold edges whose distances are kept.
MOST_POINTS = 2000
MOST_DISTANCES = 20_000
#: Queries of a sequence whose gold edges a step learns from.
MOST_QUERIES = 128
#: Steps per sequence if blocks are contrasted, of which there are few; negatives are drawn anew for each.
BLOCK_STEPS = 8
#: Shares of edges that the thresholds miss, in units of the allowed share.
MISSED = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, *(0.3 + 0.05 * step for step in range(15)), 1.2, 1.5)


class ProjectionLearner:
    """The projection of one layer, learned with Adam: one step of Eq. 7 for every sequence, or a few that contrast blocks."""

    def __init__(self, heads: int, size: int, dimension: int, seed: int, chunks: Chunks):
        self.chunks, self.steps = chunks, 1 if chunks.size == 1 else BLOCK_STEPS
        self.generator = torch.Generator().manual_seed(seed)
        start = torch.rand((heads, size, dimension), generator=self.generator) * 2 - 1
        self.weight = (start * (size * dimension) ** -0.5).requires_grad_()
        self.optimizer = torch.optim.Adam([self.weight], lr=LEARNING_RATE)

    @torch.enable_grad()
    def add(self, batch: NeededEdges) -> None:
        """Learn from each sequence of a batch."""
        for row in range(len(batch.q)):
            length = int(batch.lengths[row])
            edges = batch.edges[row : row + 1, :, :length, :length].cpu()
            if self.chunks.size == 1 and length > MOST_QUERIES:
                skipped = torch.randperm(length, generator=self.generator)[MOST_QUERIES:]
                edges = edges.index_fill(2, skipped, False)
            sequence = NeededEdges(
                batch.q[row : row + 1, :, :length].cpu(),
                batch.k[row : row + 1, :, :length].cpu(),
                batch.lengths[row : row + 1].cpu(),
                batch.causal,
                edges=edges,
            )
            for _ in range(self.steps):
                self.step(sequence)

    def step(self, sequence: NeededEdges) -> None:
        """Take one step, unless the loss is not finite or no head needs a key."""
        loss = contrastive_loss(
            self.projection, sequence, loss="triplet", margin=MARGIN, generator=self.generator, chunks=self.chunks
        )
        if loss.isfinite() and loss.requires_grad:
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    @property
    def projection(self) -> Projection:
        """The projection as learned so far."""
        return Projection(self.weight, torch.zeros(self.weight.shape[0], self.weight.shape[2]))


class Sample:
    """Projected tokens of one layer, and distances of its gold edges, drawn evenly from all sequences."""

    def __init__(self, sequences: int, seed: int):
        self.generator = torch.Generator().manual_seed(seed)
        self.tokens = -(-MOST_POINTS // (2 * sequences))
        self.edges = -(-MOST_DISTANCES // sequences)
        self.points: list[Tensor] = []
        self.distances: list[list[Tensor]] = []

    def add(self, layer: Layer, batch: NeededEdges) -> None:
        """Draw tokens and gold edges of a batch."""
        q, k = (layer.projection(x).cpu() for x in (batch.q, batch.k))
        distances, needed = squared_distances(q, k), batch.edges.cpu()
        for row, length in enumerate(batch.lengths.tolist()):
            tokens = torch.randperm(length, generator=self.generator)[: self.tokens]
            self.points += [q[row][:, tokens], k[row][:, tokens]]
            near = [x[edges] for x, edges in zip(distances[row], needed[row], strict=True)]
            self.distances.append([x[torch.randperm(len(x), generator=self.generator)[: self.edges]] for x in near])

    def thresholds(self, missed: Sequence[float]) -> list[list[float]]:
        """Return each head's falling thresholds: squared distances that miss about these rising shares of its gold edges."""
        distances = [torch.cat(head) for head in zip(*self.distances, strict=True)]
        reached = (1 - torch.tensor(missed)).clamp_min(0)
        return [x.quantile(reached).tolist() if len(x) else [0.0] * len(missed) for x in distances]

    def centroids(self, seed: int) -> dict[int, Tensor]:
        """Return ``{clusters: [H, C, R]}``, without the numbers of clusters for which there are too few points."""
        points = torch.cat(self.points, dim=1)
        return {count: fit_centroids(list(points), count, seed) for count in CLUSTERS if points.shape[1] >= count}


def learn_projections(
    observed: Iterable[list[NeededEdges | None]],
    layers: list[Layer],
    dimension: int,
    seed: int,
    chunks: Chunks = TOKENS,
) -> int:
    """Learn the projection of every layer that can be sparsified, in one pass, and return the number of sequences.

    A projection brings the vectors of chunks with gold edges close to each other.
    """
    learners: dict[int, ProjectionLearner] = {}
    sequences = 0
    for batches in observed:
        for number, batch in enumerate(batches):
            if batch is not None:
                if number not in learners:
                    learners[number] = ProjectionLearner(
                        batch.q.shape[1], batch.q.shape[3], dimension, seed + number, chunks
                    )
                learners[number].add(batch)
                device = batch.q.device
        sequences += next((len(batch.q) for batch in batches if batch is not None), 0)
    for number, learner in learners.items():
        layers[number].projection = Projection(learner.weight.detach(), learner.projection.bias).to(device)
    return sequences
