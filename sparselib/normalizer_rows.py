"""Row-wise kernels of the normalisers and of their gradients, which write their result for rows ``[N, K]`` to `out`."""

from collections.abc import Callable

import torch
from torch import Tensor

from sparselib.kernels.threshold import threshold

#: Elements per chunk on a CPU: a chunk of this size stays in the cache for several passes.
CACHE_ELEMENTS = 1 << 18
#: Limit on Newton steps for alphas other than 1.5 and 2; rows of up to 512 keys take three to ten.
MOST_STEPS = 50


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
    """Return ``((alpha - 1) * score - tau)_+`` of each row, computed in `out` if it is float32 or better."""
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


def alpha_rows(scores: Tensor, alpha: Tensor, out: Tensor) -> None:
    """Write the alpha-entmax ``p = ((alpha - 1) z - tau)_+ ** e``, ``e = 1 / (alpha - 1)``, for ``alpha [N, 1]`` in (1, 2)."""
    # The e-norm of the base is convex and falling in tau, so Newton's iteration approaches the threshold from below.
    x = (scores - scores.amax(-1, keepdim=True)).mul_(alpha - 1)
    exponent = 1 / (alpha - 1)
    tau = x.new_full((len(x), 1), -1.0)
    base, slope = torch.empty_like(x), torch.empty_like(x)
    tolerance = 8 * torch.finfo(x.dtype).eps
    for _ in range(MOST_STEPS):
        torch.sub(x, tau, out=base).relu_()
        torch.pow(base, exponent - 1, out=slope)
        torch.mul(base, slope, out=out)
        total, previous = out.sum(-1, keepdim=True), tau
        step = total * (1 - total.pow(1 - alpha)) / slope.sum(-1, keepdim=True)
        # From below, tau only rises; a step back would be rounding.
        tau = previous + step.clamp_min_(0)
        if ((total <= 1 + tolerance) | (tau <= previous)).all():
            break
    out.div_(total)


def alpha_rows_backward(probabilities: Tensor, alpha: Tensor, grad: Tensor, grad_alpha: Tensor, out: Tensor) -> None:
    """Write the gradients of scores and, to ``grad_alpha [N, 1]``, of alphas (Correia et al. 2019, Propositions 1 and 2)."""
    slope = probabilities.pow(2 - alpha)
    product = grad * slope
    mean = product.sum(-1, keepdim=True) / slope.sum(-1, keepdim=True)
    torch.addcmul(product, slope, mean, value=-1, out=out)
    logarithm = torch.xlogy(probabilities, probabilities)
    direct = (grad * probabilities).sum(-1, keepdim=True) - mean
    entropy = (grad * logarithm).sum(-1, keepdim=True) - mean * logarithm.sum(-1, keepdim=True)
    grad_alpha.copy_((direct / (alpha - 1) - entropy) / (alpha - 1))
