"""What is looked at while a model runs: queries, keys, the edges that they need, and what settings find of them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from sparselib.blocks.kernel_arguments import token_rules
from sparselib.control import AttentionControl, LayerCall
from sparselib.huggingface.gold import GoldRule
from sparselib.huggingface.heads import Setting, per_head
from sparselib.masks import visible_pairs
from sparselib.metrics import edge_counts
from sparselib.projections import Batch, Projection

Inputs = Mapping[str, Tensor]


@dataclass(frozen=True)
class NeededEdges(Batch):
    """A batch of one layer whose gold edges a rule has said: ``Bool[B, H, n, n]``."""

    edges: Tensor = field(kw_only=True)

    @property
    def gold(self) -> Tensor:
        return self.edges


@dataclass
class Layer:
    """One layer of attention: what it has learned, and how each of its heads predicts."""

    causal: bool = False
    #: Why it can't be sparsified; nothing else is known of it then.
    left_dense: str = ""
    projection: Projection | None = None
    centroids: dict[int, Tensor] = field(default_factory=dict)
    chosen: list[Setting] = field(default_factory=list)

    def look(self, call: LayerCall, gold: GoldRule) -> NeededEdges | None:
        """What a call shows, in single precision; None if this layer is left dense, which the first look decides."""
        if self.left_dense:
            return None
        try:
            self.causal, lengths = token_rules(call.visible)
        except ValueError:
            self.left_dense = "its mask says more than padding on the right and causality"
            return None
        if lengths is None:
            lengths = torch.full((len(call.q),), call.q.shape[2], device=call.q.device)
        q, k = call.q.float(), call.k.float()
        # Padded queries need nothing: masks of models say which keys are padding, and leave the queries be.
        real = visible_pairs(len(q), q.shape[2], k.shape[2], lengths, self.causal, q.device)
        return NeededEdges(q, k, lengths, self.causal, edges=gold(call) & real)


def shown(
    model: nn.Module, control: AttentionControl, layers: list[Layer], gold: GoldRule, batches: Iterable[Inputs]
) -> Iterator[list[NeededEdges | None]]:
    """Run the model over batches, and show what its layers did: one list for each batch, one entry for each layer."""
    for inputs in batches:
        seen: list[NeededEdges | None] = [None] * control.layers

        def look(call: LayerCall, mask: Tensor, seen: list = seen) -> None:
            seen[call.layer] = layers[call.layer].look(call, gold)

        with torch.no_grad(), control.observing(look):
            model(**{name: x.to(model.device) for name, x in inputs.items()})
        yield seen


@dataclass
class Measured:
    """Losses and densities of the settings of every head of one layer: lists of ``[S, H, B]``, one for each batch."""

    missed: list[Tensor] = field(default_factory=list)
    density: list[Tensor] = field(default_factory=list)

    def add(self, layer: Layer, batch: NeededEdges, orders: list[list[Setting]]) -> None:
        """Measure the settings ``orders[head][number]`` on one batch."""
        q, k = layer.projection(batch.q), layer.projection(batch.k)
        needed, visible = edge_counts(batch.edges), edge_counts(batch.visible)
        missed, density = [], []
        for number in range(len(orders[0])):
            predictor = per_head([order[number] for order in orders], layer.centroids)
            predicted = predictor.predict(q, k, lengths=batch.lengths, causal=batch.causal)
            missed.append(1 - torch.where(needed > 0, edge_counts(predicted & batch.edges) / needed, 1.0))
            density.append(edge_counts(predicted) / visible)
        self.missed.append(torch.stack(missed).mT.cpu())
        self.density.append(torch.stack(density).mT.cpu())

    @property
    def losses(self) -> Tensor:
        """Share of the needed edges that is missed: ``[S, H, N]``."""
        return torch.cat(self.missed, dim=-1)

    @property
    def densities(self) -> Tensor:
        """Share of the visible pairs that is predicted: ``[S, H, N]``."""
        return torch.cat(self.density, dim=-1)
