"""Position patterns: functions ``(b, h, q_idx, kv_idx) -> Bool`` of broadcastable integer tensors, as in FlexAttention.

They ignore padding and, unless causal by definition, the future; :func:`sparselib.masks.combine` adds both.
"""

from sparselib.masks.combine import combine
from sparselib.masks.factorised import HEAD_COMBINATIONS, combined, fixed, fixed_parts, strided, strided_parts
from sparselib.masks.global_tokens import global_tokens, sequence_globals
from sparselib.masks.local import block, causal, dilated, sliding_window
from sparselib.masks.pattern import Pattern, intersection, nothing, to_dense, union
from sparselib.masks.sampled import RANDOM_SCOPES, bigbird, longformer, random_keys
from sparselib.masks.visible import real_positions, visible_pairs

__all__ = ["HEAD_COMBINATIONS", "RANDOM_SCOPES", "Pattern", "bigbird", "block", "causal", "combine", "combined",
           "dilated", "fixed", "fixed_parts", "global_tokens", "intersection", "longformer", "nothing", "random_keys",
           "real_positions", "sequence_globals", "sliding_window", "strided", "strided_parts", "to_dense", "union",
           "visible_pairs"]  # fmt: skip
