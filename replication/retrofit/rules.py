"""Rules that say which pairs attend, from a section of the configuration: each at every point of its grid, in all layers."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from torch import Tensor

from replication.graphs.grids import Member, expand
from replication.retrofit.rivals import Gate, Quest, StreamingLLM, TokensOfBlocks, VerticalSlash, XAttention
from replication.retrofit.students import Students
from sparselib.blocks import ClusteredBlocks
from sparselib.control import Graph
from sparselib.graphs import PredictedGraph
from sparselib.predictors import Clustering, Distance, Predictor, TopK

#: Rules that learn nothing and draw nothing: by name, the predictor of raw queries and keys.
FIXED: dict[str, Callable[..., Predictor]] = {
    rule.__name__: rule for rule in (TopK, StreamingLLM, Quest, XAttention, VerticalSlash)
}


@dataclass(frozen=True)
class Rule:
    """One point of the grid: its method and setting as they stand in tables, the seed (-1 if none matters), and the graph."""

    method: str
    setting: str
    seed: int
    graph: Graph


def fixed(rules: Mapping[str, dict], layers: int, window: int, block: int) -> Iterator[Rule]:
    """Rules without students. Every prediction is united with the same ``window`` of tokens; blocks have ``block`` tokens."""
    for member in _expand(rules):
        if member.predictor in FIXED:
            sized = {"Quest": {"page": block}, "XAttention": {"block": block}}.get(member.predictor, {})
            predictor = FIXED[member.predictor](**sized, **member.arguments)
            graph = PredictedGraph([_as_they_are] * layers, [predictor] * layers, window)
            yield Rule(member.method, member.setting, -1, graph)


def learned(rules: Mapping[str, dict], students: list[Students], window: int, block: int, seed: int) -> Iterator[Rule]:
    """Rules with the students of every layer, of one seed."""
    for member in _expand(rules):
        if member.predictor in LEARNED:
            made = [LEARNED[member.predictor](of_layer, block, **member.arguments) for of_layer in students]
            graph = PredictedGraph([project for project, _ in made], [predictor for _, predictor in made], window)
            yield Rule(member.method, member.setting, seed, graph)


def clusters(rules: Mapping[str, dict], predictor: str) -> list[int]:
    """Numbers of clusters that the grid asks of ``"Clustering"`` or ``"ClusteredBlocks"``, in order."""
    return sorted({member.arguments["clusters"] for member in _expand(rules) if member.predictor == predictor})


#: Distances, say, as the projection of a layer's queries and keys, and the predictor of what it gives.
_Made = tuple[Callable[[Tensor], Tensor], Predictor]


def _distance(students: Students, block: int, threshold: float) -> _Made:
    return students.projection, Distance(threshold)


def _kmeans(students: Students, block: int, clusters: int, top_k: int = 1) -> _Made:
    return students.projection, Clustering(students.centroids[clusters], top_k)


def _blocks(students: Students, block: int, clusters: int, count: int) -> _Made:
    return students.chunked, TokensOfBlocks(ClusteredBlocks(students.of_chunks[clusters], count), block)


def _gate(students: Students, block: int, count: int) -> _Made:
    return _as_they_are, Gate(students.gate.of_queries, students.gate.of_keys, block, count)


LEARNED: dict[str, Callable[..., _Made]] = {
    "Distance": _distance,
    "Clustering": _kmeans,
    "ClusteredBlocks": _blocks,
    "Gate": _gate,
}

_expand: Callable[[Mapping[str, dict]], list[Member]] = partial(expand, known=[*FIXED, *LEARNED])


def _as_they_are(x: Tensor) -> Tensor:
    return x
