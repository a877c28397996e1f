"""What may be seen at all: real tokens, and no future ones when decoding. The one place that decides it."""

import torch
from torch import Tensor

from sparselib.checks import Lengths, checked_lengths


def real_positions(
    batch: int,
    positions: int,
    lengths: Lengths = None,
    device: torch.device | str | None = None,
) -> Tensor:
    """``Bool[B, N]``, True where a token is real; everywhere if `lengths` is None.

    Raises ``ValueError`` unless `lengths` holds `batch` integers from 0 to `positions`.

    >>> real_positions(2, 3, [1, 3]).int().tolist()
    [[1, 0, 0], [1, 1, 1]]
    """
    if lengths is None:
        return torch.ones(batch, positions, dtype=torch.bool, device=device)
    lengths = checked_lengths(lengths).to(device)
    if len(lengths) != batch:
        raise ValueError(f"lengths must hold one for each of {batch} sentences, got {len(lengths)}")
    if not torch.compiler.is_compiling() and lengths.max() > positions:
        raise ValueError(f"lengths must be at most {positions}, the padded length; got {int(lengths.max())}")
    return torch.arange(positions, device=device) < lengths[:, None]


def visible_pairs(
    batch: int,
    queries: int,
    keys: int,
    lengths: Lengths = None,
    causal: bool = False,
    device: torch.device | str | None = None,
) -> Tensor:
    """``Bool[B, 1, Q, K]``: both tokens real and, if `causal`, the key not after the query.

    Raises ``ValueError`` for lengths outside 0 to n, and when `lengths` or `causal` is asked of unequal numbers of queries
    and keys: both describe one sentence that attends to itself.

    >>> visible_pairs(1, 3, 3, [2], causal=True)[0, 0].int().tolist()
    [[1, 0, 0], [1, 1, 0], [0, 0, 0]]
    """
    if queries != keys and (causal or lengths is not None):
        raise ValueError(f"lengths and causal need as many queries as keys, got {queries} and {keys}")
    real_queries = real_positions(batch, queries, lengths, device)
    real_keys = real_positions(batch, keys, lengths, device)
    visible = (real_queries[:, :, None] & real_keys[:, None, :])[:, None]
    return visible.tril() if causal else visible
