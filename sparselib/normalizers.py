"""Sparse normalisers: exact, fast and differentiable maps from scores to distributions over the last axis.

All of them take scores of any shape ``[..., K]`` in which some, but not all, entries of a row may be ``-inf`` (masked), and
return probabilities of the same shape and dtype. Rows without any finite score are the business of
:func:`sparselib.dense_attention.attention`; here they raise no error and give NaN.
"""

from functools import partial

import torch
from torch import Tensor

from sparselib.normalizer_rows import alpha_rows, alpha_rows_backward

#: Elements per chunk on CPU: several passes over a chunk of this size stay in the cache.
CACHE_ELEMENTS = 1 << 18
#: Newton steps before the closed form. Rows that are not settled by then are rare, and are solved by sorting.
NEWTON_STEPS = 4


def entmax15(scores: Tensor) -> Tensor:
    """1.5-entmax, exactly: ``p = (scores / 2 - tau)_+ ** 2`` with ``tau`` such that every row sums to one.

    Instead of sorting (Peters et al. 2019, Alg. 2), Newton's iteration approaches ``tau`` from below: ``||(x - tau)_+||`` is
    convex, falls, and is straight while the support does not change. The closed form on the support that it has found ends
    it, and counts only if that support is its own fixed point; otherwise the row is solved by sorting. So the support
    equals the one that sorting finds.

    Parameters
    ----------
    scores : Tensor ``[..., K]``
        Floating point. Half precision is computed in float32.
    """
    return _Entmax15.apply(scores)


def sparsemax(scores: Tensor) -> Tensor:
    """Sparsemax (Martins & Astudillo 2016), the Euclidean projection of ``scores [..., K]`` onto the simplex, exactly.

    Newton's iteration on the piecewise linear equation from below reaches ``tau`` in a finite number of steps.
    """
    return _Sparsemax.apply(scores)


def entmax(scores: Tensor, alpha: float | Tensor) -> Tensor:
    """alpha-entmax (Peters et al. 2019, Eq. 2 of the Sparsefinder paper) of ``scores [..., K]`` for ``alpha >= 1``.

    Parameters
    ----------
    alpha : float or Tensor
        1 is softmax; 1.5 and 2 take their exact algorithms. Others, and tensors (one alpha per head, say, of a shape that
        broadcasts to ``[..., 1]``), are solved by Newton's iteration up to 2, with a gradient for ``alpha`` too, and beyond
        it, where the equation is not convex, by the ``entmax`` package's bisection.

    Raises
    ------
    ValueError
        If an alpha is below 1, or one of a tensor is 1.
    """
    if not isinstance(alpha, Tensor):
        if alpha < 1:
            raise ValueError(f"alpha: {alpha} is below 1, where alpha-entmax is not defined here")
        if exact := {1: partial(torch.softmax, dim=-1), 1.5: entmax15, 2: sparsemax}.get(alpha):
            return exact(scores)
    elif (alpha.detach() <= 1).any():
        raise ValueError("alpha: a tensor of alphas must be above 1 everywhere; for learned ones use 1 + sigmoid(x)")
    # In float32 or better, and away from large scores, where steps towards the threshold would be lost.
    x = scores.float() if scores.dtype in (torch.float16, torch.bfloat16) else scores
    x = x - x.detach().amax(-1, keepdim=True)
    alpha = torch.as_tensor(alpha, dtype=x.dtype, device=x.device)
    if (alpha.detach() < 2).all():
        probabilities = _Entmax.apply(x, alpha.expand(*x.shape[:-1], 1))
    else:
        from entmax import entmax_bisect

        probabilities = entmax_bisect(x, alpha, dim=-1)
    return probabilities.to(scores.dtype)


def topk_softmax(scores: Tensor, k: int) -> Tensor:
    """Softmax over the k largest scores of each row of ``scores [..., K]`` (Explicit Sparse Transformer, Eq. 3-4).

    Ties with the k-th largest score are kept, and the threshold is a constant for the gradient. A ``k`` beyond the row keeps
    every finite score.

    Raises
    ------
    ValueError
        If ``k`` is below 1.
    """
    if k < 1:
        raise ValueError(f"k: {k} is below 1")
    if k >= scores.shape[-1]:
        return scores.softmax(-1)
    return _TopKSoftmax.apply(scores, k)


