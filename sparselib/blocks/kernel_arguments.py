"""From masks of dense attention to the arguments of the block-sparse kernel."""

import torch
from torch import Tensor


def token_rules(visible: Tensor | None) -> tuple[bool, Tensor | None]:
    """What a mask of tokens ``Bool[B, 1, n, n]`` says as ``causal`` and ``lengths [B]``; padded queries are not looked at.

    Raises ``ValueError`` if it says anything else, as with padding on the left or a cache of earlier keys.
    """
    if visible is None:
        return False, None
    queries, keys = visible.shape[-2:]
    if queries != keys or visible.shape[1] != 1:
        raise ValueError(
            f"mask: {tuple(visible.shape)}; block-sparse attention needs as many queries as keys, and one mask for all heads"
        )
    lengths = visible.any(dim=2).sum(-1).flatten()  # keys that some query sees
    real = torch.arange(keys, device=visible.device) < lengths[:, None]  # [B, n]
    hidden_query, keys_only = ~real[:, None, :, None], real[:, None, None, :]
    for causal, expected in ((False, keys_only), (True, keys_only & torch.ones_like(visible[:1]).tril())):
        if ((visible == expected) | hidden_query).all():
            return causal, None if real.all() else lengths
    raise ValueError(
        "mask: block-sparse attention knows padding on the right and causality; this mask says something else"
    )
