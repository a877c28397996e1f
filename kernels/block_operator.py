"""The attention as a PyTorch operator: a single node with a backward pass for autograd, ``torch.compile`` and export.

This module does not check arguments. It imports Triton only when the Triton backend runs.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from . import gather, support
from .block_mask import BlockMask
from .call_lists import listed, lists_of, rules_of, sizes_of, visits_of
from .registration import registered
from .ruled import RuledAttention
from .rules import MaskMod, ScoreMod
from .support_library import default_backend
from .threshold import SMALLEST_EXCESS
from .tile_sizes import alive_shape
from .tracing import is_traced

#: From q, k, v and scale to an output.
Twice = Callable[[Tensor, Tensor, Tensor, float], Tensor]
#: Entries of a mask that is written out for the support backend by default.
MOST_WRITTEN = 1 << 28


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    block_mask: BlockMask | None = None,
    *,
    alpha: float = 1.5,
    scale: float | None = None,
    causal: bool = False,
    lengths: Tensor | None = None,
    mask: Tensor | None = None,
    mask_mod: MaskMod | None = None,
    score_mod: ScoreMod | None = None,
    backend: str | None = None,
    precise: bool = False,
    twice: Twice | None = None,
) -> tuple[Tensor, Tensor]:
    """Compute :func:`sparselib.kernels.block_sparse_entmax_attention` without argument checks.

    Parameters
    ----------
    q, k, v, block_mask, alpha, scale, causal, lengths, mask_mod, score_mod, backend
        As for :func:`sparselib.kernels.block_sparse_entmax_attention`.
    mask : Bool Tensor ``[B or 1, H or 1, Q or 1, K or 1]``, optional
        True where a query may attend to a key, together with all other rules. Triton has no such masks, so PyTorch computes the
        call on a GPU.
    precise : bool
        Whether to compute thresholds of half precision inputs as accurately as for float32, which certificates require.
        Otherwise, Triton stops as soon as half precision rounds away the remaining error.
    twice : callable, optional
        From q, k, v and scale to the same output, twice differentiable, which gives the gradients if they are differentiated
        again. Without it, second derivatives raise an error.

    Returns
    -------
    output : Tensor ``[B, H, Q, E]``
        In the dtype of `q`, computed in float32 or better. Differentiable in `q`, `k` and `v`.
    tau : Tensor ``[B, H, Q]``
        Threshold of each query, infinite for a query with no allowed key. Without gradient.

    Raises
    ------
    ValueError
        If a score overflows (gather only; Triton returns NaN in that row), or if `backend` is ``"triton"``, the tensors are on
        a CPU and the kernels are not interpreted.
    """
    is_chosen, backend = backend is not None, backend or default_backend(q, alpha)
    lists, block = listed(block_mask)
    lengths = None if lengths is None else lengths.contiguous()
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    if scale <= 0:  # The kernels set a hidden key's product to -inf; only a positive scale keeps its score at -inf.
        q, scale = (-q, -scale) if scale < 0 else (0 * q, 1.0)
    alpha = 1.0 if alpha - 1 < SMALLEST_EXCESS else float(alpha)
    rules = rules_of(q, block_mask, mask_mod, score_mod)
    if rules and score_mod is None and backend == "support":
        written = rules.written_out(q, k, None if is_chosen else MOST_WRITTEN)
        if written is not None:
            mask, rules = written if mask is None else mask & written, None
    if rules:
        visits = visits_of(q, k, lists, lengths, block, causal, mask, rules)
        return RuledAttention.apply(q, k, v, visits, alpha, float(scale), *rules.read)
    if mask is not None and backend == "triton":
        backend = "gather"
    keep = torch.is_grad_enabled() and any(x.requires_grad for x in (q, k, v))
    numbers = (*block, alpha, float(scale), causal, backend, precise, keep)
    run = _operator if is_traced(q) else partial(_Attention.apply, twice)
    output, tau, _ = run(q, k, v, *lists, lengths, mask, *numbers)
    return output, tau


def _attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    counts: Tensor | None,
    indices: Tensor | None,
    full_counts: Tensor | None,
    full_indices: Tensor | None,
    lengths: Tensor | None,
    mask: Tensor | None,
    q_block: int,
    k_block: int,
    alpha: float,
    scale: float,
    causal: bool,
    backend: str,
    precise: bool,
    keep: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return output, tau, and the tensor that the backend saves for its backward pass.

    The gather backend saves tau's rounding error ``[B, H, Q]``, in the dtype of tau. The support backend also saves the keys
    with weight, if `keep` is True. The Triton backend saves int8 flags of the visited blocks.
    """
    rules = {"alpha": alpha, "scale": scale}
    if backend != "triton":
        visits = visits_of(
            q, k, (counts, indices, full_counts, full_indices), lengths, (q_block, k_block), causal, mask
        )
        if backend == "support":
            return support.forward(q, k, v, visits, keep=keep, **rules)
        return tuple(x.contiguous() for x in gather.forward(q, k, v, visits, **rules))
    lists = lists_of(q, k, (counts, indices, full_counts, full_indices), (q_block, k_block), causal)
    from . import triton_forward, triton_tiles

    triton_tiles.check_device(q)
    sizes = sizes_of(q, v, lists.block)
    return triton_forward.forward(q, k, v, lists, lengths, sizes, causal=causal, precise=precise, **rules)


