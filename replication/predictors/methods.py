"""Methods that tables and figures compare: the arguments that a profile gives them, label, colour, marker and line.

One row is one method, in the order of legends. A class of arguments is named after its predictor, which
:mod:`replication.graphs.grids` finds in ``sparselib/predictors`` by that name. Its fields become keys of profiles and columns
of tables. Colours are places in the colour cycle of ``plots/print.mplstyle``. Sparsefinder's and other learned methods have
solid lines, fixed patterns and third-party baselines have dashed ones.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import cycle
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, ValidationInfo, model_validator

from replication.predictors.own_predictors import own_file, unfit_arguments
from replication.schema import Problem, Section, checked
from replication.schema import types as t
from replication.schema.sections import refuse

BLUE, VERMILLION, YELLOW, GREEN, BROWN, INDIGO, SKY, GREY = (f"C{place}" for place in range(8))


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


def _found(name: str) -> Iterator[Problem]:
    if not name.rpartition(":")[2].isidentifier():
        yield (), f"must be a file or module and a class, such as landmarks.py:Landmarks, got {name!r}"
    elif own_file(name) is None:
        yield (), f"must name a file or module that is there, and a class, got {name!r}"


class Own(Section):
    """A predictor of your own: its file or module, its class, and a key per field of the class."""

    model_config = ConfigDict(extra="allow", json_schema_extra={"additionalProperties": True})
    predictor: Annotated[str, checked(_found, files=True)] = Field(
        description="Such as `landmarks.py:Landmarks`.", json_schema_extra={"pattern": ":"}
    )

    @model_validator(mode="after")
    def _fits(self, info: ValidationInfo) -> Self:
        # Where files need not exist, a stored run or an archive is read, which must not run code.
        if info.context and info.context.files and own_file(self.predictor):
            refuse((((key,), what) for key, what in unfit_arguments(self.predictor, self.model_extra)), self)
        return self


@dataclass(frozen=True)
class Method:
    """A method of selecting pairs or blocks.

    Attributes
    ----------
    label, color, marker, line : str
        How figures draw it.
    arguments : type of Section, optional
        Keys that a profile gives it in a grid; None for methods that a section without grids configures.
    """

    label: str
    color: str
    marker: str
    line: str = "-"
    arguments: type[Section] | None = None

    @property
    def style(self) -> dict[str, str]:
        """Return matplotlib's arguments for a line."""
        return {"color": self.color, "marker": self.marker, "linestyle": self.line}


#: Methods of the recall sweep: Sparsefinder's, learned baselines, fixed patterns.
METHODS = {
    "sparsefinder-distance": Method("Sparsefinder, distance", BLUE, "o", arguments=Distance),
    "sparsefinder-kmeans": Method("Sparsefinder, k-means", VERMILLION, "s", arguments=Clustering),
    "sparsefinder-quantization": Method("Sparsefinder, quantization", YELLOW, "D", arguments=Quantization),
    "routing": Method("Routing Transformer", GREEN, "^", arguments=Routing),
    "reformer": Method("Reformer", BROWN, "v", arguments=Hashing),
    "bigbird": Method("BigBird", INDIGO, "P", "--", arguments=BigBird),
    "longformer": Method("Longformer", SKY, "*", "--", arguments=Longformer),
    "window": Method("Window", GREY, "X", "--", arguments=Nothing),
}
#: Methods that choose blocks (section 6.1 of the paper). The reference code ran BigBird with softmax.
BLOCK_METHODS = {
    "sparsefinder-v1": Method("Sparsefinder v1", BLUE, "o"),
    "sparsefinder-v2": Method("Sparsefinder v2", VERMILLION, "s"),
    "bigbird": Method("BigBird, entmax", INDIGO, "P"),
    "bigbird-softmax": Method("BigBird, softmax", INDIGO, "X", "--"),
}
#: Selection rules applied without retraining, the one that computes all scores first.
RULES = {
    "oracle": Method("Largest scores (oracle)", "black", "", ":", arguments=TopK),
    "sparsefinder-distance": Method("Sparsefinder, distance", BLUE, "o", arguments=DistanceRule),
    "sparsefinder-kmeans": Method("Sparsefinder, k-means", VERMILLION, "s", arguments=ClusteringRule),
    "sparsefinder-v2": Method("Sparsefinder v2", YELLOW, "D", arguments=ClusteredBlocks),
    "gate": Method("Gate (SeerAttention)", GREEN, "^", "--", arguments=Gate),
    "quest": Method("Quest", BROWN, "v", "--", arguments=Quest),
    "xattention": Method("XAttention", INDIGO, "P", "--", arguments=XAttention),
    "vertical-slash": Method("Vertical-slash (MInference)", SKY, "*", "--", arguments=VerticalSlash),
    "streaming-llm": Method("StreamingLLM", GREY, "X", "--", arguments=StreamingLLM),
}
#: Styles of methods that are not listed here, in turn.
OWN_STYLES = (("black", "h"), ("black", "p"), ("dimgrey", "d"), ("dimgrey", "8"))


#: Rows of tables that no method of a grid made.
UNPREDICTED = ("full", "gold graph", "sparsified")


def styled(names: Iterable[str], listed: Mapping[str, Method] = METHODS) -> dict[str, Method]:
    """Return the methods of these names in the order of the listed ones, then others under their own names."""
    names = dict.fromkeys(names)
    others = [name for name in names if name not in (*listed, *UNPREDICTED)]
    own = {name: Method(name, *style) for name, style in zip(others, cycle(OWN_STYLES), strict=False)}
    return {name: method for name, method in listed.items() if name in names} | own
