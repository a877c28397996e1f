"""Observations of a running model: queries, keys, the edges that heads need, and the losses of predictor settings."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from sparselib.control import AttentionControl, LayerCall
from sparselib.huggingface.gold import GoldRule
from sparselib.huggingface.heads import Setting, per_head
from sparselib.masks import visible_pairs
from sparselib.masks.visible import causal_and_lengths
from sparselib.metrics import edge_counts
from sparselib.projections import Batch, Projection

Inputs = Mapping[str, Tensor]


@dataclass(frozen=True)
class NeededEdges(Batch):
    """One layer's batch with gold edges ``Bool[B, H, n, n]`` from a gold rule."""

    edges: Tensor = field(kw_only=True)

    @property
    def gold(self) -> Tensor:
        return self.edges


@dataclass
class Layer:
    """One attention layer: its fitted tensors, and each head's setting."""

    causal: bool = False
    #: The reason why the layer cannot be sparsified, or empty. If there is one, the other fields are not set.
    left_dense: str = ""
    projection: Projection | None = None
    centroids: dict[int, Tensor] = field(default_factory=dict)
    chosen: list[Setting] = field(default_factory=list)

    def needed_edges(self, call: LayerCall, gold: GoldRule) -> NeededEdges | None:
        """Return a call's inputs and gold edges in single precision, or None if the layer stays dense."""
        if self.left_dense:
            return None
        try:
            self.causal, lengths = causal_and_lengths(call.visible)
        except ValueError:
            self.left_dense = "its mask hides more than padding on the right and later keys"
            return None
        if lengths is None:
            lengths = torch.full((len(call.q),), call.q.shape[2], device=call.q.device)
        q, k = call.q.float(), call.k.float()
        # Padded queries need no keys. The masks of models hide padded keys, but not padded queries.
        real = visible_pairs(len(q), q.shape[2], k.shape[2], lengths, self.causal, q.device)
        return NeededEdges(q, k, lengths, self.causal, edges=gold(call) & real)


def observed_layers(
    model: nn.Module, control: AttentionControl, layers: list[Layer], gold: GoldRule, batches: Iterable[Inputs]
) -> Iterator[list[NeededEdges | None]]:
    """Run the model on each batch, and yield one entry per layer with its inputs and gold edges."""
    for inputs in batches:
        observed: list[NeededEdges | None] = [None] * control.layers

        def observe(call: LayerCall, mask: Tensor, observed: list = observed) -> None:
            layer = layers[call.layer]
            if call.layer in control.cross_layers:
                layer.left_dense = "its keys come from another sequence than its queries"
            observed[call.layer] = layer.needed_edges(call, gold)

        with torch.no_grad(), control.observing(observe):
            model(**{name: x.to(model.device) for name, x in inputs.items()})
        yield observed


@dataclass
class Measured:
    """Losses and densities of all settings of one layer's heads: lists of ``[S, H, B]``, one per batch."""

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
