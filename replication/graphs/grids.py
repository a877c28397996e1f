"""Predictor grids: a configuration section expanded to one predictor per combination of arguments.

>>> members = expand({"sparsefinder-kmeans": {"predictor": "Clustering", "clusters": [4, 8], "top_k": 1}})
>>> [member.arguments for member in members]
[{'clusters': 4, 'top_k': 1}, {'clusters': 8, 'top_k': 1}]
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import product

from torch import Tensor

from replication.predictors.own_predictors import fits, is_own
from replication.predictors.predictor_files import predictor_class, predictor_modules
from replication.results.settings import OWN, label
from sparselib.predictors import Predictor


@dataclass(frozen=True)
class Member:
    """One point of a grid: the method's name, the predictor class's name, and its arguments."""

    method: str
    predictor: str
    arguments: dict[str, object] = field(default_factory=dict)

    @property
    def setting(self) -> str:
        """Return the label of the arguments; those of an own predictor have columns of their own in tables."""
        prefix = OWN if is_own(self.predictor) else ""
        return label({prefix + name: value for name, value in self.arguments.items()})

    @property
    def point(self) -> str:
        """Return the method and its setting, the name of a fitted predictor."""
        return f"{self.method} {self.setting}"

    @property
    def fits(self) -> bool:
        """Return whether the predictor makes itself from gold graphs."""
        return fits(predictor_class(self.predictor))

    @property
    def is_seeded(self) -> bool:
        """Return whether the predictor depends on the seed, because it is learned or random."""
        needs = predictor_class(self.predictor).needs
        return needs.seed or not needs.positions

    def build(self, centroids: dict[str, Tensor | Predictor], seed: int) -> Predictor:
        """Return the predictor with these arguments and its centroids and seed, if it needs them.

        Parameters
        ----------
        centroids : dict of Tensor or Predictor
            Centroids of the layer, ``{"kmeans-8": [H, 8, R], "routing-8": ...}``; the ``clusters`` argument selects one. Fitted
            predictors by their :attr:`point`.
        seed : int
            Seed of random predictors.

        Raises
        ------
        KeyError
            If ``centroids`` has none for the number of clusters.
        """
        if self.fits:
            return centroids[self.point]
        predictor, arguments = predictor_class(self.predictor), dict(self.arguments)
        if predictor.needs.centroids:
            arguments["centroids"] = centroids[f"{predictor.needs.centroids}-{arguments.pop('clusters')}"]
        if predictor.needs.seed:
            arguments["seed"] = seed
        return predictor(**arguments)


def expand(methods: Mapping[str, dict], known: Collection[str] | None = None) -> list[Member]:
    """Expand each method to one member per combination of its list-valued arguments.

    Raises
    ------
    ValueError
        If a method's predictor is not in ``known``, by default the classes of ``sparselib/predictors``.
    """
    members, known = [], predictor_modules() if known is None else known
    for method, section in methods.items():
        arguments = dict(section)
        predictor = arguments.pop("predictor", None)
        if not is_own(predictor or "") and predictor not in known:
            raise ValueError(f"{method}: `predictor` must be one of {', '.join(known)}; got {predictor!r}")
        values = [value if isinstance(value, list) else [value] for value in arguments.values()]
        members += [Member(method, predictor, dict(zip(arguments, choice, strict=True))) for choice in product(*values)]
    return members


def cluster_counts(methods: Mapping[str, dict]) -> dict[str, list[int]]:
    """Return the sorted numbers of clusters that the methods need, by kind of centroids such as ``"kmeans"``."""
    counts = defaultdict(set)
    for member in expand(methods):
        if kind := predictor_class(member.predictor).needs.centroids:
            counts[kind].add(member.arguments["clusters"])
    return {kind: sorted(of_kind) for kind, of_kind in sorted(counts.items())}