def alpha_of(normalizer: object) -> float:
    """The alpha whose alpha-entmax a normaliser is: 1.5 for ``entmax15``, 1 for ``partial(torch.softmax, dim=-1)``.

    Raises
    ------
    ValueError
        If it is none of ``entmax15``, ``sparsemax``, ``partial(entmax, alpha=number)`` and softmax.
    """
    if normalizer in (entmax15, sparsemax):
        return 1.5 if normalizer is entmax15 else 2.0
    if isinstance(normalizer, partial) and normalizer.func is torch.softmax:
        return 1.0
    if isinstance(normalizer, partial) and normalizer.func is entmax:
        alpha = normalizer.args[0] if normalizer.args else normalizer.keywords.get("alpha")
        if isinstance(alpha, int | float):
            return float(alpha)
    raise ValueError(f"normalizer: {normalizer} is no alpha-entmax of one alpha, which block-sparse attention needs")


class _Entmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores: Tensor, alpha: Tensor) -> Tensor:
        probabilities = _by_chunks(alpha_rows, scores, alpha)
        ctx.save_for_backward(probabilities, alpha)
        return probabilities

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, Tensor]:
        probabilities, alpha = ctx.saved_tensors
        grad_alpha = torch.empty(alpha.shape, dtype=alpha.dtype, device=alpha.device)
        return _by_chunks(alpha_rows_backward, probabilities, alpha, grad, grad_alpha), grad_alpha


class _TopKSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores: Tensor, k: int) -> Tensor:
        probabilities = _by_chunks(partial(_topk_rows, k=k), scores)
        ctx.save_for_backward(probabilities)
        return probabilities

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None]:
        (probabilities,) = ctx.saved_tensors
        return _by_chunks(_softmax_rows_backward, probabilities, grad), None


class _Entmax15(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores: Tensor) -> Tensor:
        probabilities = _by_chunks(_entmax15_rows, scores)
        ctx.save_for_backward(probabilities)
        return probabilities

    @staticmethod
    def backward(ctx, grad: Tensor) -> Tensor:
        (probabilities,) = ctx.saved_tensors
        return _by_chunks(_entmax15_rows_backward, probabilities, grad)


class _Sparsemax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores: Tensor) -> Tensor:
        probabilities = _by_chunks(_sparsemax_rows, scores)
        ctx.save_for_backward(probabilities)
        return probabilities

    @staticmethod
    def backward(ctx, grad: Tensor) -> Tensor:
        (probabilities,) = ctx.saved_tensors
        support = probabilities > 0
        mean = (grad * support).sum(-1, keepdim=True) / support.sum(-1, keepdim=True)
        return torch.where(support, grad - mean, 0.0)


