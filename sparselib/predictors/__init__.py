"""Predictors of attention graphs: the pairs that get nonzero weight, from (projected) queries and keys."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sparselib.predictors.buckets import Bucketed, share_a_bucket
    from sparselib.predictors.clustering import Clustering, fit_centroids
    from sparselib.predictors.distance import Distance, squared_distances
    from sparselib.predictors.hashing import Hashing
    from sparselib.predictors.positional import BigBird, Longformer, Nothing, Positional
    from sparselib.predictors.protocol import Needs, Predictor
    from sparselib.predictors.quantization import Quantization
    from sparselib.predictors.routing import Routing, fit_routing_centroids
    from sparselib.predictors.rows import Rows, RowWise
    from sparselib.predictors.topk import TopK

# Imported on first access, so that an edit of one predictor concerns only what uses it.
_MODULES = {
    "BigBird": "positional",
    "Bucketed": "buckets",
    "Clustering": "clustering",
    "Distance": "distance",
    "Hashing": "hashing",
    "Longformer": "positional",
    "Needs": "protocol",
    "Nothing": "positional",
    "Positional": "positional",
    "Predictor": "protocol",
    "Quantization": "quantization",
    "Routing": "routing",
    "RowWise": "rows",
    "Rows": "rows",
    "TopK": "topk",
    "fit_centroids": "clustering",
    "fit_routing_centroids": "routing",
    "share_a_bucket": "buckets",
    "squared_distances": "distance",
}
__all__ = ["BigBird", "Bucketed", "Clustering", "Distance", "Hashing", "Longformer", "Needs", "Nothing",
           "Positional", "Predictor", "Quantization", "Routing", "RowWise", "Rows", "TopK", "fit_centroids",
           "fit_routing_centroids", "share_a_bucket", "squared_distances"]  # fmt: skip


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
