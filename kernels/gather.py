"""Block-sparse entmax attention in plain PyTorch: the keys that a query block visits are gathered into one tensor.

Forward and backward process a chunk of query blocks at a time and save only the threshold of each query. The time is
proportional to the visited blocks. The memory holds the inputs and one chunk.

With ``a = 1 / (alpha - 1)`` and ``u = ((alpha - 1) * score - tau)_+``, the weights are ``p = u ** a``. The backward pass of a
row is ``dS = w * (dP - sum(w * dP) / sum(w))`` with ``w = p ** (2 - alpha) = u ** (a - 1)`` (Peters et al. 2019, Prop. 2).

A threshold near a large score has too few digits to compute u. It is therefore stored as two numbers: the rounded threshold
`tau` and its rounding error `rest`. Where u is not 0, ``score - tau`` is exact, so ``score - tau - rest`` has all digits of u.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from .rules import Rules, ScoreGradients
from .threshold import dtype_of_scores, threshold
from .visits import Chunk, Visits


def forward(
    q: Tensor, k: Tensor, v: Tensor, visits: Visits, *, alpha: float, scale: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the forward pass.

    Parameters
    ----------
    q, k, v : Tensor ``[B, H, Q, D]``, ``[B, G, K, D]``, ``[B, G, K, E]``
        Queries, keys and values.
    visits : Visits
        Blocks to visit, the token mask, and the rules.
    alpha : float
        From 1 to 2.
    scale : float
        Factor on ``q @ k.T``.

    Returns
    -------
    output : Tensor ``[B, H, Q, E]``
        In the dtype of `q`.
    tau : Tensor ``[B, H, Q]``
        Threshold of each query, infinite for a query with no allowed key.
    rest : Tensor ``[B, H, Q]``
        Rounding error of `tau`: the exact threshold is ``tau + rest``.

    Raises
    ------
    ValueError
        If a score overflows.
    """
    blocks = _Blocks.of(q, k, v, visits, alpha, scale)
    output = blocks.results(blocks.q, v.shape[-1])
    single = torch.promote_types(q.dtype, torch.float32)
    tau, rest = (blocks.results(blocks.q, 1, fill=fill).to(single) for fill in (torch.inf, 0.0))
    for chunk in visits.chunks():
        scores = blocks.scores(chunk)
        shift = _largest(scores)
        empty = shift == -torch.inf
        shift.masked_fill_(empty, 0.0)
        weights, relative = _softmax(scores, empty) if alpha == 1 else _entmax(scores, shift, empty, alpha)
        rounded = (shift + relative).to(single)
        tau[chunk.queries] = rounded.masked_fill(empty, torch.inf)
        rest[chunk.queries] = (relative - (rounded - shift)).masked_fill_(empty, 0.0).to(single)
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
    through: ScoreGradients | None = None,
    *,
    alpha: float,
    scale: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the backward pass.

    Parameters
    ----------
    grad : Tensor ``[B, H, Q, E]``
        Gradient of the output.
    q, k, v, visits, alpha, scale
        As for :func:`forward`.
    tau, rest : Tensor ``[B, H, Q]``
        As returned by :func:`forward`.
    through : ScoreGradients, optional
        Gradients through the `score_mod` of the rules, if there is one.

    Returns
    -------
    dq, dk, dv : Tensor
        Gradients in the shapes and dtype of `q`, `k` and `v`.
    """
    blocks = _Blocks.of(q, k, v, visits, alpha, scale)
    upstream, tau, rest = (_split(x, visits.block[0]) for x in (grad, tau[..., None], rest[..., None]))
    dq, dk, dv = (blocks.results(x, x.shape[-1]) for x in (blocks.q, blocks.k, blocks.v))
    for chunk in visits.chunks():
        do = upstream[chunk.queries].to(blocks.dtype)
        u = blocks.scores(chunk, through).sub_(tau[chunk.queries]).sub_(rest[chunk.queries])
        weights, slope = _weights(u, alpha)
        ds = _scores_gradient(do @ blocks.gathered(blocks.v, chunk).mT, slope)
        ds = (ds if through is None else through.propagate(ds)).mul_(scale)
        dq[chunk.queries] = ds @ blocks.gathered(blocks.k, chunk)
        # Several query blocks may visit a key block, so their gradients are added.
        dk.index_add_(0, chunk.keys, (ds.mT @ blocks.q[chunk.queries].to(blocks.dtype)).view(-1, *dk.shape[1:]))
        dv.index_add_(0, chunk.keys, (weights.mT @ do).view(-1, *dv.shape[1:]))
    return tuple(_unsplit(g, x).to(x.dtype) for g, x in ((dq, q), (dk, k), (dv, v)))


def alpha_gradient(
    grad: Tensor, q: Tensor, k: Tensor, v: Tensor, visits: Visits, *, alpha: float, scale: float
) -> Tensor:
    """Compute the gradient of alpha, summed over all rows.

    With s the scores and ``h = -p log(p)``, the weights of a row change with alpha by ``(h + w s - w * sum(h + w s) / sum(w)) /
    (alpha - 1)``. This follows from the derivative of p with a threshold that keeps their sum at 1 (Correia et al. 2019, Prop.
    2), and does not change if a constant is added to s.

    Parameters
    ----------
    grad, q, k, v, visits, scale
        As for :func:`backward`.
    alpha : float
        Above 1, up to 2.

    Returns
    -------
    Tensor ``[]``
        In the dtype of the computation.
    """
    blocks = _Blocks.of(q, k, v, visits, alpha, scale)
    upstream = _split(grad, visits.block[0])
    total = blocks.q.new_zeros((), dtype=torch.promote_types(blocks.dtype, torch.float64))
    for chunk in visits.chunks():
        scores = blocks.scores(chunk)
        shift = _largest(scores)
        empty = shift == -torch.inf
        shifted = _shifted(scores, shift.masked_fill_(empty, 0.0), empty)
        u = torch.empty_like(shifted)
        threshold(shifted, alpha, u)
        weights, slope = _weights(u.masked_fill_(empty, -torch.inf), alpha)
        change = slope * shifted.masked_fill(slope == 0, 0.0) / (alpha - 1) - torch.xlogy(weights, weights)
        mean = change.sum(-1, keepdim=True) / slope.sum(-1, keepdim=True).clamp_min_(torch.finfo(slope.dtype).tiny)
        dp = upstream[chunk.queries].to(blocks.dtype) @ blocks.gathered(blocks.v, chunk).mT
        total += (dp * (change - slope * mean)).sum(dtype=total.dtype)
    return total / (alpha - 1)


@dataclass(frozen=True)
class _Blocks:
    """q, k and v as ``[blocks, block size, D]``, and the factors of the scores before and after a rule."""

    q: Tensor
    k: Tensor
    v: Tensor
    factor: float
    late_factor: float
    dtype: torch.dtype
    rules: Rules | None

    @classmethod
    def of(cls, q: Tensor, k: Tensor, v: Tensor, visits: Visits, alpha: float, scale: float) -> "_Blocks":
        """Split q, k and v into blocks."""
        q_block, k_block = visits.block
        dtype = dtype_of_scores(q.dtype, alpha)
        excess = 1 if alpha == 1 else alpha - 1
        rules = visits.rules if visits.rules and visits.rules.score_mod else None
        factors = (scale, excess) if rules else (scale * excess, 1)
        return cls(_split(q, q_block), _split(k, k_block), _split(v, k_block), *factors, dtype, rules)

    def results(self, blocks: Tensor, width: int, fill: float = 0.0) -> Tensor:
        """Return a filled tensor ``[blocks, block size, width]`` for results, in the dtype of the computation."""
        return blocks.new_full((*blocks.shape[:2], width), fill, dtype=self.dtype)

    def gathered(self, blocks: Tensor, chunk: Chunk) -> Tensor:
        """Gather the blocks of keys or values that a chunk visits, ``[G, M * k_block, D]``."""
        chosen = blocks.index_select(0, chunk.keys).to(self.dtype)
        return chosen.view(len(chunk.queries), -1, blocks.shape[-1])

    def scores(self, chunk: Chunk, through: ScoreGradients | None = None) -> Tensor:
        """Return the scores of a chunk, ``[G, q_block, M * k_block]``, ``-inf`` where hidden; `through` records their rule."""
        q = self.q[chunk.queries].to(self.dtype).mul_(self.factor)
        scores = q @ self.gathered(self.k, chunk).mT
        if self.rules is not None:
            modified = self.rules.modified if through is None else through.record
            scores = modified(scores, chunk.places) * self.late_factor
        return scores if chunk.hidden is None else scores.masked_fill_(chunk.hidden, -torch.inf)


def _split(x: Tensor, size: int) -> Tensor:
    """Split ``[B, H, n, D]`` into ``[B * H * blocks, size, D]`` and fill up each head's last block with zeros."""
    missing = -x.shape[2] % size
    x = pad(x, (0, 0, 0, missing)) if missing else x
    return x.reshape(-1, size, x.shape[-1])


