"""The mask of one attention call: predicted edges, window and global tokens, without padding and future."""

import torch
from torch import Tensor

from sparselib.checks import Lengths, one_of
from sparselib.masks.global_tokens import sequence_globals
from sparselib.masks.local import sliding_window
from sparselib.masks.pattern import union
from sparselib.masks.visible import real_positions, visible_pairs


def combine(
    predicted: Tensor, window: int = 0, global_tokens: str = "none", lengths: Lengths = None, causal: bool = False
) -> Tensor:
    """Return (predicted | window | global tokens) & padding & causality, applied in this order.

    Parameters
    ----------
    predicted : Bool Tensor ``[B, H, Q, K]``
        If there are fewer queries than keys, they are the last ones, as in a step of incremental decoding.
    window : int, the total width of :func:`sliding_window`, at least 0
    global_tokens : ``"none"``, ``"first"`` (for decoders) or ``"first_last"`` (for encoders), of each sentence
    lengths, causal : as in :func:`visible_pairs`, but lengths need Q = K

    Raises
    ------
    ValueError

    Examples
    --------
    >>> combine(torch.zeros(1, 1, 3, 3, dtype=torch.bool), window=1, global_tokens="first", causal=True)[0, 0].int().tolist()
    [[1, 0, 0], [1, 1, 0], [1, 0, 1]]
    """
    if predicted.dtype != torch.bool or predicted.ndim != 4 or predicted.shape[2] > predicted.shape[3]:
        raise ValueError(f"predicted must be Bool[B, H, Q, K] with Q <= K, got {predicted.dtype} {[*predicted.shape]}")
    one_of("global_tokens", global_tokens, ("none", "first", "first_last"))
    batch, _, queries, keys = predicted.shape
    device = predicted.device
    pattern = sliding_window(window)
    if global_tokens != "none":
        real = real_positions(batch, keys, lengths, device).sum(dim=-1)
        pattern = union(pattern, sequence_globals(real, global_tokens))
    if queries < keys and lengths is not None:
        raise ValueError(f"lengths need as many queries as keys, got {queries} and {keys}")
    b, position = torch.arange(batch, device=device)[:, None, None, None], torch.arange(keys, device=device)
    rows = position[keys - queries :, None]
    mask = predicted | pattern(b, torch.zeros_like(b), rows, position)
    if lengths is not None:
        return mask & visible_pairs(batch, keys, keys, lengths, causal, device)
    return mask & (position <= rows) if causal else mask
