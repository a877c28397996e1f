"""The handle that changes what a model's attention layers do while the model runs."""

from sparselib.control.attention_control import AttentionControl
from sparselib.control.calls import BlockGraph, Graph, LayerCall, TokenPairs, VisitedBlocks
from sparselib.control.certified import CertifiedRows
from sparselib.control.open_blocks import captured_modes

__all__ = [
    "AttentionControl",
    "BlockGraph",
    "CertifiedRows",
    "Graph",
    "LayerCall",
    "TokenPairs",
    "VisitedBlocks",
    "captured_modes",
]
