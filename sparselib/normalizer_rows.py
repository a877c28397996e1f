"""Row-wise kernels of the normalisers and of their gradients, which write their result for rows ``[N, K]`` to `out`."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from sparselib.kernels.threshold import threshold

#: Elements per chunk on a CPU: a chunk of this size stays in the cache for several passes.
CACHE_ELEMENTS = 1 << 18
#: Rows with more keys are solved in float64: their weights differ by less than float32 resolves.
MOST_FLOAT32_KEYS = 1 << 14
#: Limit on Newton steps for alphas other than 1.5 and 2; rows of up to 512 keys take three to ten.
MOST_STEPS = 50
#: Where the derivative by alpha uses its series, ``z < SMALL``, this many terms give float64 precision.
SMALL, TERMS = 0.25, 11


def by_chunks(function: Callable[..., None], *tensors: Tensor) -> Tensor:
    """Apply a row-wise function to ``[..., K]`` and ``[..., 1]`` tensors; on a CPU, in chunks that fit in the cache."""
    first = tensors[0]
    if first.numel() == 0:
        return torch.empty_like(first)
    rows = [tensor.reshape(-1, tensor.shape[-1]) for tensor in tensors]
    output = torch.empty_like(rows[0])
    step = max(1, CACHE_ELEMENTS // first.shape[-1]) if first.device.type == "cpu" else len(output)
    for start in range(0, len(output), step):
        function(*(tensor[start : start + step] for tensor in rows), out=output[start : start + step])
    return output.reshape(first.shape)


def entmax15_rows(scores: Tensor, out: Tensor) -> None:
    u = _above_threshold(scores, 1.5, out)
    out.copy_(u.mul_(u)) if u is not out else u.mul_(u)


def _above_threshold(scores: Tensor, alpha: float, out: Tensor) -> Tensor:
    """Return ``((alpha - 1) * score - tau)_+`` of each row, computed in `out` if its dtype is the one of the computation."""
    if scores.shape[-1] > MOST_FLOAT32_KEYS:
        x = scores.double()
    else:
        x = scores.float() if scores.dtype in (torch.float16, torch.bfloat16) else scores
    # The factor is 0.5 for alpha = 1.5 and 1 for alpha = 2, so scaling is exact.
    x = (x - x.amax(-1, keepdim=True)).mul_(alpha - 1)
    u = out if out.dtype == x.dtype else torch.empty_like(x)
    threshold(x, alpha, u)
    return u


def entmax15_rows_backward(probabilities: Tensor, grad: Tensor, out: Tensor) -> None:
    """Write the Jacobian-vector product ``g * sqrt(p) - sqrt(p) * <g, sqrt(p)> / sum sqrt(p)`` of each row."""
    p = probabilities.float() if probabilities.dtype in (torch.float16, torch.bfloat16) else probabilities
    # sqrt(p) as rsqrt(p) * p: MKL's sqrt takes ten times as long where p is 0, and most entries are.
    root = p.clamp_min(torch.finfo(p.dtype).tiny).rsqrt_().mul_(p)
    product = grad.to(root.dtype) * root
    ratio = product.sum(-1, keepdim=True) / root.sum(-1, keepdim=True)
    if out.dtype == root.dtype:
        torch.addcmul(product, root, ratio, value=-1, out=out)
    else:
        out.copy_(product.addcmul_(root, ratio, value=-1))


def topk_rows(scores: Tensor, k: int, out: Tensor) -> None:
    smallest = scores.topk(k, dim=-1, sorted=False).values.amin(-1, keepdim=True)
    torch.softmax(scores.masked_fill(scores < smallest, -torch.inf), -1, out=out)


def softmax_rows_backward(probabilities: Tensor, grad: Tensor, out: Tensor) -> None:
    """Write the Jacobian-vector product ``p * (g - <g, p>)`` of each row; it is 0 at masked keys, where p is."""
    torch.ops.aten._softmax_backward_data.out(grad, probabilities, -1, probabilities.dtype, grad_input=out)


def sparsemax_rows(scores: Tensor, out: Tensor) -> None:
    u = _above_threshold(scores, 2, out)
    if u is not out:
        out.copy_(u)


def sparsemax_rows_backward(probabilities: Tensor, grad: Tensor, out: Tensor) -> None:
    """Write the Jacobian-vector product of each row: on the support, the gradient minus its mean there."""
    support = probabilities > 0
    mean = (grad * support).sum(-1, keepdim=True) / support.sum(-1, keepdim=True)
    out.copy_(torch.where(support, grad - mean, 0.0))


def alpha_rows(scores: Tensor, excess: Tensor, out: Tensor) -> None:
    """Write the alpha-entmax of each row for alphas from 1 to 2, given ``excess [N, 1] = alpha - 1``.

    With the maximum subtracted from the scores, the weights are ``p = (c + excess * x)_+ ** (1 / excess)``, and the largest
    one is ``c ** (1 / excess)``. So p is proportional to ``q = exp(log1p(excess / c * x) / excess)``, which keeps its digits
    as alpha approaches 1, where it becomes ``exp(x)``. The weights sum to one where ``c = sum(q) ** -excess``.
    """
    # The (1 / excess)-norm of the base is convex and rising in c, so Newton's iteration approaches c from above.
    x = scores - scores.amax(-1, keepdim=True)
    # At this excess, the weights are those of softmax to the last digit.
    excess = excess.clamp_min(1e-20)
    tiny, eps = torch.finfo(x.dtype).tiny, torch.finfo(x.dtype).eps
    # Half the logarithm below which a weight rounds to 0.
    lowest = math.log(tiny * eps) / 2 - 0.5
    c, base = torch.ones_like(excess), torch.empty_like(x)
    for _ in range(MOST_STEPS):
        torch.mul(x, excess / c, out=base).clamp_min_(-1)
        # The square of a root, because MKL's exp takes ten times as long where it underflows, and most entries are 0.
        torch.log1p(base, out=out).mul_(0.5 / excess).clamp_min_(lowest).exp_().square_()
        total = out.sum(-1, keepdim=True)
        slope = torch.div(out, base.add_(1).clamp_min_(tiny), out=base).sum(-1, keepdim=True)
        gap = c - total.pow(-excess)
        lower = c - total * gap / slope
        # From above, c only falls; a step back would be rounding. NaN ends the iteration, too.
        if not ((gap > 2 * eps * c) & (lower < c)).any():
            break
        c = torch.minimum(c, lower)
    out.div_(total)


def alpha_rows_backward(
    probabilities: Tensor, excess: Tensor, grad: Tensor, grad_excess: Tensor | None = None, *, out: Tensor
) -> None:
    """Write the gradients of scores and, to ``grad_excess [N, 1]``, of alphas (Correia et al. 2019, Propositions 1 and 2)."""
    logarithm = probabilities.clamp_min(torch.finfo(probabilities.dtype).tiny).log_()
    # p ** (1 - excess), but 0 where p is 0, at an excess of 1 too.
    slope = (logarithm * (1 - excess)).exp_().mul_(probabilities.sign())
    centred = grad - (grad * slope).sum(-1, keepdim=True) / slope.sum(-1, keepdim=True)
    torch.mul(centred, slope, out=out)
    if grad_excess is not None:
        weighted = centred.mul_(_fall(probabilities, logarithm, slope, excess))
        torch.sum(weighted, -1, keepdim=True, out=grad_excess).neg_()


def _fall(p: Tensor, logarithm: Tensor, slope: Tensor, excess: Tensor) -> Tensor:
    """Return the negative derivative of p by alpha at a fixed threshold: ``(p ** (1 - excess) - p * (1 + z)) / excess ** 2``.

    With ``z = -excess * log(p)``, this is ``p * log(p) ** 2 * (exp(z) - 1 - z) / z ** 2``. Its series replaces the difference
    where z is small, because the digits of the difference cancel.
    """
    z = logarithm * -excess
    series = torch.ones_like(z)
    for order in range(TERMS + 2, 2, -1):
        series.mul_(z).div_(order).add_(1)
    series.mul_(logarithm).mul_(logarithm).mul_(p).div_(2)
    difference = (slope - p.addcmul(p, z)) / (excess * excess)
    return torch.where(z < SMALL, series, difference)
