"""What layers learn from the edges that their heads need: projections, thresholds and clusters, each in one pass."""

from collections.abc import Iterable

import torch
from torch import Tensor

from sparselib.huggingface.heads import CLUSTERS
from sparselib.huggingface.layers import Layer, NeededEdges
from sparselib.predictors import fit_centroids, squared_distances
from sparselib.projections import Projection, contrastive_loss

LEARNING_RATE, MARGIN = 0.01, 1.0  # Sparsefinder, Table 5
#: Of each head, queries and keys together: what clusters are fitted to, and gold edges whose distances are kept.
MOST_POINTS = 2000
MOST_DISTANCES = 20_000
#: Shares of the edges that may be missed which thresholds miss.
MISSED = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, *(0.3 + 0.05 * step for step in range(15)), 1.2, 1.5)


class ProjectionLearner:
    """The projection of one layer, learned with Adam: one step of Eq. 7 for every sequence."""

    def __init__(self, heads: int, size: int, dimension: int, seed: int):
        self.generator = torch.Generator().manual_seed(seed)
        start = torch.rand((heads, size, dimension), generator=self.generator) * 2 - 1
        self.weight = (start * (size * dimension) ** -0.5).requires_grad_()
        self.optimizer = torch.optim.Adam([self.weight], lr=LEARNING_RATE)

    @torch.enable_grad()
    def see(self, batch: NeededEdges) -> None:
        for row in range(len(batch.q)):
            length = int(batch.lengths[row])
            one = NeededEdges(
                batch.q[row : row + 1, :, :length].cpu(),
                batch.k[row : row + 1, :, :length].cpu(),
                batch.lengths[row : row + 1].cpu(),
                batch.causal,
                edges=batch.edges[row : row + 1, :, :length, :length].cpu(),
            )
            loss = contrastive_loss(self.projection, one, loss="triplet", margin=MARGIN, generator=self.generator)
            if loss.isfinite() and loss.requires_grad:
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()

    @property
    def projection(self) -> Projection:
        return Projection(self.weight, torch.zeros(self.weight.shape[0], self.weight.shape[2]))


class Sample:
    """Projected tokens of one layer, and distances of its gold edges, drawn evenly from all sequences."""

    def __init__(self, sequences: int, seed: int):
        self.generator = torch.Generator().manual_seed(seed)
        self.tokens = -(-MOST_POINTS // (2 * sequences))
        self.edges = -(-MOST_DISTANCES // sequences)
        self.points: list[Tensor] = []
        self.distances: list[list[Tensor]] = []

    def see(self, layer: Layer, batch: NeededEdges) -> None:
        q, k = (layer.projection(x).cpu() for x in (batch.q, batch.k))
        near, needed = squared_distances(q, k), batch.edges.cpu()
        for row, length in enumerate(batch.lengths.tolist()):
            chosen = torch.randperm(length, generator=self.generator)[: self.tokens]
            self.points += [q[row][:, chosen], k[row][:, chosen]]
            self.distances.append([self._drawn(x[edges]) for x, edges in zip(near[row], needed[row], strict=True)])

    def _drawn(self, values: Tensor) -> Tensor:
        return values[torch.randperm(len(values), generator=self.generator)[: self.edges]]

    def thresholds(self, allowed: float) -> list[list[float]]:
        """For every head, squared distances beyond which about that share of its gold edges lies, falling."""
        of_heads = [torch.cat(head) for head in zip(*self.distances, strict=True)]
        reached = (1 - allowed * torch.tensor(MISSED)).clamp_min(0)
        return [x.quantile(reached).tolist() if len(x) else [0.0] * len(MISSED) for x in of_heads]

    def centroids(self, seed: int) -> dict[int, Tensor]:
        """``{clusters: [H, C, R]}``; numbers of clusters that there are too few points for are left out."""
        points = torch.cat(self.points, dim=1)
        return {count: fit_centroids(list(points), count, seed) for count in CLUSTERS if points.shape[1] >= count}


def learn_projections(seen: Iterable[list[NeededEdges | None]], layers: list[Layer], dimension: int, seed: int) -> int:
    """One pass: the projection of every layer that can be sparsified. The number of sequences."""
    learners: dict[int, ProjectionLearner] = {}
    sequences = 0
    for batches in seen:
        for number, batch in enumerate(batches):
            if batch is not None:
                if number not in learners:
                    learners[number] = ProjectionLearner(batch.q.shape[1], batch.q.shape[3], dimension, seed + number)
                learners[number].see(batch)
                device = batch.q.device
        sequences += next((len(batch.q) for batch in batches if batch is not None), 0)
    for number, learner in learners.items():
        layers[number].projection = Projection(learner.weight.detach(), learner.projection.bias).to(device)
    return sequences
