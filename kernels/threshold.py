"""Exact threshold of alpha-entmax, for rows of scores whose largest entry is 0.

With ``a = 1 / (alpha - 1)``, the weights are ``(x - tau)_+ ** a`` for ``x = (alpha - 1) * score``. The norm ``||(x -
tau)_+||_a`` is decreasing, convex and nearly linear in tau. Newton's iteration on it starts from the lower bound -1 and
converges from below to the root, where the norm is 1. The caller multiplies by alpha - 1 and subtracts each row's maximum.
"""

import torch
from torch import Tensor

#: Newton steps before the closed form for alpha = 1.5. The few rows that have not converged by then are solved by sorting.
STEPS = 4
#: Largest number of Newton steps for other alphas; about six are usual.
MOST_STEPS = 60
#: Longer rows are squared and summed: ``vector_norm`` adds float32 numbers one by one, and ``sum`` in pairs.
MOST_NORM_KEYS = 1 << 12


#: Alphas above 1 and below this one are computed in float64: powers of 1 / (alpha - 1) amplify rounding errors.
NEAR_SOFTMAX = 1.01
#: An alpha closer to 1 is taken as 1. The weights differ by about alpha - 1.
SMALLEST_EXCESS = 1e-9


def dtype_of_scores(dtype: torch.dtype, alpha: float) -> torch.dtype:
    """Return the dtype in which scores and weights are computed.

    Parameters
    ----------
    dtype : torch.dtype
        Dtype of the inputs.
    alpha : float
        At least 1.

    Returns
    -------
    torch.dtype
        Float32 or the dtype of the inputs, whichever is more accurate; float64 for an alpha near 1.
    """
    return torch.promote_types(dtype, torch.float64 if 1 < alpha < NEAR_SOFTMAX else torch.float32)


def threshold(x: Tensor, alpha: float, u: Tensor) -> Tensor:
    """Return the threshold of each row.

    Parameters
    ----------
    x : Tensor ``[..., K]``
        Scores, multiplied by alpha - 1 unless alpha is 1. The largest entry of each row must be 0; hidden entries are ``-inf``.
    alpha : float
        At least 1.
    u : Tensor ``[..., K]``
        Workspace in the dtype of `x`. On return, it contains ``(x - tau)_+`` or, for ``alpha = 1``, ``x - tau``.

    Returns
    -------
    Tensor ``[..., 1]``
        tau. For ``alpha = 1``, where weights are ``exp(x - tau)``, it is the log-sum-exp of the row.
    """
    if alpha == 1:
        tau = x.logsumexp(-1, keepdim=True)
        torch.sub(x, tau, out=u)
        return tau
    return _of_squares(x, u) if alpha == 1.5 else _by_newton(x, 1 / (alpha - 1), u)


def _of_squares(x: Tensor, u: Tensor) -> Tensor:
    """Return tau for ``a = 2`` by Newton steps, then the closed form on the resulting support."""
    tau = -1.0
    for _ in range(STEPS):
        torch.sub(x, tau, out=u).relu_()
        norm = _norm(u)
        tau = tau + norm * (norm - 1) / u.sum(-1, keepdim=True)
    # On a known support, the sum of squares is a parabola in tau, whose smaller root is the exact threshold.
    torch.sub(x, tau, out=u).relu_()
    first = u.sum(-1, keepdim=True)
    excess = _norm(u).square_() - 1
    size = u.sign_().sum(-1, keepdim=True)
    tau = tau + (first - (first * first - size * excess).clamp_min_(0).sqrt_()) / size
    # Tau is exact only if its support is the support assumed above. Supports are nested, so comparing sizes suffices.
    torch.sub(x, tau, out=u).relu_()
    unsettled = (u.sign().sum(-1, keepdim=True) != size).squeeze(-1)
    if unsettled.any():
        tau[unsettled] = _by_sorting(x[unsettled])
        u[unsettled] = (x[unsettled] - tau[unsettled]).relu_()
    return tau


def _norm(u: Tensor) -> Tensor:
    """Return the Euclidean norm of each row."""
    if u.shape[-1] <= MOST_NORM_KEYS:
        return torch.linalg.vector_norm(u, dim=-1, keepdim=True)
    return u.square().sum(-1, keepdim=True).sqrt_()


def _by_sorting(x: Tensor) -> Tensor:
    """Return tau ``[N, 1]`` of ``x [N, K]`` for ``a = 2`` by sorting in float64 (Peters et al. 2019, Alg. 2)."""
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
    """Return tau by Newton steps to the last digit; for ``a = 1``, the norm is piecewise linear and the steps are finite."""
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
