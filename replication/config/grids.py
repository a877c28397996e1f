"""Grids of predicted graphs: predictors, selection rules, and the settings that tasks share."""

from collections.abc import Iterator
from functools import reduce
from operator import or_
from typing import Annotated, ClassVar, Literal, get_args

from pydantic import Discriminator, Field, Tag
from typing_extensions import TypeAliasType

from replication.config.budgets import Budgets
from replication.predictors import methods
from replication.predictors.methods import Clustering, Own, Routing
from replication.predictors.own_predictors import is_own
from replication.schema import Problem, Section
from replication.schema import types as t


def _any_of(rows: dict[str, methods.Method]) -> type[Section]:
    """Return the union of the rows' arguments."""
    return reduce(or_, dict.fromkeys(row.arguments for row in rows.values()))


def _kind(value: object) -> str:
    name = value.get("predictor") if isinstance(value, dict) else getattr(value, "predictor", None)
    return t.OWN if isinstance(name, str) and is_own(name) else t.LISTED


Listed = TypeAliasType("Listed", Annotated[_any_of(methods.METHODS), Field(discriminator="predictor")])
Method = TypeAliasType(
    "Method",
    Annotated[
        Annotated[Listed, Tag(t.LISTED)] | Annotated[Own, Tag(t.OWN)],
        Discriminator(_kind),
        Field(description="A predictor and its arguments; a list is a point of the grid per value."),
    ],
)
Methods = Annotated[dict[t.Name, Method], Field(min_length=1)]


ListedRule = TypeAliasType("ListedRule", Annotated[_any_of(methods.RULES), Field(discriminator="predictor")])
Rule = TypeAliasType(
    "Rule",
    Annotated[
        Annotated[ListedRule, Tag(t.LISTED)] | Annotated[Own, Tag(t.OWN)],
        Discriminator(_kind),
        Field(description="A selection rule and its arguments; a list is a point of the grid per value."),
    ],
)
Rules = Annotated[dict[t.Name, Rule], Field(min_length=1)]
#: Start of the ids of the ledger's rows that `compare` adds, which no claim of a paper has.
COMPARED = "compared-"
_CLASSES = [kind for union in (Listed, ListedRule) for kind in get_args(get_args(union.__value__)[0])]
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

    windows: t.Maybe[t.Unique[t.CountOrZero]] = Field(None, description="Window widths, as in the recall sweep.")
    methods: t.Maybe[Methods] = Field(None, description="Methods. Clusters must be among those of the recall sweep.")
    budgets: t.Maybe[Budgets] = Field(
        None,
        description="In place of windows and methods: the best settings of the recall sweep on both sides of each budget.",
    )

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        given = [key for key in ("windows", "methods", "budgets") if getattr(self, key) is not None]
        if given not in (["budgets"], ["windows", "methods"]):
            yield (), f"must have `budgets`, or `windows` and `methods`; got {', '.join(given) or 'nothing'}"


class Comparison(Section):
    """Comparison of a method with others at 1, 2 and 5 times the gold graph's share of the pairs."""

    method: t.Name = Field(description="Method that has to be at least as good as each of the others.")
    against: t.Unique[t.Name] = Field(description="The other methods.")
    of: Literal["recall", "perplexity", "bleu"] = Field(
        "recall", description="Score: `recall`, or the perplexity or BLEU of the evaluation under predicted graphs."
    )


class PredictedGraphs(Section):
    """Settings of predicted graphs, which masked language models and translators share."""

    #: Score of the evaluation under predicted graphs.
    replaced_score: ClassVar[str]

    projection: Projection
    cluster_points: t.whole(100) = Field(description="Projected queries and keys per head that k-means is fitted to.")
    windows: t.Unique[t.CountOrZero] = Field(
        description="Window widths of the recall sweep. The token itself counts, and 0 is no window."
    )
    methods: Methods = Field(description="Methods of the recall sweep.")
    replaced: Replaced
    compare: t.Maybe[t.Unique[Comparison]] = Field(
        None, description="Comparisons of your own. Each is a row of the ledger, beside the papers' claims."
    )

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        replaced = self.replaced.methods or {}
        for path, grid in ((("methods",), self.methods), (("replaced", "methods"), replaced)):
            for key, what in too_many_clusters(grid, "cluster_points", self.cluster_points):
                yield (*path, *key), what
        for kind in (Clustering, Routing):
            fitted = clusters(self.methods, kind)
            for name, method in replaced.items():
                for count in t.values_of(method.clusters) if isinstance(method, kind) else ():
                    if count not in fitted:
                        what = f"must be among the {kind.__name__} clusters of methods ({listed(fitted)}), got {count}"
                        yield ("replaced", "methods", name, "clusters"), what
        grids = {"recall": self.methods, self.replaced_score: self.replaced.methods or self.methods}
        for number, row in enumerate(self.compare or ()):
            if row.of not in grids:
                yield ("compare", number, "of"), f"must be {' or '.join(grids)}, got {row.of!r}"
                continue
            if row.method in row.against:
                yield ("compare", number, "against"), f"must have other methods than method, got {row.method!r}"
            where = "methods" if grids[row.of] is self.methods else "replaced.methods"
            for key, names in (("method", [row.method]), ("against", row.against)):
                for name in (name for name in names if name not in grids[row.of]):
                    what = f"must be among {where} ({', '.join(grids[row.of])}), got {name!r}"
                    yield ("compare", number, key), what


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
