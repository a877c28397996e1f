"""Block-sparse entmax attention in PyTorch alone: the keys that a block of queries visits are gathered beside each other.

Forward and backward take a chunk of blocks of queries at a time and keep nothing but the threshold of each query, so that time
is that of the visited blocks, and memory that of the inputs and one chunk. With ``a = 1 / (alpha - 1)`` and
``u = ((alpha - 1) * score - tau)_+``, weights are ``p = u ** a``, and the backward pass of a row is
``dS = w * (dP - sum(w * dP) / sum(w))`` with ``w = p ** (2 - alpha) = u ** (a - 1)`` (Peters et al. 2019, Prop. 2).

A threshold near a large score has too few digits for u. So it comes in two numbers, itself and the rest that its rounding
dropped: ``score - tau`` is exact there where u is not 0, and ``score - tau - rest`` has the digits of u.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from .threshold import threshold
from .visits import Chunk, Visits


def forward(
    q: Tensor, k: Tensor, v: Tensor, visits: Visits, *, alpha: float, scale: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Output in the dtype of q, and the threshold of each query.

    Returns
    -------
    output ``[B, H, Q, E]``
    tau ``[B, H, Q]``
        Infinite for a query that sees no key.
    rest ``[B, H, Q]``
        What is to be added to tau for :func:`backward`.

    Raises
    ------
    ValueError
        If a score overflows.
    """
    blocks = _Blocks.of(q, k, v, visits, alpha, scale)
    output = blocks.results(blocks.q, v.shape[-1])
    tau, rest = blocks.results(blocks.q, 1, fill=torch.inf), blocks.results(blocks.q, 1)
    for chunk in visits.chunks():
        scores = blocks.scores(chunk)
        shift = _largest(scores)
        empty = shift == -torch.inf
        shift.masked_fill_(empty, 0.0)
        shifted = _shifted(scores, shift, empty)
        u = torch.empty_like(shifted)
        relative = threshold(shifted, alpha, u)
        rounded = shift + relative
        tau[chunk.queries] = rounded.masked_fill(empty, torch.inf)
        rest[chunk.queries] = (relative - (rounded - shift)).masked_fill_(empty, 0.0)
        weights = _weights(u.masked_fill_(empty, -torch.inf) if empty.any() else u, alpha)[0]
        output[chunk.queries] = weights @ blocks.gathered(blocks.v, chunk)
    return _unsplit(output, q).to(q.dtype), _unsplit(tau, q)[..., 0], _unsplit(rest, q)[..., 0]


