"""Selection rules of a configuration section, one per grid point, each applied in all layers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from torch import Tensor

from replication.graphs.centroids import fit_members
from replication.graphs.grids import Member, cluster_counts, expand
from replication.retrofit.rivals import Gate, Quest, StreamingLLM, TokensOfBlocks, VerticalSlash, XAttention
from replication.retrofit.students import LayerStudents
from sparselib.blocks import ClusteredBlocks
from sparselib.control import Graph
from sparselib.graphs import PredictedGraph
from sparselib.predictors import Predictor, TopK
from sparselib.projections import Batch

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
    rules: Mapping[str, dict],
    students: list[LayerStudents],
    batches: Sequence[Sequence[Batch]],
    window: int,
    block: int,
    seed: int,
) -> Iterator[SelectionRule]:
    """Yield the rules that use students, given the students of every layer for one seed and what they learned from."""
    for member in _expand(rules):
        if member.predictor in FIXED:
            continue
        if member.predictor in OF_BLOCKS:
            steps = [OF_BLOCKS[member.predictor](student, block, **member.arguments) for student in students]
        else:
            steps = []
            for number, (student, of_layer) in enumerate(zip(students, batches, strict=True)):
                fitted = fit_members([member], of_layer, student.projection, seed)
                steps.append((student.projection, member.build(student.centroids | fitted, seed + number)))
        graph = PredictedGraph([project for project, _ in steps], [predictor for _, predictor in steps], window)
        yield SelectionRule(member.method, member.setting, seed, graph)


def clusters(rules: Mapping[str, dict]) -> dict[str, object]:
    """Return the cluster counts that the rules need, as arguments of :func:`replication.retrofit.students.fit_students`."""
    of_tokens = {name: rule for name, rule in rules.items() if rule["predictor"] not in (*FIXED, *OF_BLOCKS)}
    of_blocks = {member.arguments["clusters"] for member in _expand(rules) if member.predictor == "ClusteredBlocks"}
    return {"clusters": cluster_counts(of_tokens), "block_clusters": sorted(of_blocks)}


#: Projection of a layer's queries and keys, and the predictor that takes the projected vectors.
_Steps = tuple[Callable[[Tensor], Tensor], Predictor]


def _blocks(students: LayerStudents, block: int, clusters: int, count: int) -> _Steps:
    return students.chunk_projection, TokensOfBlocks(ClusteredBlocks(students.chunk_centroids[clusters], count), block)


def _gate(students: LayerStudents, block: int, count: int) -> _Steps:
    return _unprojected, Gate(students.gate.query_weights, students.gate.key_weights, block, count)


#: Learned predictors of blocks, by name; all others see projected tokens.
OF_BLOCKS: dict[str, Callable[..., _Steps]] = {"ClusteredBlocks": _blocks, "Gate": _gate}

_expand: Callable[[Mapping[str, dict]], list[Member]] = partial(
    expand, known=[*FIXED, "Distance", "Clustering", *OF_BLOCKS]
)


def _unprojected(x: Tensor) -> Tensor:
    return x
