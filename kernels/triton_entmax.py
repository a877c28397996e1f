"""The mathematics of the Triton kernels, one step per function.

With ``a = 1 / (alpha - 1)`` (`power`), ``x = (alpha - 1) * score`` and ``u = (x - tau)_+``, weights are ``p = u ** a`` and
their derivatives go by ``w = u ** (a - 1)``. The norm ``N(tau) = ||u||_a`` is convex and falls with slope
``-sum(w) / N ** (a - 1)``; the threshold is where it is 1.

NaN is never lost: maxima propagate it, and comparisons are written so that NaN takes the branch that computes with it.
"""

import torch
import triton
import triton.language as tl

#: Which alpha: 1, 1.5, 2, and any other between 1 and 2.
SOFTMAX = tl.constexpr(0)
SQUARES = tl.constexpr(1)
SPARSEMAX = tl.constexpr(2)
GENERAL = tl.constexpr(3)

#: The sum of weights before the last step may be this far from 1. Errors of the closed form shrink with the third power, those
#: of Newton's step with the second: both end far below the rounding of half precision.
HALF_TOLERANCE = {SQUARES.value: 0.1, SPARSEMAX.value: 0.01, GENERAL.value: 0.01}
#: In float32 the support itself has to be settled; for other alphas, what Newton's step leaves has to be rounding.
SINGLE_TOLERANCE = {SQUARES.value: 2.0**-20, SPARSEMAX.value: 2.0**-20, GENERAL.value: 2.0**-11}

#: A threshold below every score, finite so that differences from it are numbers.
LOWEST = tl.constexpr(-3.4e38)
LOG2_E = tl.constexpr(1.4426950408889634)


def tolerance_of(kind: int, dtype: torch.dtype) -> float:
    """How far from 1 the sum of weights may be before the last step."""
    return (SINGLE_TOLERANCE if dtype == torch.float32 else HALF_TOLERANCE).get(kind, 0.0)


def kind_of(alpha: float) -> int:
    """The constant for an alpha."""
    return {1.0: SOFTMAX, 1.5: SQUARES, 2.0: SPARSEMAX}.get(float(alpha), GENERAL).value


@triton.jit
def maximum(x, y):
    return tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def weights(x, tau, power, KIND: tl.constexpr):
    """p and w of scores ``x`` for thresholds that broadcast; both 0 for an infinite threshold."""
    if KIND == SOFTMAX:
        p = tl.exp2((x - tau) * LOG2_E)
        w = p
    else:
        u = maximum(x - tau, 0.0)
        if KIND == SQUARES:
            p = u * u
            w = u
        elif KIND == SPARSEMAX:
            p = u
            w = tl.where(u == 0, 0.0, 1.0)
        else:
            w = tl.where(u == 0, 0.0, tl.exp2(tl.log2(tl.where(u == 0, 1.0, u)) * (power - 1)))
            p = u * w
    return p, w


@triton.jit
def statistics(x, tau, power, KIND: tl.constexpr):
    """Of each row at its threshold: the size of the support, sum(w) and sum(p)."""
    p, w = weights(x, tau[:, None], power, KIND)
    return tl.sum(tl.where(w == 0, 0.0, 1.0), 1), tl.sum(w, 1), tl.sum(p, 1)


@triton.jit
def root(total, power, KIND: tl.constexpr):
    """``total ** (1 / a)``."""
    if KIND == SQUARES:
        norm = tl.sqrt(total)
    elif KIND == SPARSEMAX:
        norm = total
    else:
        norm = tl.where(total == 0, 0.0, tl.exp2(tl.log2(tl.where(total == 0, 1.0, total)) / power))
    return norm


@triton.jit
def below_power(norm, power, KIND: tl.constexpr):
    """``norm ** (a - 1)``."""
    if KIND == SQUARES:
        result = norm
    elif KIND == SPARSEMAX:
        result = tl.full(norm.shape, 1.0, tl.float32)
    else:
        result = tl.where(norm == 0, 0.0, tl.exp2(tl.log2(tl.where(norm == 0, 1.0, norm)) * (power - 1)))
    return result


@triton.jit
def newton_below(tau, norm, slope):
    """Where the line from ``norm`` at ``tau`` that falls by ``slope`` is 1, if that is higher, and its value there."""
    return tl.where(norm <= 1, tau, tau + (norm - 1) / slope), tl.where(norm <= 1, norm, 1.0)


@triton.jit
def bounded_norm(raised, tau, norm, slope, x, power, KIND: tl.constexpr):
    """A line below the norm of all keys from `raised` on, from one below that of the keys seen from `tau` on, and a tile.

    With ``norm - slope * d`` at most the norm of the keys seen at ``tau + d``, for every d >= 0, the a-norm of that and of the
    tile's own norm is convex in d and below the norm of all keys; so is its tangent.
    """
    norm = maximum(norm - slope * (raised - tau), 0.0)
    slope = tl.where(norm == 0, 0.0, slope)
    _, below, total = statistics(x, raised, power, KIND)
    seen = below_power(norm, power, KIND)
    total += norm * seen
    below += slope * seen
    norm = root(total, power, KIND)
    return norm, tl.where(total == 0, 0.0, below / below_power(norm, power, KIND))


@triton.jit
def online_step(tau, norm, slope, x, power, KIND: tl.constexpr):
    """One more tile of scores for a lower bound of the threshold, and the line below the norm of all keys seen from there on.

    Where that line is above 1, so is the norm, and the line's root is still below the threshold. The tile is at hand, so it is
    used twice: that saves a sweep over all keys later.
    """
    first = maximum(tau, tl.max(x, 1) - 1)  # the norm at the largest score - 1 is at least 1
    first_norm, first_slope = bounded_norm(first, tau, norm, slope, x, power, KIND)
    second, _ = newton_below(first, first_norm, first_slope)
    norm, slope = bounded_norm(second, tau, norm, slope, x, power, KIND)
    tau, norm = newton_below(second, norm, slope)
    return tau, norm, slope


@triton.jit
def refined(tau, lower, count, below, total, power, KIND: tl.constexpr):
    """The next threshold from the statistics of all keys at `tau`, and a lower bound.

    Newton's step ends below the threshold from either side. The closed form on the support found is exact if that is the
    support, else too high from below (its support is too large) and too low from above, but never lower than Newton there.
    """
    if KIND == SQUARES:
        newton = tau + (total - tl.sqrt(total)) / below
        # sum over the support of (x - tau - d) ** 2 = 1 is a parabola in d; this is its smaller root.
        spread = maximum(below * below - count * (total - 1), 0.0)
        closed = tau + (below - tl.sqrt(spread)) / count
    else:
        newton = tau + (total - total / root(total, power, KIND)) / below
        closed = newton
    lower = tl.where(newton > lower, newton, lower)
    return tl.where(closed < lower, lower, closed), lower