def _by_chunks(function, *tensors: Tensor) -> Tensor:
    """Apply a row-wise function to ``[..., K]`` and ``[..., 1]`` tensors, on CPU a cacheful of rows at a time."""
    first = tensors[0]
    if first.numel() == 0:
        return torch.empty_like(first)
    rows = [tensor.reshape(-1, tensor.shape[-1]) for tensor in tensors]
    output = torch.empty_like(rows[0])
    step = max(1, CACHE_ELEMENTS // first.shape[-1]) if first.device.type == "cpu" else len(output)
    for start in range(0, len(output), step):
        function(*(tensor[start : start + step] for tensor in rows), out=output[start : start + step])
    return output.reshape(first.shape)


def _entmax15_rows(scores: Tensor, out: Tensor) -> None:
    """Write the 1.5-entmax of each row of ``scores [N, K]`` to ``out``."""
    x = scores.float() if scores.dtype in (torch.float16, torch.bfloat16) else scores
    x = (x - x.amax(-1, keepdim=True)).mul_(0.5)
    u = out if out.dtype == x.dtype else torch.empty_like(x)
    tau = -1.0
    for _ in range(NEWTON_STEPS):
        torch.sub(x, tau, out=u).relu_()
        norm = torch.linalg.vector_norm(u, dim=-1, keepdim=True)
        tau = tau + norm * (norm - 1) / u.sum(-1, keepdim=True)
    # On a known support, sum u^2 is a parabola in tau: its smaller root is the exact threshold.
    torch.sub(x, tau, out=u).relu_()
    first = u.sum(-1, keepdim=True)
    excess = torch.linalg.vector_norm(u, dim=-1, keepdim=True).square_() - 1
    size = u.sign_().sum(-1, keepdim=True)
    tau = tau + (first - (first * first - size * excess).clamp_min_(0).sqrt_()) / size
    torch.sub(x, tau, out=u).relu_()
    # The supports of two thresholds are nested, so equal sizes mean equal supports: then tau is exact.
    settled = torch.sign(u).sum(-1, keepdim=True) == size
    if not settled.all():
        rows = (~settled.squeeze(-1)).nonzero().squeeze(-1)
        u[rows] = (x[rows] - _entmax15_threshold_by_sorting(x[rows])).relu_()
    out.copy_(u.mul_(u)) if u is not out else u.mul_(u)


def _entmax15_threshold_by_sorting(x: Tensor) -> Tensor:
    """The threshold of each row of ``x [N, K]`` (scores halved) by the sorting algorithm, in float64, as ``[N, 1]``."""
    ordered = x.double().sort(-1, descending=True).values
    size = torch.arange(1, x.shape[-1] + 1, dtype=torch.float64, device=x.device)
    mean = ordered.cumsum(-1) / size
    spread = ((ordered * ordered).cumsum(-1) - size * mean * mean).clamp_min(0)
    thresholds = mean - ((1 - spread) / size).clamp_min(0).sqrt()
    support = ((thresholds <= ordered) & ordered.isfinite()).sum(-1, keepdim=True).clamp_min(1)
    return thresholds.gather(-1, support - 1).to(x.dtype)


def _entmax15_rows_backward(probabilities: Tensor, grad: Tensor, out: Tensor) -> None:
    """Jacobian-vector product ``g * sqrt(p) - sqrt(p) * <g, sqrt(p)> / sum sqrt(p)`` of each row ``[N, K]``."""
    p = probabilities.float() if probabilities.dtype in (torch.float16, torch.bfloat16) else probabilities
    # sqrt(p): MKL's takes ten times as long where p is 0, which it mostly is.
    root = p.clamp_min(torch.finfo(p.dtype).tiny).rsqrt_().mul_(p)
    product = grad.to(root.dtype) * root
    ratio = product.sum(-1, keepdim=True) / root.sum(-1, keepdim=True)
    if out.dtype == root.dtype:
        torch.addcmul(product, root, ratio, value=-1, out=out)
    else:
        out.copy_(product.addcmul_(root, ratio, value=-1))


def _topk_rows(scores: Tensor, k: int, out: Tensor) -> None:
    """Write the softmax over the k largest of each row of ``scores [N, K]`` to ``out``."""
    threshold = scores.topk(k, dim=-1, sorted=False).values.amin(-1, keepdim=True)
    torch.softmax(scores.masked_fill(scores < threshold, -torch.inf), -1, out=out)


def _softmax_rows_backward(probabilities: Tensor, grad: Tensor, out: Tensor) -> None:
    """Jacobian-vector product ``p * (g - <g, p>)`` of each row ``[N, K]``; 0 where p is, so the masked need no care."""
    torch.ops.aten._softmax_backward_data.out(grad, probabilities, -1, probabilities.dtype, grad_input=out)


def _sparsemax_rows(scores: Tensor, out: Tensor) -> None:
    """Write the sparsemax of each row of ``scores [N, K]`` to ``out``."""
    x = scores.float() if scores.dtype in (torch.float16, torch.bfloat16) else scores
    x = x - x.amax(-1, keepdim=True)
    tau, size = x.new_full((len(x), 1), -1.0), None
    # The support shrinks at every step but the last, so K + 1 steps are an upper bound; a handful is usual.
    for _ in range(x.shape[-1] + 1):
        support = x > tau
        previous, size = size, support.sum(-1, keepdim=True)
        if previous is not None and torch.equal(previous, size):
            break
        tau = (torch.where(support, x, 0.0).sum(-1, keepdim=True) - 1) / size
    out.copy_((x - tau).clamp_min_(0))