def _unsplit(blocks: Tensor, like: Tensor) -> Tensor:
    """Invert :func:`_split`, with the batch size, heads and n of ``like [B, H, n, *]``."""
    b, h, n, _ = like.shape
    padded = -(-n // blocks.shape[1]) * blocks.shape[1]
    return blocks.reshape(b, h, padded, blocks.shape[-1])[:, :, :n]


def _largest(scores: Tensor) -> Tensor:
    """Return the maximum of each row, ``[..., 1]``; ``-inf`` for a row without keys, and NaN for a row with NaN."""
    largest = scores.amax(-1, keepdim=True)
    if (largest == torch.inf).any():
        raise ValueError(f"q, k: a score overflows {scores.dtype}")
    return largest


def _softmax(scores: Tensor, empty: Tensor) -> tuple[Tensor, Tensor]:
    """Return the weights of softmax, and their thresholds above each row's maximum ``[..., 1]``; 0 for empty rows."""
    weights = scores.softmax(-1)
    if empty.any():
        weights.masked_fill_(empty, 0.0)
    # The largest weight is 1 / sum(exp(score - maximum)), and the threshold is the logarithm of that sum.
    return weights, -weights.amax(-1, keepdim=True).masked_fill_(empty, 1.0).log_()


def _entmax(scores: Tensor, shift: Tensor, empty: Tensor, alpha: float) -> tuple[Tensor, Tensor]:
    """Return the weights of entmax, and their thresholds above each row's maximum ``[..., 1]``; 0 for empty rows."""
    shifted = _shifted(scores, shift, empty)
    u = torch.empty_like(shifted)
    relative = threshold(shifted, alpha, u)
    return _weights(u.masked_fill_(empty, -torch.inf) if empty.any() else u, alpha)[0], relative


def _shifted(scores: Tensor, shift: Tensor, empty: Tensor) -> Tensor:
    """Subtract each row's maximum; empty rows become 0 everywhere, so that they have a threshold."""
    return (scores.masked_fill(empty, 0.0) if empty.any() else scores) - shift


def _weights(u: Tensor, alpha: float) -> tuple[Tensor, Tensor]:
    """Return weights p and ``p ** (2 - alpha)``, both ``[..., K]``, from scores minus thresholds; u is overwritten."""
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
    """Return ``w * (dP - sum(w * dP) / sum(w))`` of each row; 0 for a row of zeros."""
    product = dp.mul_(slope)
    total = slope.sum(-1, keepdim=True).clamp_min_(torch.finfo(slope.dtype).tiny)
    return product.addcmul_(slope, product.sum(-1, keepdim=True) / total, value=-1)
