"""alpha-entmax of rows, each with an alpha of its own between 1 and 2: what ``sparselib.normalizers.entmax`` computes with."""

import torch
from torch import Tensor

#: An upper bound for Newton's steps; rows of up to 512 keys take three to ten.
MOST_STEPS = 50


def alpha_rows(scores: Tensor, alpha: Tensor, out: Tensor) -> None:
    """Write the alpha-entmax of each row of ``scores [N, K]``, with its ``alpha [N, 1]`` in (1, 2), to ``out``.

    ``p = ((alpha - 1) z - tau)_+ ** e`` with ``e = 1 / (alpha - 1) > 1``. The e-norm of the base is convex in tau, falls, and
    is 1 at the threshold: so Newton's iteration on it approaches tau from below, where bisection takes a step per bit.
    """
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
        # From below, tau only climbs; a step back is rounding, and would be undone by the next.
        tau = previous + step.clamp_min_(0)
        if ((total <= 1 + tolerance) | (tau <= previous)).all():
            break
    out.div_(total)


def alpha_rows_backward(probabilities: Tensor, alpha: Tensor, grad: Tensor, grad_alpha: Tensor, out: Tensor) -> None:
    """Gradients of :func:`alpha_rows` (Correia et al. 2019, Propositions 1 and 2): of the scores to ``out [N, K]``, of the
    alphas to ``grad_alpha [N, 1]``.
    """
    slope = probabilities.pow(2 - alpha)
    product = grad * slope
    mean = product.sum(-1, keepdim=True) / slope.sum(-1, keepdim=True)
    torch.addcmul(product, slope, mean, value=-1, out=out)
    logarithm = torch.xlogy(probabilities, probabilities)
    direct = (grad * probabilities).sum(-1, keepdim=True) - mean
    entropy = (grad * logarithm).sum(-1, keepdim=True) - mean * logarithm.sum(-1, keepdim=True)
    grad_alpha.copy_((direct / (alpha - 1) - entropy) / (alpha - 1))
