"""Attention with an alpha that is learned, for all heads or for each one (Correia et al. 2019, Section 3)."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from . import gather
from .block_mask import BlockMask
from .block_operator import attend
from .call_lists import listed, rules_of, visits_of
from .rules import MaskMod, ScoreMod
from .visits import Visits


def attend_learned(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    block_mask: BlockMask | None,
    *,
    alpha: Tensor,
    scale: float | None,
    causal: bool,
    lengths: Tensor | None,
    mask_mod: MaskMod | None,
    score_mod: ScoreMod | None,
    backend: str | None,
) -> Tensor:
    """Compute attention whose alpha is a tensor: one number, or one for each head, with a gradient.

    Parameters
    ----------
    q, k, v, block_mask, scale, causal, lengths, mask_mod, score_mod, backend
        As for :func:`sparselib.kernels.block_sparse_entmax_attention`.
    alpha : Tensor ``[]``, ``[1]`` or ``[H]``
        Numbers from 1.01 to 2.

    Returns
    -------
    Tensor ``[B, H, Q, E]``
        In the dtype of `q`, differentiable in `q`, `k`, `v` and `alpha`.
    """
    rules = {"scale": scale, "causal": causal, "lengths": lengths, "backend": backend}
    if alpha.numel() == 1:
        return _attend(q, k, v, block_mask, alpha.reshape(()), mask_mod=mask_mod, score_mod=score_mod, **rules)
    group = q.shape[1] // k.shape[1]
    outputs = []
    for head, own_alpha in enumerate(alpha):
        own, shared = slice(head, head + 1), slice(head // group, head // group + 1)
        mask = None if block_mask is None else _mask_of_head(block_mask, head)
        mods = {"mask_mod": _of_head(mask_mod, head, 1), "score_mod": _of_head(score_mod, head, 2)}
        outputs.append(_attend(q[:, own], k[:, shared], v[:, shared], mask, own_alpha, **mods, **rules))
    return torch.cat(outputs, dim=1)


def _attend(
    q: Tensor, k: Tensor, v: Tensor, block_mask: BlockMask | None, alpha: Tensor, *, scale, mask_mod, score_mod, **rules
) -> Tensor:
    """Compute attention of heads that share an alpha, and add alpha's gradient."""
    mods = {"mask_mod": mask_mod, "score_mod": score_mod}
    output, _ = attend(q, k, v, block_mask, alpha=float(alpha.detach()), scale=scale, **mods, **rules)
    if not (alpha.requires_grad and torch.is_grad_enabled()):
        return output
    lists, block = listed(block_mask)
    visits = visits_of(q, k, lists, rules["lengths"], block, rules["causal"], rules=rules_of(q, block_mask, **mods))
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    return _AlphaGradient.apply(output, alpha, q.detach(), k.detach(), v.detach(), visits, scale)


def _of_head(rule: Callable | None, head: int, place: int) -> Callable | None:
    """Return a rule for a tensor that has one head only, whose number in the model is `head`."""
    if rule is None:
        return None
    return lambda *arguments: rule(*arguments[:place], arguments[place] + head, *arguments[place + 1 :])


def _mask_of_head(mask: BlockMask, head: int) -> BlockMask:
    """Return the blocks of one head."""
    own = slice(None) if mask.shape[1] == 1 else slice(head, head + 1)
    lists = [
        None if x is None else x[:, own]
        for x in (mask.kv_num_blocks, mask.kv_indices, mask.full_kv_num_blocks, mask.full_kv_indices)
    ]
    return BlockMask.unchecked(*lists[:2], mask.block_size, mask.length, *lists[2:], _of_head(mask.mask_mod, head, 1))


class _AlphaGradient(torch.autograd.Function):
    """Identity of the output, whose backward pass also returns the gradient of alpha.

    The gradient is computed by PyTorch on every device, from the scores of one chunk at a time.
    """

    @staticmethod
    def forward(ctx, output, alpha, q, k, v, visits: Visits, scale: float):
        ctx.save_for_backward(alpha, q, k, v)
        ctx.visits, ctx.scale = visits, scale
        return output.view_as(output)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        alpha, q, k, v = ctx.saved_tensors
        with torch.autocast(q.device.type, enabled=False):
            gradient = gather.alpha_gradient(grad, q, k, v, ctx.visits, alpha=float(alpha), scale=ctx.scale)
        return grad, gradient.to(alpha.dtype), None, None, None, None, None
