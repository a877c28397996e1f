"""What a model loses when predicted graphs replace those of its attention, in all layers and heads at once (section 5)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import pandas as pd
import torch
from torch import Tensor
from tqdm import tqdm

from replication.graphs.grids import Member
from sparselib.integrations.control import AttentionControl, Graph, LayerCall
from sparselib.integrations.graphs import PredictedGraph
from sparselib.projections import Projection


@dataclass(frozen=True)
class Replacements:
    """Every member of a grid with every window, in the layers of one model.

    Attributes
    ----------
    projections : one per layer
    centroids : one per layer, ``{"kmeans-8": [H, 8, R], ...}``
    members : those of the grid
    windows : total widths
    global_tokens : ``"none"``, ``"first"`` or ``"first_last"``
    seed : of the first layer, for members that draw at random; the next layers have the next ones
    """

    projections: list[Projection]
    centroids: list[dict[str, Tensor]]
    members: list[Member]
    windows: list[int]
    global_tokens: str
    seed: int

    def graphs(self, causal: bool, device: torch.device) -> Iterator[tuple[Member, int, PredictedGraph]]:
        """Member, window and graph, one after the other."""
        projections = [projection.to(device) for projection in self.projections]
        for member in tqdm(self.members, desc="replace", unit="member", mininterval=5):
            predictors = [member.build(of_layer, self.seed + layer) for layer, of_layer in enumerate(self.centroids)]
            for window in self.windows:
                yield member, window, PredictedGraph(projections, predictors, window, self.global_tokens, causal)


class Tally(Protocol):
    """Counts over the layers, heads and sentences of one evaluation."""

    def add(self, mask: Tensor, call: LayerCall) -> None:
        """Count the mask ``Bool[B, H, Q, K]`` that a layer is about to attend along."""
        ...

    def measures(self) -> dict[str, float]:
        """The columns of a table that follow from the counts."""
        ...


@dataclass(frozen=True)
class _Counted:
    """A graph that counts what it gives."""

    graph: Graph
    tally: Tally

    @property
    def needs_prefix(self) -> bool:
        return getattr(self.graph, "needs_prefix", False)

    def __call__(self, call: LayerCall) -> Tensor:
        mask = self.graph(call)
        self.tally.add(mask, call)
        return mask


def evaluate_replaced(
    control: AttentionControl,
    score: Callable[[], tuple[dict[str, object], pd.DataFrame]],
    tally: Callable[[], Tally],
    replacements: Replacements,
    *,
    causal: bool,
    device: torch.device,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The score of a model under every replacement, and what its graphs are like.

    Graphs are predicted from the hidden states that the replacement below has already changed, and so are gold graphs, where
    the tally counts them: measures are the *perturbed* ones. Two rows are the model itself: ``full``, and ``gold graph`` with
    its own graph as mask, which sparse-consistency (Proposition 1) makes equal.

    Parameters
    ----------
    control : of the layers whose graphs are replaced
    score : the model's score as it now attends, as columns of the table, and a table of what it adds up from
    tally : makes an empty :class:`Tally`
    causal : whether they are the self-attention of a decoder

    Returns
    -------
    A row per member and window: ``method, setting, window``, the columns of the score, those of the tally; and the tables that
    scores add up from, one below the other, with the same first columns.
    """
    parts = []

    def row(method: str, setting: str, window: int, graph: Graph) -> dict[str, object]:
        counted, point = _Counted(graph, tally()), {"method": method, "setting": setting, "window": window}
        with control.restricted_to(counted):
            scored, part = score()
        parts.append(pd.DataFrame(point, index=part.index).join(part))
        return point | scored | counted.tally.measures()

    rows = [
        row("full", "{}", 0, lambda call: call.visible.expand(-1, call.q.shape[1], -1, -1)),
        row("gold graph", "{}", 0, LayerCall.gold),
    ]
    for member, window, graph in replacements.graphs(causal, device):
        rows.append(row(member.method, member.setting, window, graph))
    return pd.DataFrame(rows), pd.concat(parts, ignore_index=True)
