"""What a model loses when predicted graphs replace those of its attention, in all layers and heads at once (section 5)."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import pandas as pd
import torch
from torch import Tensor
from tqdm import tqdm

from replication.graphs.grids import Member
from sparselib.control import Graph, LayerCall
from sparselib.graphs import PredictedGraph
from sparselib.projections import Projection

#: Where a graph stands in the tables: its method, setting and window.
Point = tuple[str, str, int]


@dataclass(frozen=True)
class Students:
    """What was learned from the graphs of one model, layer by layer, with one seed.

    Attributes
    ----------
    projections : one per layer
    centroids : one per layer, ``{"kmeans-8": [H, 8, R], ...}``
    """

    projections: list[Projection]
    centroids: list[dict[str, Tensor]]


@dataclass(frozen=True)
class Replacements:
    """Every member of a grid with every window, in the layers of one model, with the students of every seed.

    Attributes
    ----------
    students : by their seed
    members : those of the grid
    windows : total widths
    global_tokens : ``"none"``, ``"first"`` or ``"first_last"``
    """

    students: dict[int, Students]
    members: list[Member]
    windows: list[int]
    global_tokens: str

    def graphs(self, seed: int, causal: bool, device: torch.device) -> Iterator[tuple[Point, bool, Graph]]:
        """One graph after the other, with its place in the tables, and whether another seed has another one.

        The first two are the model's own: all that is visible, and its own graph, which changes nothing as a mask
        (Proposition 1). What is drawn at random is drawn anew for every seed and layer.
        """
        yield ("full", "", 0), False, lambda call: call.visible.expand(-1, call.q.shape[1], -1, -1)
        yield ("gold graph", "", 0), False, LayerCall.gold
        students = self.students[seed]
        projections = [projection.to(device) for projection in students.projections]
        for member in self.members:
            predictors = [
                member.build(of_layer, seed * 1000 + layer) for layer, of_layer in enumerate(students.centroids)
            ]
            for window in self.windows:
                graph = PredictedGraph(projections, predictors, window, self.global_tokens, causal)
                yield (member.method, member.setting, window), member.is_seeded, graph


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


#: What a model scores while it attends along each of some graphs: columns of the table, and a table of what they add up from.
Score = Callable[[Sequence[Graph]], Iterable[tuple[dict[str, object], pd.DataFrame]]]


def evaluate_replaced(
    score: Score,
    tally: Callable[[], Tally],
    replacements: Replacements,
    *,
    causal: bool,
    device: torch.device,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The score of a model under every replacement, and what its graphs are like.

    Graphs are predicted from the hidden states that the replacement below has already changed, and so are gold graphs, where
    the tally counts them: measures are the *perturbed* ones.

    Parameters
    ----------
    score : given all graphs of one member of the grid, with every window and seed
    tally : makes an empty :class:`Tally`
    causal : whether they are the self-attention of a decoder

    Returns
    -------
    A row per seed, member and window: ``seed, method, setting, window``, the columns of the score, those of the tally; and the
    tables that scores add up from, one below the other, with the same first columns. What no seed changes is measured once.
    """
    places, members = [], {}
    for seed in replacements.students:
        for point, is_seeded, graph in replacements.graphs(seed, causal, device):
            member, key = point[:2], (seed if is_seeded else None, point)
            places.append((seed, point, key))
            members.setdefault(member, {}).setdefault(key, _Counted(graph, tally()))
    measured = {}
    for graphs in tqdm(members.values(), desc="replace", unit="member", mininterval=5):
        for (key, graph), (scored, part) in zip(graphs.items(), score(list(graphs.values())), strict=True):
            measured[key] = scored | graph.tally.measures(), part
    rows, parts = [], []
    for seed, (method, setting, window), key in places:
        first = {"seed": seed, "method": method, "setting": setting, "window": window}
        scored, part = measured[key]
        rows.append(first | scored)
        parts.append(pd.DataFrame(first, index=part.index).join(part))
    return pd.DataFrame(rows), pd.concat(parts, ignore_index=True)