def backward(
    grad: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    tau: Tensor,
    rest: Tensor,
    visits: Visits,
    *,
    alpha: float,
    scale: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of q, k and v, in their shapes and dtype, from that of the output and the thresholds."""
    blocks = _Blocks.of(q, k, v, visits, alpha, scale)
    upstream, tau, rest = (_split(x, visits.block[0]) for x in (grad, tau[..., None], rest[..., None]))
    dq, dk, dv = (blocks.results(x, x.shape[-1]) for x in (blocks.q, blocks.k, blocks.v))
    for chunk in visits.chunks():
        do = upstream[chunk.queries].to(blocks.dtype)
        u = blocks.scores(chunk).sub_(tau[chunk.queries]).sub_(rest[chunk.queries])
        weights, slope = _weights(u, alpha)
        ds = _scores_gradient(do @ blocks.gathered(blocks.v, chunk).mT, slope).mul_(scale)
        dq[chunk.queries] = ds @ blocks.gathered(blocks.k, chunk)
        # A block of keys is visited from many blocks of queries: its gradient is their sum.
        dk.index_add_(0, chunk.keys, (ds.mT @ blocks.q[chunk.queries].to(blocks.dtype)).view(-1, *dk.shape[1:]))
        dv.index_add_(0, chunk.keys, (weights.mT @ do).view(-1, *dv.shape[1:]))
    return tuple(_unsplit(g, x).to(x.dtype) for g, x in ((dq, q), (dk, k), (dv, v)))


@dataclass(frozen=True)
class _Blocks:
    """q, k and v ``[blocks, block size, D]``, and how scores come from them: ``(alpha - 1) * scale * q @ k.T``."""

    q: Tensor
    k: Tensor
    v: Tensor
    factor: float
    dtype: torch.dtype

    @classmethod
    def of(cls, q: Tensor, k: Tensor, v: Tensor, visits: Visits, alpha: float, scale: float) -> "_Blocks":
        q_block, k_block = visits.block
        dtype = torch.promote_types(q.dtype, torch.float32)
        factor = scale * (1 if alpha == 1 else alpha - 1)
        return cls(_split(q, q_block), _split(k, k_block), _split(v, k_block), factor, dtype)

    def results(self, blocks: Tensor, width: int, fill: float = 0.0) -> Tensor:
        """``[blocks, block size, width]`` for results, in the dtype of the computation."""
        return blocks.new_full((*blocks.shape[:2], width), fill, dtype=self.dtype)

    def gathered(self, blocks: Tensor, chunk: Chunk) -> Tensor:
        """The blocks of keys or values of a chunk, ``[G, M * k_block, D]``."""
        chosen = blocks.index_select(0, chunk.keys).to(self.dtype)
        return chosen.view(len(chunk.queries), -1, blocks.shape[-1])

    def scores(self, chunk: Chunk) -> Tensor:
        """``[G, q_block, M * k_block]``, ``-inf`` where hidden."""
        q = self.q[chunk.queries].to(self.dtype).mul_(self.factor)
        scores = q @ self.gathered(self.k, chunk).mT
        return scores if chunk.hidden is None else scores.masked_fill_(chunk.hidden, -torch.inf)


def _split(x: Tensor, size: int) -> Tensor:
    """``[B, H, n, D]`` as ``[B * H * blocks, size, D]``, the last block of each head filled up with zeros."""
    missing = -x.shape[2] % size
    x = pad(x, (0, 0, 0, missing)) if missing else x
    return x.reshape(-1, size, x.shape[-1])


def _unsplit(blocks: Tensor, like: Tensor) -> Tensor:
    """The inverse of :func:`_split`, for batch, heads and n of ``like [B, H, n, *]``."""
    b, h, n, _ = like.shape
    padded = -(-n // blocks.shape[1]) * blocks.shape[1]
    return blocks.reshape(b, h, padded, blocks.shape[-1])[:, :, :n]


def _largest(scores: Tensor) -> Tensor:
    """The maximum of each row, ``[..., 1]``; ``-inf`` for a row without any key."""
    largest = scores.amax(-1, keepdim=True)
    if (largest.isnan() | (largest == torch.inf)).any():
        raise ValueError(f"q, k: a score overflows {scores.dtype}")
    return largest


def _shifted(scores: Tensor, shift: Tensor, empty: Tensor) -> Tensor:
    """Scores of which the largest of a row is 0; an empty row becomes 0 everywhere, to have a threshold at all."""
    return (scores.masked_fill(empty, 0.0) if empty.any() else scores) - shift


def _weights(u: Tensor, alpha: float) -> tuple[Tensor, Tensor]:
    """Weights p and ``p ** (2 - alpha)``, both ``[..., K]``, of differences of scores from their thresholds; u is changed."""
    if alpha == 1:
        p = u.exp_()
        return p, p
    u = u.relu_()
    if alpha == 1.5:
        return u * u, u
    if alpha == 2:
        return u, u.sign()
    power = 1 / (alpha - 1)
    return u.pow(power), u.pow(power - 1)


def _scores_gradient(dp: Tensor, slope: Tensor) -> Tensor:
    """``w * (dP - sum(w * dP) / sum(w))`` of each row; 0 for a row of zeros."""
    product = dp.mul_(slope)
    total = slope.sum(-1, keepdim=True).clamp_min_(torch.finfo(slope.dtype).tiny)
    return product.addcmul_(slope, product.sum(-1, keepdim=True) / total, value=-1)
