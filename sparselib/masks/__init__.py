"""Position patterns: the pairs that may attend, as functions of position alone.

A pattern is a function ``(b, h, q_idx, kv_idx) -> Bool`` of broadcastable integer tensors, in the form that FlexAttention's
``create_block_mask`` takes. Patterns do not handle padding, and are causal only by definition.
:func:`sparselib.masks.combine` intersects them with both.
"""

from sparselib.masks.combine import combine
from sparselib.masks.factorised import HEAD_COMBINATIONS, combined, fixed, fixed_parts, strided, strided_parts
from sparselib.masks.global_tokens import global_tokens, sequence_globals
from sparselib.masks.local import block, causal, dilated, sliding_window
from sparselib.masks.pattern import Pattern, intersection, nothing, to_dense, union
from sparselib.masks.sampled import RANDOM_SCOPES, bigbird, longformer, random_keys
from sparselib.masks.visible import real_positions, visible_pairs

__all__ = [
    "HEAD_COMBINATIONS",
    "RANDOM_SCOPES",
    "Pattern",
    "bigbird",
    "block",
    "causal",
    "combine",
    "combined",
    "dilated",
    "fixed",
    "fixed_parts",
    "global_tokens",
    "intersection",
    "longformer",
    "nothing",
    "random_keys",
    "real_positions",
    "sequence_globals",
    "sliding_window",
    "strided",
    "strided_parts",
    "to_dense",
    "union",
    "visible_pairs",
]
