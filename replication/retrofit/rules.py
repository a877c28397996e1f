"""Selection rules of a configuration section, one per grid point, each applied in all layers."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from torch import Tensor

from replication.graphs.grids import Member, expand
from replication.retrofit.rivals import Gate, Quest, StreamingLLM, TokensOfBlocks, VerticalSlash, XAttention
from replication.retrofit.students import LayerStudents
from sparselib.blocks import ClusteredBlocks
from sparselib.control import Graph
from sparselib.graphs import PredictedGraph
from sparselib.predictors import Clustering, Distance, Predictor, TopK

#: Predictors on raw queries and keys that are neither learned nor random, by name.
FIXED: dict[str, Callable[..., Predictor]] = {
    rule.__name__: rule for rule in (TopK, StreamingLLM, Quest, XAttention, VerticalSlash)
}


@dataclass(frozen=True)
class SelectionRule:
    """One grid point of a selection rule.

    Attributes
    ----------
    method, setting : str
        The rule's key in tables.
    seed : int
        Seed of its students; -1 if it has none.
    graph : Graph
        Graph of every layer.
    """

    method: str
    setting: str
    seed: int
    graph: Graph


def fixed(rules: Mapping[str, dict], layers: int, window: int, block: int) -> Iterator[SelectionRule]:
    """Yield the rules without students.

    Parameters
    ----------
    rules : mapping
        The configuration section.
    layers : int
        Layers of the model.
    window : int
        Width of the token window added to every prediction.
    block : int
        Tokens per block.
    """
    for member in _expand(rules):
        if member.predictor in FIXED:
            block_size = {"Quest": {"page": block}, "XAttention": {"block": block}}.get(member.predictor, {})
            predictor = FIXED[member.predictor](**block_size, **member.arguments)
            graph = PredictedGraph([_unprojected] * layers, [predictor] * layers, window)
            yield SelectionRule(member.method, member.setting, -1, graph)


def learned(
    rules: Mapping[str, dict], students: list[LayerStudents], window: int, block: int, seed: int
) -> Iterator[SelectionRule]:
    """Yield the rules that use students, given the students of every layer for one seed."""
    for member in _expand(rules):
        if member.predictor in LEARNED:
            steps = [LEARNED[member.predictor](student, block, **member.arguments) for student in students]
            graph = PredictedGraph([project for project, _ in steps], [predictor for _, predictor in steps], window)
            yield SelectionRule(member.method, member.setting, seed, graph)


def clusters(rules: Mapping[str, dict], predictor: str) -> list[int]:
    """Return the sorted cluster counts that the grid uses with `predictor` (``"Clustering"`` or ``"ClusteredBlocks"``)."""
    return sorted({member.arguments["clusters"] for member in _expand(rules) if member.predictor == predictor})


#: Projection of a layer's queries and keys, and the predictor that takes the projected vectors.
_Steps = tuple[Callable[[Tensor], Tensor], Predictor]


def _distance(students: LayerStudents, block: int, threshold: float) -> _Steps:
    return students.projection, Distance(threshold)


def _kmeans(students: LayerStudents, block: int, clusters: int, top_k: int = 1) -> _Steps:
    return students.projection, Clustering(students.centroids[clusters], top_k)


def _blocks(students: LayerStudents, block: int, clusters: int, count: int) -> _Steps:
    return students.chunk_projection, TokensOfBlocks(ClusteredBlocks(students.chunk_centroids[clusters], count), block)


def _gate(students: LayerStudents, block: int, count: int) -> _Steps:
    return _unprojected, Gate(students.gate.query_weights, students.gate.key_weights, block, count)


LEARNED: dict[str, Callable[..., _Steps]] = {
    "Distance": _distance,
    "Clustering": _kmeans,
    "ClusteredBlocks": _blocks,
    "Gate": _gate,
}

_expand: Callable[[Mapping[str, dict]], list[Member]] = partial(expand, known=[*FIXED, *LEARNED])


def _unprojected(x: Tensor) -> Tensor:
    return x
