"""The mathematics of the Triton kernels, one step per function.

Let x be the products of queries and keys. The scores are ``s = factor * x``, where the factor includes alpha - 1. With
``a = 1 / (alpha - 1)`` (`power`), the weights are ``p = u ** a`` for ``u = (s - tau)_+``, and their derivatives are
proportional to ``w = u ** (a - 1)``. The norm ``N(tau) = ||u||_a`` is convex and decreasing with slope
``-sum(w) / N ** (a - 1)``. The threshold is the point where it is 1.

The work per pair of a query and a key limits the speed more than the matrix products do, so it is kept small. On a GPU, u is
one instruction: a multiplication and addition, clamped to 0 .. 1. No threshold below the largest score - 1 is tried, so u is at
most 1. Clamping hides NaN, which is restored by row: the first sweep sets the row's tau to NaN, and then p is NaN.
"""

import torch
import triton
import triton.language as tl

#: Kinds of alpha: 1, 1.5, 2, and any other value between 1 and 2.
SOFTMAX = tl.constexpr(0)
SQUARES = tl.constexpr(1)
SPARSEMAX = tl.constexpr(2)
GENERAL = tl.constexpr(3)

#: Tolerated error of the sum of weights before the last step, which leaves an error below the rounding of weights. For
#: alpha = 1.5, the step's error is of third order, and the tolerance depends on the dtype.
HALF_TOLERANCE = {SPARSEMAX.value: 0.00125, GENERAL.value: 0.003}
SQUARES_TOLERANCE = {torch.bfloat16: 0.35, torch.float16: 0.1}
#: The same for float32 and for certificates, where only rounding errors may remain.
SINGLE_TOLERANCE = 2.0**-20
#: The power of the sum of weights that is closest to linear in tau, times a. It fits tails between exponential and bounded.
GROWTH = tl.constexpr(0.4)
#: The search ends when a step is below this fraction of the threshold, because it is only rounding.
SMALLEST_STEP = tl.constexpr(2.0**-22)

#: Relative resolution of single precision, at least.
RESOLUTION = tl.constexpr(2.0**-23)

#: A threshold below every score; it is finite, so that differences from it are finite.
LOWEST = tl.constexpr(-3.4e38)
LOG2_E = tl.constexpr(1.4426950408889634)


def tolerance_of(kind: int, dtype: torch.dtype) -> float:
    """Return the tolerated error of the sum of weights before the last step.

    Parameters
    ----------
    kind : int
        Value of ``SOFTMAX``, ``SQUARES``, ``SPARSEMAX`` or ``GENERAL``.
    dtype : torch.dtype
        Dtype of the inputs, or float32 for a certificate.

    Returns
    -------
    float
        Largest distance of the sum from 1.
    """
    if dtype == torch.float32:
        return SINGLE_TOLERANCE
    return SQUARES_TOLERANCE[dtype] if kind == SQUARES.value else HALF_TOLERANCE.get(kind, 0.0)


def kind_of(alpha: float) -> int:
    """Return the constant for an alpha.

    Parameters
    ----------
    alpha : float
        From 1 to 2.

    Returns
    -------
    int
        Value of ``SOFTMAX``, ``SQUARES``, ``SPARSEMAX`` or ``GENERAL``.
    """
    return {1.0: SOFTMAX, 1.5: SQUARES, 2.0: SPARSEMAX}.get(float(alpha), GENERAL).value


