"""Grids of predictors: from a section of the configuration to predictors, one per combination of arguments.

>>> members = expand({"sparsefinder-kmeans": {"predictor": "Clustering", "clusters": [4, 8], "top_k": 1}})
>>> [member.arguments for member in members]
[{'clusters': 4, 'top_k': 1}, {'clusters': 8, 'top_k': 1}]
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import product

from torch import Tensor

from replication.settings import label
from sparselib.predictors import PREDICTORS, Predictor


@dataclass(frozen=True)
class Member:
    """One point of a grid: a method's name, the class that predicts, and its arguments."""

    method: str
    predictor: str
    arguments: dict[str, object] = field(default_factory=dict)

    @property
    def setting(self) -> str:
        """Return the label of the arguments."""
        return label(self.arguments)

    @property
    def is_seeded(self) -> bool:
        """Whether it depends on the seed: it was learned, or draws at random."""
        needs = PREDICTORS[self.predictor].needs
        return needs.seed or not needs.positions

    def build(self, centroids: dict[str, Tensor], seed: int) -> Predictor:
        """The predictor itself.

        Parameters
        ----------
        centroids : ``{"kmeans-8": [H, 8, R], "routing-8": ...}``
            Of this layer; ``clusters`` chooses among them.
        seed : int
            For predictors that draw at random.
        """
        predictor, arguments = PREDICTORS[self.predictor], dict(self.arguments)
        if predictor.needs.centroids:
            arguments["centroids"] = centroids[f"{predictor.needs.centroids}-{arguments.pop('clusters')}"]
        if predictor.needs.seed:
            arguments["seed"] = seed
        return predictor(**arguments)


def expand(methods: Mapping[str, dict], known: Collection[str] = PREDICTORS) -> list[Member]:
    """Every combination of the arguments that are lists.

    Raises
    ------
    ValueError
        If a method names no ``known`` predictor.
    """
    members = []
    for method, section in methods.items():
        arguments = dict(section)
        predictor = arguments.pop("predictor", None)
        if predictor not in known:
            raise ValueError(f"{method}: predictor must be one of {', '.join(known)}; got {predictor!r}")
        values = [value if isinstance(value, list) else [value] for value in arguments.values()]
        members += [Member(method, predictor, dict(zip(arguments, choice, strict=True))) for choice in product(*values)]
    return members


def cluster_counts(methods: dict[str, dict], predictor: str) -> list[int]:
    """Numbers of clusters that the grid asks of ``"Clustering"`` or ``"Routing"``, in order."""
    return sorted({m.arguments["clusters"] for m in expand(methods) if m.predictor == predictor})
