"""The mathematics of the Triton kernels, one step per function.

With ``a = 1 / (alpha - 1)`` (`power`) and scores ``s = factor * x``, where x are products of queries and keys and the factor
contains alpha - 1, weights are ``p = u ** a`` for ``u = (s - tau)_+``, and their derivatives go by ``w = u ** (a - 1)``. The
norm ``N(tau) = ||u||_a`` is convex and falls with slope ``-sum(w) / N ** (a - 1)``; the threshold is where it is 1.

What is done for every pair of a query and a key decides the speed, more than the matrix products do, so it is little: on a GPU,
u is one instruction, a multiplication and addition clamped to 0 .. 1. (No threshold is tried below the largest score - 1, so u
is at most 1.) Clamping hides NaN, which comes back by row: the first sweep finds it, tau of the row is NaN, and so is p.
"""

import torch
import triton
import triton.language as tl

#: Which alpha: 1, 1.5, 2, and any other between 1 and 2.
SOFTMAX = tl.constexpr(0)
SQUARES = tl.constexpr(1)
SPARSEMAX = tl.constexpr(2)
GENERAL = tl.constexpr(3)

#: The sum of weights before the last step may be this far from 1; what that step leaves, half precision rounds away.
HALF_TOLERANCE = {SQUARES.value: 0.2, SPARSEMAX.value: 0.02, GENERAL.value: 0.05}
#: In float32, and where a certificate is built on the threshold, nothing but rounding may be left.
SINGLE_TOLERANCE = 2.0**-20
#: A step smaller than this part of the threshold is rounding, and the search is over.
SMALLEST_STEP = tl.constexpr(2.0**-22)

#: This part of a number is at least what single precision resolves there.
RESOLUTION = tl.constexpr(2.0**-23)

#: A threshold below every score, finite so that differences from it are numbers.
LOWEST = tl.constexpr(-3.4e38)
LOG2_E = tl.constexpr(1.4426950408889634)


def tolerance_of(kind: int, dtype: torch.dtype) -> float:
    """How far from 1 the sum of weights may be before the last step."""
    return SINGLE_TOLERANCE if dtype == torch.float32 else HALF_TOLERANCE.get(kind, 0.0)


def kind_of(alpha: float) -> int:
    """The constant for an alpha."""
    return {1.0: SOFTMAX, 1.5: SQUARES, 2.0: SPARSEMAX}.get(float(alpha), GENERAL).value


@triton.jit
def maximum(x, y):
    return tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def below_largest(tau, largest):
    """A threshold that leaves the largest score a weight, where single precision might round it onto that score.

    From 2 ** 23 on, scores are 1 or more apart: the largest then gets u >= 1, which is clamped to 1, and the others 0.
    """
    return tl.minimum(tau, largest - tl.abs(largest) * RESOLUTION, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def powers(u, power, KIND: tl.constexpr):
    """``u ** a`` and ``u ** (a - 1)``, both 0 where u is 0."""
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
def weights(x, factor, tau, nothing, power, KIND: tl.constexpr):
    """p and w of products ``x``, both 0 for an infinite threshold; `tau` and `nothing`, 0 or NaN to add to p, broadcast."""
    if KIND == SOFTMAX:
        p = tl.exp2(tl.fma(x, factor * LOG2_E, -tau * LOG2_E))
        w = p
    else:
        p, w = powers(tl.minimum(tl.maximum(tl.fma(x, factor, -tau), 0.0), 1.0), power, KIND)
        if nothing is not None:
            p += nothing
    return p, w


@triton.jit
def folded(x, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """``[ROWS, COLUMNS]`` summed up to ``[ROWS, 8]``: what of a product's tile lies in one thread, so that none has to wait."""
    return tl.sum(tl.reshape(x, [ROWS, COLUMNS // 8, 8]), 1)


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
        result = tl.where(norm == 0, 0.0, 1.0)
    else:
        result = tl.where(norm == 0, 0.0, tl.exp2(tl.log2(tl.where(norm == 0, 1.0, norm)) * (power - 1)))
    return result


@triton.jit
def online_step(tau, norm, slope, largest, x, factor, power, KIND: tl.constexpr):
    """One more tile of products for a lower bound of the threshold, and a line below the norm of all keys from there on.

    With ``norm - slope * d`` at most the norm of the keys before at ``tau + d``, for every d >= 0, the a-norm of that and of
    the tile's own norm is convex in d and below the norm of all keys; so is its tangent. Where that line is above 1, so is the
    norm, and the line's root is still below the threshold.
    """
    largest = maximum(largest, tl.max(x, 1) * factor)
    raised = maximum(tau, below_largest(largest - 1, largest))  # the norm at the largest score - 1 is at least 1
    norm = maximum(norm - slope * (raised - tau), 0.0)
    p, w = powers(maximum(tl.fma(x, factor, -raised[:, None]), 0.0), power, KIND)  # not clamped: here NaN is found
    seen = below_power(norm, power, KIND)
    total = tl.sum(p, 1) + norm * seen
    below = tl.sum(w, 1) + slope * seen
    norm = root(total, power, KIND)
    slope = tl.where(total == 0, 0.0, below / below_power(norm, power, KIND))
    return tl.where(norm <= 1, raised, raised + (norm - 1) / slope), tl.where(norm <= 1, norm, 1.0), slope, largest


@triton.jit
def refined(tau, lower, last_tau, last_norm, last_slope, total, below, power, KIND: tl.constexpr):
    """The next threshold from the sums of p and w of all keys at `tau`, a lower bound, and norm and slope (positive) at `tau`.

    Newton's step ends below the threshold from either side. Once two sweeps have come near, the cubic that has their thresholds
    and slopes (Hermite's, of tau as a function of the norm) says how much is missing; more than another such step never is.
    """
    norm = root(total, power, KIND)
    slope = below / below_power(norm, power, KIND)
    step = tl.where(total == 0, lower - tau, (norm - 1) / slope)
    lower = tl.where(tau + step > lower, tau + step, lower)
    apart = last_norm - norm
    chord = (last_tau - tau) / apart
    second = (chord + 1 / slope) / apart
    third = ((-1 / last_slope - chord) / apart - second) / apart
    missing = (1 - norm) * (1 - norm) * (second + third * (1 - last_norm))
    missing = tl.minimum(tl.maximum(missing, 0.0), tl.abs(step))
    step += tl.where(2 * tl.abs(norm - 1) < tl.abs(apart), missing, 0.0)
    return tl.where(tau + step < lower, lower, tau + step), lower, norm, slope
