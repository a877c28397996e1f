"""Attention under token-level rules: the gather backend as a PyTorch function, because operators take no callables."""

import torch
from torch.autograd.function import once_differentiable

from . import gather
from .rules import ScoreGradients


class RuledAttention(torch.autograd.Function):
    """Output and tau of :func:`gather.forward`; the output has gradients for the tensors that rules read, too."""

    @staticmethod
    def forward(ctx, q, k, v, visits, alpha, scale, *read):
        with torch.autocast(q.device.type, enabled=False):
            output, tau, rest = (x.contiguous() for x in gather.forward(q, k, v, visits, alpha=alpha, scale=scale))
        ctx.save_for_backward(q, k, v, tau, rest, *read)
        ctx.visits, ctx.factors = visits, {"alpha": alpha, "scale": scale}
        ctx.mark_non_differentiable(tau)
        return output, tau

    @staticmethod
    @once_differentiable
    def backward(ctx, grad, _):
        q, k, v, tau, rest, *read = ctx.saved_tensors
        through = ScoreGradients(ctx.visits.rules, read) if ctx.visits.rules.score_mod else None
        with torch.autocast(q.device.type, enabled=False):
            gradients = gather.backward(grad, q, k, v, tau, rest, ctx.visits, through, **ctx.factors)
        return *gradients, None, None, None, *(through.totals if through else ())
