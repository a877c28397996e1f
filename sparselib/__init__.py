"""Predict which query-key pairs of an entmax transformer get a nonzero weight, before computing them."""

from sparselib.attention import attention
from sparselib.entmax import entmax, entmax15, sparsemax, topk_softmax

__all__ = ["attention", "entmax", "entmax15", "sparsemax", "topk_softmax"]
