"""Predictor grids: a configuration section expanded to one predictor per combination of arguments.

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
    """One point of a grid: the method's name, the predictor class's name, and its arguments."""

    method: str
    predictor: str
    arguments: dict[str, object] = field(default_factory=dict)

    @property
    def setting(self) -> str:
        """Return the label of the arguments."""
        return label(self.arguments)

    @property
    def is_seeded(self) -> bool:
        """Return whether the predictor depends on the seed, because it is learned or random."""
        needs = PREDICTORS[self.predictor].needs
        return needs.seed or not needs.positions

    def build(self, centroids: dict[str, Tensor], seed: int) -> Predictor:
        """Build the predictor.

        Parameters
        ----------
        centroids : dict of Tensor
            Centroids of the layer, ``{"kmeans-8": [H, 8, R], "routing-8": ...}``; the ``clusters`` argument selects one.
        seed : int
            Seed of random predictors.

        Raises
        ------
        KeyError
            If ``centroids`` has none for the number of clusters.
        """
        predictor, arguments = PREDICTORS[self.predictor], dict(self.arguments)
        if predictor.needs.centroids:
            arguments["centroids"] = centroids[f"{predictor.needs.centroids}-{arguments.pop('clusters')}"]
        if predictor.needs.seed:
            arguments["seed"] = seed
        return predictor(**arguments)


def expand(methods: Mapping[str, dict], known: Collection[str] = PREDICTORS) -> list[Member]:
    """Expand each method to one member per combination of its list-valued arguments.

    Raises
    ------
    ValueError
        If a method's predictor is not in ``known``.
    """
    members = []
    for method, section in methods.items():
        arguments = dict(section)
        predictor = arguments.pop("predictor", None)
        if predictor not in known:
            raise ValueError(f"{method}: `predictor` must be one of {', '.join(known)}; got {predictor!r}")
        values = [value if isinstance(value, list) else [value] for value in arguments.values()]
        members += [Member(method, predictor, dict(zip(arguments, choice, strict=True))) for choice in product(*values)]
    return members


def cluster_counts(methods: dict[str, dict], predictor: str) -> list[int]:
    """Return the sorted cluster counts that the grid uses with `predictor` (``"Clustering"`` or ``"Routing"``)."""
    return sorted({m.arguments["clusters"] for m in expand(methods) if m.predictor == predictor})
