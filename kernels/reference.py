"""Reference implementation in plain PyTorch: all scores, a token mask, and autograd. Slow; it specifies the kernels."""

import torch
from torch import Tensor

from .block_mask import BlockMask
from .rules import MaskMod, ScoreMod

#: Bisection steps on an interval of length 1, down to the resolution of float64.
HALVINGS = 54


def block_sparse_entmax_attention_reference(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    block_mask: BlockMask | None = None,
    *,
    alpha: float = 1.5,
    scale: float | None = None,
    causal: bool = False,
    lengths: Tensor | None = None,
    mask_mod: MaskMod | None = None,
    score_mod: ScoreMod | None = None,
) -> tuple[Tensor, Tensor]:
    """Compute :func:`sparselib.kernels.block_sparse_entmax_attention` in plain PyTorch, without argument checks.

    Parameters
    ----------
    q, k, v, block_mask, alpha, scale, causal, lengths, mask_mod, score_mod
        As for :func:`sparselib.kernels.block_sparse_entmax_attention`.

    Returns
    -------
    output : Tensor ``[B, H, Q, E]``
        Differentiable in `q`, `k`, `v` and what `score_mod` reads. A query with no allowed key has output 0 and gradient 0.
    tau : Tensor ``[B, H, Q]``
        Threshold of each query, infinite for a query with no allowed key. Without gradient.

    Notes
    -----
    The weights are ``((alpha - 1) * score - tau)_+ ** (1 / (alpha - 1))``, or ``exp(score - tau)`` for ``alpha = 1``.
    """
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    scores = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)  # [B, H, Q, K]
    seen = visible(scores, block_mask, causal, lengths)
    places = torch.meshgrid(*(torch.arange(n, device=q.device) for n in scores.shape), indexing="ij")
    for rule in (mask_mod, block_mask and block_mask.mask_mod):
        seen = seen if rule is None else seen & rule(*places)
    if score_mod is not None:
        scores = score_mod(scores, *places)
        seen = seen & (scores > -torch.inf)
    weights, tau = entmax_with_threshold(scores, seen, alpha)
    return weights @ v, tau


def visible(scores: Tensor, block_mask: BlockMask | None, causal: bool, lengths: Tensor | None) -> Tensor:
    """Return which keys each query may attend to.

    Parameters
    ----------
    scores : Tensor ``[B, H, Q, K]``
        Defines the shape and device.
    block_mask, causal, lengths
        As for the attention.

    Returns
    -------
    Bool Tensor ``[B, H, Q, K]``
        True where a query may attend to a key.
    """
    queries, keys = (torch.arange(n, device=scores.device) for n in scores.shape[-2:])
    seen = torch.ones_like(scores, dtype=torch.bool)
    if block_mask is not None:
        query_block, key_block = (x // size for x, size in zip((queries, keys), block_mask.block_size, strict=True))
        seen = seen & block_mask.to_dense()[:, :, query_block[:, None], key_block]
    if causal:
        seen = seen & (keys <= queries[:, None])
    if lengths is not None:
        limit = lengths[:, None, None, None]
        seen = seen & (keys < limit) & (queries[:, None] < limit)
    return seen


def entmax_with_threshold(scores: Tensor, seen: Tensor, alpha: float) -> tuple[Tensor, Tensor]:
    """Compute alpha-entmax of each row over its allowed keys.

    Parameters
    ----------
    scores : Tensor ``[..., K]``
        Scores.
    seen : Bool Tensor ``[..., K]``
        True where a key is allowed.
    alpha : float
        From 1 to 2.

    Returns
    -------
    weights : Tensor ``[..., K]``
        Differentiable in `scores`; 0 in rows with no allowed key.
    tau : Tensor ``[...]``
        Thresholds, infinite for rows with no allowed key. Without gradient.
    """
    empty = ~seen.any(-1, keepdim=True)
    x = scores.masked_fill(~seen & ~empty, -torch.inf).masked_fill(empty, 0.0)
    if alpha == 1:
        weights, tau = x.softmax(-1), x.detach().logsumexp(-1, keepdim=True)
    else:
        x = (alpha - 1) * x
        largest = x.detach().amax(-1, keepdim=True)
        weights, tau = _bisected(x - largest, 1 / (alpha - 1))
        tau = tau + largest
    return weights.masked_fill(empty, 0.0), tau.masked_fill(empty, torch.inf).squeeze(-1)


def _bisected(x: Tensor, power: float) -> tuple[Tensor, Tensor]:
    """Return ``(x - tau)_+ ** power``, whose rows sum to 1, and tau.

    The largest entry of each row must be 0, because a large entry would round away the last bisection steps. Bisection ends
    with one Newton step with a constant slope. Its derivative at the root is the derivative of the implicit function theorem.
    """
    low, width = x.new_full((*x.shape[:-1], 1), -1.0), 1.0
    for _ in range(HALVINGS):
        width /= 2
        middle = low + width
        excess = (x.detach() - middle).clamp_min(0).pow(power).sum(-1, keepdim=True) >= 1
        low = torch.where(excess, middle, low)
    slope = _positive_power(x.detach() - low, power - 1).sum(-1, keepdim=True) * power
    tau = low + (_positive_power(x - low, power).sum(-1, keepdim=True) - 1) / slope
    return _positive_power(x - tau, power), tau.detach()


def _positive_power(x: Tensor, power: float) -> Tensor:
    """Return ``x ** power`` where x is positive, else 0 with gradient 0, for any power including 0."""
    positive = x > 0
    return torch.where(positive, torch.where(positive, x, 1.0).pow(power), 0.0)
