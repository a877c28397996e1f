"""Dense masked attention with any normaliser: the oracle that every other path is tested against."""

import torch
from torch import Tensor

from sparselib.kernels import BlockMask, block_sparse_entmax_attention
from sparselib.normalizers import Normalizer, alpha_of, entmax15


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | BlockMask | None = None,
    *,
    normalizer: Normalizer = entmax15,
    scale: float | None = None,
) -> tuple[Tensor, Tensor | None]:
    """Scaled dot-product attention (Sparsefinder paper, Eq. 1), every score computed unless the mask is one of blocks.

    Parameters
    ----------
    q, k, v : Tensor ``[B, H, Q, D]``, ``[B, H, K, D]``, ``[B, H, K, E]``
    mask : Bool Tensor broadcastable to ``[B, H, Q, K]``, optional
        True where a query may attend. A query without any key is an *empty row*: its weights, its output and
        every gradient through it are 0. With a :class:`~sparselib.kernels.BlockMask` only its blocks are visited.
    normalizer : callable
        From scores ``[..., K]`` to probabilities of the same shape. A mask of blocks needs an alpha-entmax.
    scale : float, optional
        Factor on ``q @ k.T``; ``1 / sqrt(D)`` by default.

    Returns
    -------
    output ``[B, H, Q, E]``, weights ``[B, H, Q, K]``, or None with a mask of blocks

    Raises ``ValueError`` if shapes do not fit, the mask is not boolean, or the normaliser is not one for a mask of blocks.
    """
    if isinstance(mask, BlockMask):
        return block_sparse_entmax_attention(q, k, v, mask, alpha=alpha_of(normalizer), scale=scale), None
    _check_shapes(q, k, v, mask)
    weights = attention_weights(q, k, mask, normalizer=normalizer, scale=scale)
    return weights @ v, weights


def attention_weights(
    q: Tensor, k: Tensor, mask: Tensor | None = None, *, normalizer: Normalizer = entmax15, scale: float | None = None
) -> Tensor:
    """The weights ``[B, H, Q, K]`` of :func:`attention`, with the same arguments."""
    scores = q @ k.transpose(-2, -1) * (q.shape[-1] ** -0.5 if scale is None else scale)
    return weights_of(scores, mask, normalizer)


def weights_of(scores: Tensor, mask: Tensor | None, normalizer: Normalizer) -> Tensor:
    """Normalised scores ``[..., K]``, 0 where the mask is False and in rows without any key that may be attended to."""
    # On a CPU, all and any of booleans take ten times as long as those of bytes.
    if mask is None or (octets := mask.view(torch.uint8)).all():
        return normalizer(scores)
    scores = scores.masked_fill(~mask, -torch.inf)
    empty = octets.any(-1, keepdim=True) == 0
    if not empty.any():
        return normalizer(scores)
    return normalizer(scores.masked_fill(empty, 0.0)).masked_fill(empty, 0.0)


def gold_graph(q: Tensor, k: Tensor, mask: Tensor | None = None, *, scale: float | None = None) -> Tensor:
    """The attention graph of 1.5-entmax (section 4.1): True at ``[B, H, Q, K]`` where the weight is not zero.

    Parameters
    ----------
    q, k : Tensor ``[B, H, Q, D]``, ``[B, H, K, D]``
        Queries and keys before scaling; computed in float32 or better.
    mask : Bool Tensor, optional
        As in :func:`attention`; never True in the result where it is False.
    """
    if q.dtype in (torch.float16, torch.bfloat16):
        q, k = q.float(), k.float()
    with torch.no_grad():
        return attention_weights(q, k, mask, scale=scale).bool()


def _check_shapes(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> None:
    if q.shape[:2] != k.shape[:2] or q.shape[-1] != k.shape[-1]:
        raise ValueError(f"q and k do not fit: {tuple(q.shape)} and {tuple(k.shape)}")
    if v.shape[:3] != k.shape[:3]:
        raise ValueError(f"k and v do not fit: {tuple(k.shape)} and {tuple(v.shape)}")
    if mask is not None and mask.dtype != torch.bool:
        raise ValueError(f"mask: boolean expected, True = may attend; got {mask.dtype}")