@triton.jit
def maximum(x, y):
    """Return the larger of x and y, or NaN if either is NaN."""
    return tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def below_largest(tau, largest):
    """Lower a threshold that single precision may have rounded to the largest score, so that this score keeps a weight.

    From 2 ** 23 on, scores are at least 1 apart. The largest then has u >= 1, which is clamped to 1, and the others have u = 0.
    """
    return tl.minimum(tau, largest - tl.abs(largest) * RESOLUTION, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def powers(u, power, KIND: tl.constexpr):
    """Return ``u ** a`` and ``u ** (a - 1)``, both 0 where u is 0."""
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
    """Return p and w of products ``x``, both 0 for an infinite threshold.

    `tau` and `nothing` broadcast to x. `nothing` is 0 or NaN and is added to p.
    """
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
    """Sum ``[ROWS, COLUMNS]`` to ``[ROWS, 8]``: each thread adds its own part of a product's tile, so no thread waits."""
    return tl.sum(tl.reshape(x, [ROWS, COLUMNS // 8, 8]), 1)


@triton.jit
def root(total, power, KIND: tl.constexpr):
    """Return ``total ** (1 / a)``."""
    if KIND == SQUARES:
        norm = tl.sqrt(total)
    elif KIND == SPARSEMAX:
        norm = total
    else:
        norm = tl.where(total == 0, 0.0, tl.exp2(tl.log2(tl.where(total == 0, 1.0, total)) / power))
    return norm


@triton.jit
def below_power(norm, power, KIND: tl.constexpr):
    """Return ``norm ** (a - 1)``."""
    if KIND == SQUARES:
        result = norm
    elif KIND == SPARSEMAX:
        result = tl.where(norm == 0, 0.0, 1.0)
    else:
        result = tl.where(norm == 0, 0.0, tl.exp2(tl.log2(tl.where(norm == 0, 1.0, norm)) * (power - 1)))
    return result


@triton.jit
def online_step(tau, level, slope, largest, x, factor, power, KIND: tl.constexpr):
    """Update an estimate of the threshold with one more tile of products.

    With ``g = GROWTH / a``, `level` is ``total ** g`` at `tau`, for the sum of weights of all keys so far, and `slope` is its
    slope (positive). The level is taken to be linear in tau, which fits the tails of scores. The norm, with ``g = 1 / a``,
    would give a lower bound on the threshold, but several times as far from it.
    """
    largest = maximum(largest, tl.max(x, 1) * factor)
    raised = maximum(tau, below_largest(largest - 1, largest))  # The sum at the largest score - 1 is at least 1.
    g = GROWTH / power
    level = maximum(level - slope * (raised - tau), 0.0)
    if KIND == SQUARES:
        remaining = level * level
        remaining = remaining * remaining
    else:
        remaining = tl.exp2(tl.log2(level) * (1 / g - 1))
    p, w = powers(maximum(tl.fma(x, factor, -raised[:, None]), 0.0), power, KIND)  # not clamped, to detect NaN
    total = tl.sum(p, 1) + level * remaining
    fall = power * tl.sum(w, 1) + slope * remaining / g
    level = tl.exp2(g * tl.log2(total))
    slope = tl.where(total == 0, 0.0, g * fall * level / total)
    return tl.where(level <= 1, raised, raised + (level - 1) / slope), tl.where(level <= 1, level, 1.0), slope, largest


@triton.jit
def refined(tau, lower, total, below, support, power, KIND: tl.constexpr):
    """Return the next threshold, and a lower bound on it.

    `total` and `below` are the sums of p and w of all keys at `tau`, and `support` is the number of keys above it. Newton's
    step on the norm ends below the threshold from either side. For alpha = 1.5, where `support` gives the norm's curvature, it
    is extended to Halley's step, whose error is of third order.
    """
    norm = root(total, power, KIND)
    step = tl.where(total == 0, lower - tau, (norm - 1) * below_power(norm, power, KIND) / below)
    lower = tl.where(tau + step > lower, tau + step, lower)
    if KIND == SQUARES:
        curvature = tl.where(total == 0, 0.0, support * norm / (below * below) - 1 / norm)
        step /= tl.maximum(1 - 0.5 * (norm - 1) * curvature, 0.25)
    return tl.where(tau + step < lower, lower, tau + step), lower


@triton.jit
def far(total, below, support, tolerance, KIND: tl.constexpr):
    """Return whether the sum at a threshold is too far from 1 for the step from there to be the last one; False for NaN.

    If many keys lie just above the threshold and a few far above it, the sum is close to 1 although the small weights still
    change by much, so the tolerance is stricter.
    """
    if KIND == SQUARES:
        tolerance = tl.where(total * support > 3 * below * below, tolerance / 16, tolerance)
    return tl.abs(total - 1) > tolerance
