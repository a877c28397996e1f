"""Rules by which others choose what to attend to, as predictors of raw queries and keys: rivals of predicted graphs."""

from replication.retrofit.rivals.clustered import TokensOfBlocks
from replication.retrofit.rivals.gate import Gate, fit_gate
from replication.retrofit.rivals.pages import Quest
from replication.retrofit.rivals.sampled import VerticalSlash, XAttention
from replication.retrofit.rivals.streaming import StreamingLLM

__all__ = ["Gate", "Quest", "StreamingLLM", "TokensOfBlocks", "VerticalSlash", "XAttention", "fit_gate"]
