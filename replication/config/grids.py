"""Grids of predicted graphs: predictors, selection rules, and the settings that tasks share."""

from collections.abc import Iterator
from typing import Annotated, Literal, get_args

from pydantic import Field
from typing_extensions import TypeAliasType

from replication.config import types as t
from replication.config.sections import Problem, Section, checked


class Nothing(Section):
    """Window and global tokens alone."""

    predictor: Literal["Nothing"]


class DistanceRule(Section):
    """Pairs of tokens with near projections."""

    predictor: Literal["Distance"]
    threshold: t.OneOrMore[t.AboveZero] = Field(description="Largest distance.")


class Distance(DistanceRule):
    """Sparsefinder by distance: pairs of tokens with near projections."""

    metric: Literal["sq_euclidean", "euclidean"] = Field("sq_euclidean", description="Distance of two projections.")


class Quantization(Section):
    """Sparsefinder by quantization: pairs of tokens that share a bin in each dimension."""

    predictor: Literal["Quantization"]
    bins: t.OneOrMore[t.Count] = Field(description="Bins per dimension.")


class ClusteringRule(Section):
    """Pairs of tokens that share a k-means cluster."""

    predictor: Literal["Clustering"]
    clusters: t.OneOrMore[t.Count] = Field(description="Clusters of k-means.")
    top_k: t.OneOrMore[t.Count] = Field(1, description="Nearest clusters of each token, at most `clusters`.")

    def problems(self) -> Iterator[Problem]:
        smallest = min(t.values_of(self.clusters))
        for count in t.values_of(self.top_k):
            if count > smallest:
                yield ("top_k",), f"must be at most {smallest}, the smallest number of clusters, got {count}"


class Clustering(ClusteringRule):
    """Sparsefinder by k-means: pairs of tokens that share a cluster."""

    match: Literal["intersection", "rank_aligned"] = Field(
        "intersection",
        description="Shared clusters: any, as the paper says, or the same cluster at the same rank, as its code did.",
    )


class Routing(Section):
    """Routing Transformer: each centroid takes its best queries and keys."""

    predictor: Literal["Routing"]
    clusters: t.OneOrMore[t.Count] = Field(description="Centroids.")
    membership: Literal["all", "one"] = Field(
        "all", description="Centroids of a token: all that took it, or the first."
    )


class Longformer(Section):
    """Longformer with random global tokens."""

    predictor: Literal["Longformer"]
    global_count: t.OneOrMore[t.Count] = Field(description="Random global tokens per sequence.")


class BigBird(Section):
    """BigBird: random keys for each query."""

    predictor: Literal["BigBird"]
    random_keys: t.OneOrMore[t.Count] = Field(description="Random keys per query.")
    random_scope: Literal["uniform", "official_plan"] = Field(
        "uniform", description="Keys to draw from: all, or those of the official code's plan."
    )


def _even(buckets: t.OneOrMore[int]) -> Iterator[Problem]:
    for count in t.values_of(buckets):
        if count % 2:
            yield (), f"must be even, since buckets come in pairs, got {count}"


class Hashing(Section):
    """Reformer: pairs of tokens that share a bucket."""

    predictor: Literal["Hashing"]
    buckets: Annotated[t.OneOrMore[t.Count], checked(_even)] = Field(description="Buckets, an even number.")
    rounds: t.OneOrMore[t.Count] = Field(1, description="Rounds of hashing.")


Method = TypeAliasType(
    "Method",
    Annotated[
        Nothing | Distance | Quantization | Clustering | Routing | Longformer | BigBird | Hashing,
        Field(
            discriminator="predictor",
            description="A predictor and its arguments; a list is a point of the grid per value.",
        ),
    ],
)
Methods = Annotated[dict[t.Name, Method], Field(min_length=1)]


class TopK(Section):
    """The largest scores of each query, an oracle."""

    predictor: Literal["TopK"]
    k: t.OneOrMore[t.Count] = Field(description="Keys per query.")


class ClusteredBlocks(Section):
    """Version 2 of the block-based Sparsefinder: each cluster picks blocks."""

    predictor: Literal["ClusteredBlocks"]
    clusters: t.OneOrMore[t.Count] = Field(description="Clusters of k-means.")
    count: t.OneOrMore[t.Count] = Field(description="Blocks per cluster.")


class Gate(Section):
    """A gate that is trained to score blocks."""

    predictor: Literal["Gate"]
    count: t.OneOrMore[t.Count] = Field(description="Key blocks per query block.")


