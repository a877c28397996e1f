"""The mask that attention uses: predicted edges, window and global tokens, without padding and future."""

import torch
from torch import Tensor

from sparselib.checks import Lengths, one_of
from sparselib.masks.global_tokens import sequence_globals
from sparselib.masks.local import sliding_window
from sparselib.masks.pattern import to_dense, union
from sparselib.masks.visible import real_positions, visible_pairs


def combine(
    predicted: Tensor,
    window: int = 0,
    global_which: str = "none",
    lengths: Lengths = None,
    causal: bool = False,
) -> Tensor:
    """(predicted ∪ window ∪ global) ∩ padding ∩ causal, in this order.

    `predicted` and the result are `Bool[B, H, N, N]`. `window` is the total width of `masks.sliding_window`;
    `global_which` names the global tokens of each sentence: "none", "first" (for decoders) or
    "first_last" (for encoders). `lengths`: `[B]`, or None if every token is real.

    Raises ValueError unless `predicted` is a square boolean mask, window >= 0, `global_which` is one of the
    three and the lengths are in 1..N.
    """
    if predicted.dtype != torch.bool or predicted.ndim != 4 or predicted.shape[2] != predicted.shape[3]:
        raise ValueError(f"predicted must be Bool[B, H, N, N], got {predicted.dtype} {[*predicted.shape]}")
    one_of("global_which", global_which, ("none", "first", "first_last"))
    batch, _, positions, _ = predicted.shape
    device = predicted.device
    real_lengths = real_positions(batch, positions, lengths, device).sum(dim=-1)
    pattern = sliding_window(window)
    if global_which != "none":
        pattern = union(pattern, sequence_globals(real_lengths, global_which))
    by_position = to_dense(pattern, batch, 1, positions, device=device)
    return (predicted | by_position) & visible_pairs(batch, positions, positions, lengths, causal, device)