def _gradients(
    grad: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    output: Tensor,
    tau: Tensor,
    kept: Tensor,
    counts: Tensor | None,
    indices: Tensor | None,
    full_counts: Tensor | None,
    full_indices: Tensor | None,
    lengths: Tensor | None,
    mask: Tensor | None,
    q_block: int,
    k_block: int,
    alpha: float,
    scale: float,
    causal: bool,
    backend: str,
    precise: bool,
    keep: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of q, k and v."""
    rules = {"alpha": alpha, "scale": scale}
    if backend != "triton":
        visits = visits_of(
            q, k, (counts, indices, full_counts, full_indices), lengths, (q_block, k_block), causal, mask
        )
        backward = support.backward if backend == "support" else gather.backward
        return tuple(x.contiguous() for x in backward(grad, q, k, v, tau, kept, visits, **rules))
    lists = lists_of(q, k, (counts, indices, full_counts, full_indices), (q_block, k_block), causal)
    from . import triton_backward

    saved = (x.contiguous() for x in (output, tau, kept))
    sizes = sizes_of(q, v, lists.block)
    return triton_backward.backward(grad, q, k, v, *saved, lists, lengths, sizes, causal=causal, **rules)


def _fake_attention(
    q, k, v, counts, indices, full_counts, full_indices, lengths, mask, q_block, k_block, alpha, scale, causal, backend, *_
):  # fmt: skip
    """Return empty outputs of the right shapes and dtypes, for ``torch.compile`` and export."""
    output = q.new_empty((*q.shape[:3], v.shape[-1]))
    tau = q.new_empty(q.shape[:3], dtype=torch.promote_types(q.dtype, torch.float32))
    if backend == "gather":
        return output, tau, torch.empty_like(tau)
    listed = [x.shape[-1] for x in (indices, full_indices) if x is not None]
    width = sum(listed) if listed else -(-k.shape[2] // k_block)
    alive = alive_shape(q.shape, width, sizes_of(q, v, (q_block, k_block)), alpha)
    return output, tau, q.new_empty(alive, dtype=torch.int8)


def _fake_gradients(grad, q, k, v, *_):
    """Return empty gradients of the right shapes and dtypes."""
    return tuple(x.new_empty(x.shape) for x in (q, k, v))


def _save(ctx, inputs, output) -> None:
    """Save inputs and outputs for the backward pass."""
    ctx.rules = inputs[9:]
    ctx.save_for_backward(*inputs[:3], *output, *inputs[3:9])
    ctx.mark_non_differentiable(*output[1:])
    ctx.set_materialize_grads(False)


def _differentiate(ctx, grad: Tensor | None, *_) -> tuple:
    """Return the gradients of all inputs, None for all but q, k and v."""
    if grad is None:  # No gradient reaches the output.
        return (None,) * (9 + len(ctx.rules))
    gradients = _backward_operator(grad, *ctx.saved_tensors, *ctx.rules)
    return *gradients, *[None] * (6 + len(ctx.rules))


class _Attention(torch.autograd.Function):
    """The operator and its gradients for eager calls.

    PyTorch's autograd for registered operators inspects the schema once per argument, which takes as long as a short attention.
    """

    @staticmethod
    def forward(ctx, twice: Twice | None, *inputs) -> tuple[Tensor, Tensor, Tensor]:
        output = _operator(*inputs)
        _save(ctx, inputs, output)
        ctx.twice = twice
        return output

    @staticmethod
    def backward(ctx, grad: Tensor | None, *others) -> tuple:
        # Gradients are recorded only to be differentiated again.
        if ctx.twice is None or grad is None or not torch.is_grad_enabled():
            return None, *_differentiate(ctx, grad, *others)
        inputs, scale = ctx.saved_tensors[:3], ctx.rules[3]
        own = [x for x, needed in zip(inputs, ctx.needs_input_grad[1:4], strict=True) if needed]
        gradients = iter(torch.autograd.grad(ctx.twice(*inputs, scale), own, grad, create_graph=True))
        found = [next(gradients) if needed else None for needed in ctx.needs_input_grad[1:4]]
        return None, *found, *[None] * (6 + len(ctx.rules))


def _raise_second_derivatives(ctx, *_) -> None:
    """Raise, because the backward pass itself is not differentiable."""
    raise NotImplementedError(
        "block-sparse entmax attention has no second derivatives; call autograd without create_graph=True"
    )


_operator = registered("block_sparse_entmax", _attention, _fake_attention, _differentiate, _save)
_backward_operator = registered("block_sparse_entmax_backward", _gradients, _fake_gradients, _raise_second_derivatives)
