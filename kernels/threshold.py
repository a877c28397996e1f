"""The threshold of alpha-entmax, exactly, for rows of scores of which the largest is 0.

With ``a = 1 / (alpha - 1)``, the weights are ``(x - tau)_+ ** a`` for ``x = (alpha - 1) * score``. The norm
``||(x - tau)_+||_a`` falls and is convex in tau, and nearly straight, so Newton's iteration on it from -1, a lower bound,
climbs to the root where the norm is 1. (alpha - 1) and the shift by the maximum are the caller's.
"""

import torch
from torch import Tensor

#: Newton steps before the closed form of alpha = 1.5. Rows not settled by then are rare, and are solved by sorting.
STEPS = 4
#: Newton steps for other alphas; six or so are usual.
MOST_STEPS = 60


def threshold(x: Tensor, alpha: float, u: Tensor) -> Tensor:
    """tau, ``[..., 1]``, of each row of ``x [..., K]``; the largest entry of a row is 0, hidden entries are ``-inf``.

    For alpha = 1, where weights are ``exp(x - tau)``, that is the logarithm of the sum of exponentials.

    Parameters
    ----------
    u : Tensor
        As x. It is where all steps compute, and in the end ``(x - tau)_+``; for alpha = 1, ``x - tau``.
    """
    if alpha == 1:
        tau = x.logsumexp(-1, keepdim=True)
        torch.sub(x, tau, out=u)
        return tau
    return _of_squares(x, u) if alpha == 1.5 else _by_newton(x, 1 / (alpha - 1), u)


def _of_squares(x: Tensor, u: Tensor) -> Tensor:
    """tau for ``a = 2``: Newton, and the closed form on the support that it has found."""
    tau = -1.0
    for _ in range(STEPS):
        torch.sub(x, tau, out=u).relu_()
        norm = torch.linalg.vector_norm(u, dim=-1, keepdim=True)
        tau = tau + norm * (norm - 1) / u.sum(-1, keepdim=True)
    # On a known support, the sum of squares is a parabola in tau: its smaller root is the exact threshold.
    torch.sub(x, tau, out=u).relu_()
    first = u.sum(-1, keepdim=True)
    excess = torch.linalg.vector_norm(u, dim=-1, keepdim=True).square_() - 1
    size = u.sign_().sum(-1, keepdim=True)
    tau = tau + (first - (first * first - size * excess).clamp_min_(0).sqrt_()) / size
    # Supports of two thresholds are nested, so the same size is the same support: only then is tau exact.
    torch.sub(x, tau, out=u).relu_()
    unsettled = (u.sign().sum(-1, keepdim=True) != size).squeeze(-1)
    if unsettled.any():
        tau[unsettled] = _by_sorting(x[unsettled])
        u[unsettled] = (x[unsettled] - tau[unsettled]).relu_()
    return tau


def _by_sorting(x: Tensor) -> Tensor:
    """tau, ``[N, 1]``, of ``x [N, K]`` for ``a = 2`` by Peters et al. (2019), Alg. 2, in float64."""
    ordered = x.double().sort(-1, descending=True).values
    finite = ordered.isfinite()
    ordered = ordered.masked_fill(~finite, 0.0)
    size = torch.arange(1, x.shape[-1] + 1, dtype=torch.float64, device=x.device)
    mean = ordered.cumsum(-1) / size
    spread = ((ordered * ordered).cumsum(-1) - size * mean * mean).clamp_min_(0)
    candidates = mean - ((1 - spread) / size).clamp_min_(0).sqrt()
    support = ((candidates <= ordered) & finite).sum(-1, keepdim=True).clamp_min_(1)
    return candidates.gather(-1, support - 1).to(x.dtype)


def _by_newton(x: Tensor, power: float, u: Tensor) -> Tensor:
    """tau by Newton alone, to the last digit; for ``a = 1`` the norm is piecewise straight, and the number of steps finite."""
    tau = x.new_full((*x.shape[:-1], 1), -1.0)
    below = torch.empty_like(x)
    smallest = torch.finfo(x.dtype).eps
    for _ in range(MOST_STEPS):
        torch.sub(x, tau, out=u).relu_()
        torch.sign(u, out=below) if power == 1 else torch.pow(u, power - 1, out=below)
        total = u.mul_(below).sum(-1, keepdim=True)
        step = (total - total.pow(1 - 1 / power)) / below.sum(-1, keepdim=True)
        tau = tau + step
        if (step.abs() <= smallest).all():
            break
    torch.sub(x, tau, out=u).relu_()
    return tau
