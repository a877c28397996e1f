"""Predictor grids: a configuration section expanded to one predictor per combination of arguments.

>>> members = expand({"sparsefinder-kmeans": {"predictor": "Clustering", "clusters": [4, 8], "top_k": 1}})
>>> [member.arguments for member in members]
[{'clusters': 4, 'top_k': 1}, {'clusters': 8, 'top_k': 1}]
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, is_dataclass
from importlib import import_module
from itertools import product
from pkgutil import iter_modules

from torch import Tensor

import sparselib.predictors
from replication.settings import label
from sparselib.predictors import Predictor


def _predictors() -> dict[str, type[Predictor]]:
    """Return the predictors of each file in ``sparselib/predictors`` by name, without base classes."""
    package = sparselib.predictors
    modules = [import_module(f"{package.__name__}.{module.name}") for module in iter_modules(package.__path__)]
    classes = [value for module in modules for value in vars(module).values() if isinstance(value, type)]
    return {cls.__name__: cls for cls in classes if is_dataclass(cls) and hasattr(cls, "needs")}


#: Predictors that a grid may name.
PREDICTORS = _predictors()


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
        """Return the predictor with these arguments and its centroids and seed, if it needs them.

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
