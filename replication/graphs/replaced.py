"""Scores of a model whose attention is restricted to predicted graphs, in all layers and heads at once (section 5)."""

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
from sparselib.predictors import Predictor
from sparselib.projections import Projection

#: A graph's key in the tables: method, setting and window.
Point = tuple[str, str, int]


@dataclass(frozen=True)
class ModelStudents:
    """Projections, centroids and fitted predictors, learned from the graphs of one model with one seed.

    Attributes
    ----------
    projections : list of Projection
        One per layer.
    centroids : list of dict
        One per layer, ``{"kmeans-8": [H, 8, R], ...}``, with fitted predictors by :attr:`Member.point`.
    """

    projections: list[Projection]
    centroids: list[dict[str, Tensor | Predictor]]


@dataclass(frozen=True)
class Replacements:
    """Replacement graphs of one model: every grid member with its windows and every seed.

    Attributes
    ----------
    students : dict of ModelStudents
        By seed.
    members : list of (Member, list of int)
        Members of the grid, each with its total window widths.
    global_tokens : str
        ``"none"``, ``"first"`` or ``"first_last"``.
    """

    students: dict[int, ModelStudents]
    members: list[tuple[Member, list[int]]]
    global_tokens: str

    def graphs(self, seed: int, causal: bool, device: torch.device) -> Iterator[tuple[Point, bool, Graph]]:
        """Yield each graph's table key, whether the graph depends on the seed, and the graph.

        The first two graphs are references: all visible pairs, and the gold graph, which changes nothing as a mask
        (Proposition 1). Random patterns are drawn anew for every seed and layer.
        """
        yield ("full", "", 0), False, lambda call: call.visible.expand(-1, call.q.shape[1], -1, -1)
        yield ("gold graph", "", 0), False, LayerCall.gold
        students = self.students[seed]
        projections = [projection.to(device) for projection in students.projections]
        for member, windows in self.members:
            predictors = [
                member.build(centroids, seed * 1000 + layer) for layer, centroids in enumerate(students.centroids)
            ]
            for window in windows:
                graph = PredictedGraph(projections, predictors, window, self.global_tokens, causal)
                yield (member.method, member.setting, window), member.is_seeded, graph


class Tally(Protocol):
    """Pair counts over the layers, heads and sentences of one evaluation."""

    def add(self, mask: Tensor, call: LayerCall) -> None:
        """Count the pairs of the mask ``Bool[B, H, Q, K]`` that a layer attends to."""
        ...

    def measures(self) -> dict[str, float]:
        """Return the table columns computed from the counts."""
        ...


@dataclass(frozen=True)
class _CountedGraph:
    """Graph that adds its masks to a tally."""

    graph: Graph
    tally: Tally

    @property
    def needs_prefix(self) -> bool:
        return getattr(self.graph, "needs_prefix", False)

    def __call__(self, call: LayerCall) -> Tensor:
        mask = self.graph(call)
        self.tally.add(mask, call)
        return mask


#: Function that scores a model under each graph; yields table columns, and a table of the counts they are computed from.
Score = Callable[[Sequence[Graph]], Iterable[tuple[dict[str, object], pd.DataFrame]]]


def evaluate_replaced(
    score: Score,
    tally: Callable[[], Tally],
    replacements: Replacements,
    *,
    causal: bool,
    device: torch.device,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Score a model under every replacement, and measure the replacement graphs.

    Predicted graphs, and gold graphs where the tally counts them, are computed from hidden states that replacements in lower
    layers have already changed. All measures are therefore *perturbed* ones. Graphs that do not depend on the seed are
    measured once.

    Parameters
    ----------
    score : callable
        Called with all graphs of one grid member, with every window and seed.
    tally : callable
        Returns an empty :class:`Tally`.
    replacements : Replacements
        The graphs to evaluate.
    causal : bool
        Whether the graphs replace decoder self-attention.
    device : torch.device
        Device of the model.

    Returns
    -------
    scores : DataFrame
        A row per seed, member and window: ``seed, method, setting, window``, then the columns of the score and the tally.
    counts : DataFrame
        The count tables of all scores, concatenated, with the same first four columns.
    """
    keys, members = [], {}
    for seed in replacements.students:
        for point, is_seeded, graph in replacements.graphs(seed, causal, device):
            member, key = point[:2], (seed if is_seeded else None, point)
            keys.append((seed, point, key))
            members.setdefault(member, {}).setdefault(key, _CountedGraph(graph, tally()))
    measured = {}
    for graphs in tqdm(members.values(), desc="replace", unit="member", mininterval=5):
        for (key, graph), (scores, counts) in zip(graphs.items(), score(list(graphs.values())), strict=True):
            measured[key] = scores | graph.tally.measures(), counts
    rows, tables = [], []
    for seed, (method, setting, window), key in keys:
        first_columns = {"seed": seed, "method": method, "setting": setting, "window": window}
        scores, counts = measured[key]
        rows.append(first_columns | scores)
        tables.append(pd.DataFrame(first_columns, index=counts.index).join(counts))
    return pd.DataFrame(rows), pd.concat(tables, ignore_index=True)
