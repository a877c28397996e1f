"""Exact alpha-entmax attention on its support, and softmax, on a CPU, in C++ (``support.cpp``).

The threshold of some keys is a lower bound of the threshold of all. The forward pass compares each score once with the bound of
its row. Everything after the scores, the whole backward pass included, runs over the few keys that are above it. Where many
are, 32 rows at a time keep all their scores. A call is one parallel region, and its memory is proportional to the inputs.
"""

import ctypes

import torch
from torch import Tensor
from torch.nn.functional import pad

from . import gather
from .lists import broadcast_strides
from .support_library import Problem, Strides, library
from .visits import Visits

#: Widths are filled up to a multiple of this number, the lanes of the widest vector.
LANES = 16
#: Rows of a tile.
ROWS = 32


def forward(
    q: Tensor, k: Tensor, v: Tensor, visits: Visits, *, alpha: float, scale: float, keep: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the forward pass.

    Parameters
    ----------
    q, k, v, visits, alpha, scale
        As for :func:`sparselib.kernels.gather.forward`; alpha is 1 or at least 1.01, and there are no rules.
    keep : bool
        Whether to return what :func:`backward` needs.

    Returns
    -------
    output, tau : Tensor
        As from :func:`sparselib.kernels.gather.forward`.
    kept : int32 Tensor ``[*]``
        Bits of tau's rounding errors ``[B, H, Q]`` and, if `keep` is True and all numbers are finite, the number of keys that
        each row keeps or a code, these keys, and the bits of their scores above the threshold.

    Raises
    ------
    ValueError
        If a score overflows.
    """
    x = [_prepared(x) for x in (q, k, v)]
    problem, _held = _problem(*x, visits, alpha, scale)
    output = x[0].new_empty((*q.shape[:3], x[2].shape[-1]))
    tau, rest = (x[0].new_empty(q.shape[:3]) for _ in range(2))
    compiled, problem.keep = library(), keep
    counts = torch.zeros(tau.numel() if keep else 0, dtype=torch.int32)
    memory = torch.zeros(compiled.support_tiles(ctypes.byref(problem)) if keep else 0, dtype=torch.int64)
    _point(problem, output=output, tau=tau, rest=rest, kept=counts, memory=memory)
    if compiled.support_forward(ctypes.byref(problem)):
        compiled.support_free(ctypes.byref(problem))
        # Gather names the score that overflows, or returns what NaN and infinite entries give.
        output, tau, rest = (x.contiguous() for x in gather.forward(q, k, v, visits, alpha=alpha, scale=scale))
        return output, tau, rest.flatten().view(torch.int32)
    count = int(counts.clamp(min=0).sum())
    kept = counts.new_empty(tau.numel() + counts.numel() + 2 * count)
    first, second, *lists = kept.split([tau.numel(), counts.numel(), count, count])
    first.copy_(rest.flatten().view(torch.int32))
    second.copy_(counts)
    if keep:
        _point(problem, kept_j=lists[0], kept_u=lists[1])
        compiled.support_collect(ctypes.byref(problem))
    return output[..., : v.shape[-1]].to(q.dtype).contiguous(), tau, kept


def backward(
    grad: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    tau: Tensor,
    kept: Tensor,
    visits: Visits,
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
    tau, kept : Tensor
        As returned by :func:`forward`.

    Returns
    -------
    dq, dk, dv : Tensor
        Gradients in the shapes and dtype of `q`, `k` and `v`.
    """
    rows = tau.numel()
    rest = kept[:rows]
    if kept.numel() >= 2 * rows:
        counts, lists = kept[rows : 2 * rows], kept[2 * rows :]
        x = [_prepared(x) for x in (q, k, v, grad)]
        problem, _held = _problem(*x[:3], visits, alpha, scale)
        dq, (dk, dv) = x[0].new_empty(x[0].shape), (t.new_zeros(problem.parts, *t.shape) for t in x[1:3])
        half = lists.numel() // 2
        problem.grad_strides = Strides(*x[3].stride()[:3])
        _point(problem, grad=x[3], tau=tau, rest=rest, kept=counts, kept_j=lists[:half], kept_u=lists[half:])
        _point(problem, dq=dq, dk=dk, dv=dv)
        if not library().support_backward(ctypes.byref(problem)):
            dk, dv = (t[0] if problem.parts == 1 else t.sum(0) for t in (dk, dv))
            return tuple(t[..., : like.shape[-1]].to(like.dtype) for t, like in ((dq, q), (dk, k), (dv, v)))
    rest = rest.view(torch.float32).view(tau.shape)
    return gather.backward(grad, q, k, v, tau, rest, visits, alpha=alpha, scale=scale)


def _prepared(x: Tensor) -> Tensor:
    """Return ``x [B, H, n, D]`` in float32 with adjacent numbers in its rows, and zeros up to a multiple of LANES."""
    x = x.detach().float()
    missing = -x.shape[-1] % LANES
    if missing:
        return pad(x, (0, missing))
    return x if x.stride(-1) == 1 else x.contiguous()


def _point(problem: Problem, **tensors: Tensor) -> None:
    """Set fields to the addresses of tensors."""
    for name, x in tensors.items():
        setattr(problem, name, x.data_ptr())


def _problem(
    q: Tensor, k: Tensor, v: Tensor, visits: Visits, alpha: float, scale: float
) -> tuple[Problem, list[Tensor]]:
    """Return the struct of an attention, and the tensors that only it points to."""
    problem, held = Problem(), []
    _point(problem, q=q, k=k, v=v)
    problem.q_strides, problem.k_strides, problem.v_strides = (Strides(*x.stride()[:3]) for x in (q, k, v))
    problem.batch, problem.heads, problem.queries, problem.width = q.shape
    problem.kv_heads, problem.keys, problem.value_width = v.shape[1:]
    problem.q_block = problem.k_block = ROWS
    if visits.visited is not None:
        counts, indices = held = [x.contiguous() for x in (visits.visited.counts, visits.visited.indices)]
        _point(problem, counts=counts, indices=indices)
        problem.counts_batch, problem.counts_head = broadcast_strides(counts)
        problem.list_width = indices.shape[-1]
        problem.q_block, problem.k_block = visits.block
    if visits.lengths is not None:
        held.append(lengths := visits.lengths.contiguous())
        _point(problem, lengths=lengths)
    if visits.mask is not None:
        mask = visits.mask.expand(*q.shape[:3], k.shape[2])
        held.append(mask := mask if mask.stride(-1) == 1 else mask.contiguous())
        _point(problem, mask=mask)
        problem.mask_strides = Strides(*mask.stride()[:3])
    problem.causal, problem.threads = visits.causal, torch.get_num_threads()
    # If there are too few key heads for all threads, each part of the queries adds to gradients of its own.
    heads = problem.batch * problem.kv_heads
    problem.parts = 1 if heads % problem.threads == 0 or heads >= 8 * problem.threads else problem.threads
    excess = alpha - 1 or 1.0
    problem.power, problem.factor, problem.scale = 0.0 if alpha == 1 else 1 / excess, scale * excess, scale
    return problem, held
