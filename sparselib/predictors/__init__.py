"""Predictors of attention graphs: which pairs get weight, told from (projected) queries and keys.

Each is a small frozen dataclass with ``predict(q, k, *, lengths=None, causal=False) -> Bool[B, H, Q, K]``,
never True for a padded or a future pair. Where an edge means "together in some bucket" (Eq. 6), it also has
``assign(q, k, lengths=None) -> (Bool[B, H, Q, C], Bool[B, H, K, C])``. Window and global tokens are added
elsewhere (``sparselib.masks.combine.combine``). Predictors of blocks take the vectors of chunks and return lists of blocks.
"""

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

__all__ = [
    "PREDICTORS",
    "BigBird",
    "Bucketed",
    "Clustering",
    "Distance",
    "Hashing",
    "Longformer",
    "Needs",
    "Nothing",
    "Positional",
    "Predictor",
    "Quantization",
    "Routing",
    "RowWise",
    "Rows",
    "TopK",
    "fit_centroids",
    "fit_routing_centroids",
    "share_a_bucket",
    "squared_distances",
]

#: Those that are made of numbers and names alone, beside what they declare to need: what a grid may name.
PREDICTORS: dict[str, type[Predictor]] = {
    cls.__name__: cls
    for cls in (BigBird, Clustering, Distance, Hashing, Longformer, Nothing, Quantization, Routing, TopK)
}
