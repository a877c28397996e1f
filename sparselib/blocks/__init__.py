"""Efficient Sparsefinder (section 6.1): predicted blocks of the attention matrix, as masks for the block-sparse kernel."""

from sparselib.blocks.chunks import TOKENS, Chunks
from sparselib.blocks.graph import PredictedBlocks, unite
from sparselib.blocks.predictors import ClusteredBlocks, NearestBlocks

__all__ = ["TOKENS", "Chunks", "ClusteredBlocks", "NearestBlocks", "PredictedBlocks", "unite"]
