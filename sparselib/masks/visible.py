"""Which pairs are visible at all: real tokens, without the future if causal. No other module decides this."""

from typing import NamedTuple

import torch
from torch import Tensor

from sparselib.checks import Lengths, checked_lengths
from sparselib.masks.pattern import Pattern, looked_up


def real_positions(
    batch: int, positions: int, lengths: Lengths = None, device: torch.device | str | None = None
) -> Tensor:
    """Return ``Bool[B, N]``, True where a token is real.

    Parameters
    ----------
    batch, positions : int, B sentences padded to N tokens
    lengths : integers ``[B]``, optional, the real tokens of each sentence, 0 to N (default: every token is real)
    device : torch.device or str, optional

    Raises
    ------
    ValueError

    Examples
    --------
    >>> real_positions(2, 3, [1, 3]).int().tolist()
    [[1, 0, 0], [1, 1, 1]]
    """
    if lengths is None:
        return torch.ones(batch, positions, dtype=torch.bool, device=device)
    lengths = checked_lengths(lengths).to(device)
    if len(lengths) != batch:
        raise ValueError(f"`lengths` must hold one length for each of {batch} sentences, got {len(lengths)}")
    if not torch.compiler.is_compiling() and lengths.max() > positions:
        raise ValueError(f"`lengths` must be at most {positions}, the padded length, got {int(lengths.max())}")
    return torch.arange(positions, device=device) < lengths[:, None]


OTHER_MASK = (
    "`mask` must be [B, 1, n, n] and hide only padding on the right and later keys, got another mask; pad on the right"
)


class Description(NamedTuple):
    """What a mask hides.

    Parameters
    ----------
    causal : bool, whether it hides later keys, and nothing else but padding
    lengths : Tensor ``[B]``, optional, if it hides padding on the right or the unused places of a cache
    rule : callable, optional, if it hides anything else, or has other numbers of queries and keys
    newest : bool, whether its queries are the last tokens of a cache's first `lengths` keys and attend up to themselves
    """

    causal: bool = False
    lengths: Tensor | None = None
    rule: Pattern | None = None
    newest: bool = False


def visible_pairs(
    batch: int,
    queries: int,
    keys: int,
    lengths: Lengths = None,
    causal: bool = False,
    device: torch.device | str | None = None,
) -> Tensor:
    """Return ``Bool[B, 1, Q, K]``, True where both tokens are real and, if `causal`, the key is not after the query.

    Parameters
    ----------
    batch, queries, keys : int, the sizes B, Q and K
    lengths, device : as in :func:`real_positions`; lengths need Q = K
    causal : bool, whether later keys are hidden, which needs Q = K

    Raises
    ------
    ValueError

    Examples
    --------
    >>> visible_pairs(1, 3, 3, [2], causal=True)[0, 0].int().tolist()
    [[1, 0, 0], [1, 1, 0], [0, 0, 0]]
    """
    if queries != keys and (causal or lengths is not None):
        raise ValueError(f"`lengths` and `causal` need as many queries as keys, got {queries} and {keys}")
    real_queries = real_positions(batch, queries, lengths, device)
    real_keys = real_positions(batch, keys, lengths, device)
    visible = (real_queries[:, :, None] & real_keys[:, None, :])[:, None]
    return visible.tril() if causal else visible


def causal_and_lengths(visible: Tensor | None) -> tuple[bool, Tensor | None]:
    """Return the `causal` and ``lengths [B]`` that describe a mask ``Bool[B, 1, n, n]``, or raise ``ValueError``.

    >>> causal_and_lengths(visible_pairs(2, 3, 3, [3, 2], causal=True))
    (True, tensor([3, 2]))
    """
    description = described(visible)
    if description.rule is not None:
        raise ValueError(OTHER_MASK)
    return description.causal, description.lengths


def described(visible: Tensor | None, padded_queries: bool = True) -> Description:
    """Return what a mask ``Bool[B, 1, n, n]`` hides, without a rule if that is padding on the right and later keys.

    Any other mask is returned as a rule, with `causal` False. Its `lengths` are not None if it hides padding on the right too:
    the last keys, which no query sees, not even the query at the same place. With fewer queries than keys, as in decoding,
    these are the unused places of a cache. Unless `padded_queries`, queries at the places of such keys may be tokens: a mask in
    which they see keys is returned as a rule without lengths.

    >>> described(visible_pairs(1, 3, 3, causal=True)).causal
    True
    >>> padded_left = torch.tensor([[[[0, 0, 0], [0, 1, 0], [0, 1, 1]]]]).bool()
    >>> described(padded_left).rule is None
    False
    >>> described(torch.tensor([[[[1, 1, 0, 0], [1, 1, 1, 0]]]]).bool()).newest
    True
    """
    if visible is None:
        return Description()
    queries, keys = visible.shape[-2:]
    if queries != keys:
        position = torch.arange(1, keys + 1, device=visible.device)
        lengths = (visible.flatten(1, -2).any(dim=1) * position).amax(-1)
        last = lengths[:, None] - torch.arange(queries - 1, -1, -1, device=visible.device)
        newest = bool((visible == (position <= last[..., None])[:, None]).all())
        return Description(False, lengths if (lengths != keys).any() else None, looked_up(visible), newest)
    if visible.shape[1] != 1:
        return Description(rule=looked_up(visible))
    lengths, fits, fits_causal = _described(visible)
    has_padding = (lengths != keys).any()
    if has_padding and not padded_queries:
        behind = torch.arange(keys, device=visible.device) >= lengths[:, None]
        if (visible.any(-1)[:, 0] & behind).any():
            return Description(rule=looked_up(visible))
    if fits or fits_causal:
        return Description(not fits, lengths if has_padding else None)
    real = torch.arange(keys, device=visible.device) < lengths[:, None]
    on_the_right = (visible.diagonal(dim1=-2, dim2=-1)[:, 0] == real).all()
    return Description(False, lengths if has_padding and on_the_right else None, looked_up(visible))


def lengths_of(visible: Tensor) -> Tensor | None:
    """Return the ``lengths [B]`` of a mask ``Bool[B, 1, n, n]`` as :func:`causal_and_lengths` does, also while it is traced.

    A compiled program raises ``RuntimeError`` for a mask that hides anything else, and has lengths without padding, too.

    >>> lengths_of(visible_pairs(2, 3, 3, [3, 2]))
    tensor([3, 2])
    """
    if not torch.compiler.is_compiling():
        return causal_and_lengths(visible)[1]
    lengths, fits, fits_causal = _described(visible)
    torch._assert_async(fits | fits_causal, OTHER_MASK)
    return lengths


def _described(visible: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the lengths, and whether the mask hides nothing but padding, or nothing but padding and later keys."""
    lengths = visible.any(dim=2).sum(-1).flatten()  # keys that are visible to some query
    real = torch.arange(visible.shape[-1], device=visible.device) < lengths[:, None]  # [B, n]
    hidden_query, real_key = ~real[:, None, :, None], real[:, None, None, :]
    real_past = real_key & torch.ones_like(visible[:1]).tril()
    return lengths, *(((visible == expected) | hidden_query).all() for expected in (real_key, real_past))
