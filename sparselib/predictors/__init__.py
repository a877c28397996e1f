"""Predictors of attention graphs: the pairs that get nonzero weight, from (projected) queries and keys."""

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

__all__ = ["BigBird", "Bucketed", "Clustering", "Distance", "Hashing", "Longformer", "Needs", "Nothing",
           "Positional", "Predictor", "Quantization", "Routing", "RowWise", "Rows", "TopK", "fit_centroids",
           "fit_routing_centroids", "share_a_bucket", "squared_distances"]  # fmt: skip
