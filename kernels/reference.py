"""The plain PyTorch twin: every score computed, a mask of tokens, and autograd. It is the specification, not the fast path."""

import torch
from torch import Tensor

from .block_mask import BlockMask

#: Halvings of an interval of length 1: as fine as float64 resolves.
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
) -> tuple[Tensor, Tensor]:
    """What :func:`sparselib.kernels.block_sparse_entmax_attention` computes, with the same arguments, unchecked.

    Returns
    -------
    output ``[B, H, Q, E]``
        Differentiable in q, k and v; 0, with gradient 0, for a query that sees no key.
    tau ``[B, H, Q]``
        The threshold: weights are ``((alpha - 1) * score - tau)_+ ** (1 / (alpha - 1))``, or ``exp(score - tau)`` for alpha
        = 1. Infinite for a query that sees no key. Without gradient.
    """
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    scores = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)  # [B, H, Q, K]
    seen = visible(scores, block_mask, causal, lengths)
    weights, tau = entmax_with_threshold(scores, seen, alpha)
    return weights @ v, tau


def visible(scores: Tensor, block_mask: BlockMask | None, causal: bool, lengths: Tensor | None) -> Tensor:
    """True where a query sees a key, ``Bool[B, H, Q, K]`` for ``scores`` of that shape."""
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
    """alpha-entmax of each row of ``scores [..., K]`` over the keys that it sees, and its threshold ``[...]``."""
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
    """``(x - tau)_+ ** power`` with rows that sum to 1, and tau: bisection, then one Newton step that carries the gradient.

    The largest entry of a row is 0: beside a large one, the steps toward the threshold would be lost.
    The derivative of a Newton step at the root, with the slope held constant, is that of the implicit function theorem.
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
    """``x ** power`` where x is positive, else 0: also for power 0, and with gradient 0 there."""
    positive = x > 0
    return torch.where(positive, torch.where(positive, x, 1.0).pow(power), 0.0)