class Quest(Section):
    """Quest: pages with the largest upper bounds of a query's scores."""

    predictor: Literal["Quest"]
    count: t.OneOrMore[t.Count] = Field(description="Pages per query.")


class XAttention(Section):
    """XAttention: the fewest blocks with a share of the estimated weight."""

    predictor: Literal["XAttention"]
    mass: t.OneOrMore[t.ShareOrAll] = Field(description="Share of the estimated weight.")


class VerticalSlash(Section):
    """MInference's columns and diagonals."""

    predictor: Literal["VerticalSlash"]
    columns: t.OneOrMore[t.Count] = Field(description="Columns: keys that all queries attend to.")
    diagonals: t.OneOrMore[t.Count] = Field(description="Diagonals: distances that all queries attend at.")


class StreamingLLM(Section):
    """StreamingLLM: the first tokens and a window."""

    predictor: Literal["StreamingLLM"]
    sinks: t.OneOrMore[t.Count] = Field(description="First tokens that all queries attend to.")
    window: t.OneOrMore[t.Count] = Field(description="Width of the window.")


Rule = TypeAliasType(
    "Rule",
    Annotated[
        TopK
        | DistanceRule
        | ClusteringRule
        | ClusteredBlocks
        | Gate
        | Quest
        | XAttention
        | VerticalSlash
        | StreamingLLM,
        Field(
            discriminator="predictor",
            description="A selection rule and its arguments; a list is a point of the grid per value.",
        ),
    ],
)
Rules = Annotated[dict[t.Name, Rule], Field(min_length=1)]
_CLASSES = [kind for union in (Method, Rule) for kind in get_args(get_args(union.__value__)[0])]
#: Arguments of all predictors and selection rules, each once.
ARGUMENTS = tuple(dict.fromkeys(name for kind in _CLASSES for name in kind.model_fields if name != "predictor"))


class Projection(Section):
    """Training of the projections of queries and keys, `sparselib.projections.fit_projection`."""

    dimension: t.Count = Field(description="R, the size of the projected space.")
    loss: Literal["triplet", "set"] = Field("triplet", description="Loss: Eq. 7 of the paper, or the reference code's.")
    margin: t.AboveZero = Field(1.0, description="Margin of the loss.")
    learning_rate: t.AboveZero = Field(0.01, description="Adam's learning rate.")
    batch_size: t.Count = Field(16, description="Sequences per step.")
    epochs: t.Count = Field(1, description="Epochs.")


class Replaced(Section):
    """The grid under which the model itself is evaluated: its perplexity or BLEU. Each point costs a whole evaluation."""

    windows: t.Unique[t.CountOrZero] = Field(description="Window widths, as in the recall sweep.")
    methods: Methods = Field(description="Methods. Clusters must be among those of the recall sweep.")


class PredictedGraphs(Section):
    """Settings of predicted graphs, which masked language models and translators share."""

    projection: Projection
    cluster_points: t.whole(100) = Field(description="Projected queries and keys per head that k-means is fitted to.")
    windows: t.Unique[t.CountOrZero] = Field(
        description="Window widths of the recall sweep. The token itself counts, and 0 is no window."
    )
    methods: Methods = Field(description="Methods of the recall sweep.")
    replaced: Replaced

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        for path, methods in ((("methods",), self.methods), (("replaced", "methods"), self.replaced.methods)):
            for key, what in too_many_clusters(methods, "cluster_points", self.cluster_points):
                yield (*path, *key), what
        for kind in (Clustering, Routing):
            fitted = clusters(self.methods, kind)
            for name, method in self.replaced.methods.items():
                for count in t.values_of(method.clusters) if isinstance(method, kind) else ():
                    if count not in fitted:
                        what = f"must be among the {kind.__name__} clusters of methods ({listed(fitted)}), got {count}"
                        yield ("replaced", "methods", name, "clusters"), what


def too_many_clusters(methods: dict[str, Method] | dict[str, Rule], key: str, points: int) -> Iterator[Problem]:
    """Yield numbers of clusters above the number of points, which has this key."""
    for name, method in methods.items():
        for count in t.values_of(getattr(method, "clusters", None)):
            if count > points:
                yield (name, "clusters"), f"must be at most {key} {points}, got {count}"


def clusters(methods: dict[str, Method], kind: type[Clustering | Routing]) -> set[int]:
    """Return the numbers of clusters of all methods of a kind."""
    return {count for method in methods.values() if isinstance(method, kind) for count in t.values_of(method.clusters)}


def listed(counts: set[int]) -> str:
    """Return numbers in order, or `none`."""
    return ", ".join(map(str, sorted(counts))) or "none"
