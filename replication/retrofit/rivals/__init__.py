"""Third-party selection rules, as predictors on raw queries and keys."""

from replication.retrofit.rivals.clustered import TokensOfBlocks
from replication.retrofit.rivals.gate import Gate, fit_gate
from replication.retrofit.rivals.pages import Quest
from replication.retrofit.rivals.sampled import VerticalSlash, XAttention
from replication.retrofit.rivals.streaming import StreamingLLM

__all__ = ["Gate", "Quest", "StreamingLLM", "TokensOfBlocks", "VerticalSlash", "XAttention", "fit_gate"]
