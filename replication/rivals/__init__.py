"""Rules by which others choose what to attend to, as predictors of raw queries and keys: rivals of predicted graphs."""

from replication.rivals.clustered import TokensOfBlocks
from replication.rivals.gate import Gate, fit_gate
from replication.rivals.pages import Quest
from replication.rivals.sampled import VerticalSlash, XAttention
from replication.rivals.streaming import StreamingLLM

__all__ = ["Gate", "Quest", "StreamingLLM", "TokensOfBlocks", "VerticalSlash", "XAttention", "fit_gate"]
