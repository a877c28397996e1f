"""The attention as a PyTorch operator, so that autograd, torch.compile and export see one node with a backward pass.

Nothing here checks arguments. Triton is imported when its backend runs, and only then.
"""

import torch
from torch import Tensor

from . import gather
from .block_mask import BlockMask
from .lists import BlockLists, by_rows, concatenated, dense
from .registration import registered
from .tile_sizes import DENSE_BLOCK, TileSizes, alive_shape, tile_sizes
from .visits import Visits

#: Counts and indices of a mask's blocks and of its full ones, as far as there are any.
Listed = tuple[Tensor | None, Tensor | None, Tensor | None, Tensor | None]


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
    backend: str | None = None,
    precise: bool = False,
) -> tuple[Tensor, Tensor]:
    """What :func:`sparselib.kernels.block_sparse_entmax_attention` computes, with the same arguments, unchecked.

    Parameters
    ----------
    precise : bool
        Find thresholds of half precision as exactly as those of float32: what a certificate is built on. Triton otherwise stops
        where the output cannot tell the difference.

    Returns
    -------
    output ``[B, H, Q, E]``
        In the dtype of q; computed in float32 or better. Differentiable in q, k and v.
    tau ``[B, H, Q]``
        The threshold of each query, infinite if it sees no key; without gradient.

    Raises
    ------
    ValueError
        If a score overflows (gather: Triton's output is NaN there), or if tensors on CPU shall go to compiled Triton kernels.
    """
    if backend is None:
        backend = "triton" if q.is_cuda else "gather"
    lists = [] if block_mask is None else [x for listed in block_mask.lists() for x in listed]
    lists += [None] * (4 - len(lists))
    block = (DENSE_BLOCK, DENSE_BLOCK) if block_mask is None else block_mask.block_size
    lengths = None if lengths is None else lengths.contiguous()
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    if scale <= 0:  # the kernels want a positive one: a hidden key's product is -inf, and its score has to be
        q, scale = (-q, -scale) if scale < 0 else (0 * q, 1.0)
    numbers = (*block, float(alpha), float(scale), causal, backend, precise)
    run = _operator if torch.compiler.is_compiling() else _Attention.apply
    output, tau, _ = run(q, k, v, *lists, lengths, *numbers)
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
    q_block: int,
    k_block: int,
    alpha: float,
    scale: float,
    causal: bool,
    backend: str,
    precise: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Output, tau, and what the backend keeps for its backward pass.

    That is the rest of tau ``[B, H, Q]``, in the dtype of tau, for gather, and int8 flags of visited blocks for Triton.
    """
    rules = {"alpha": alpha, "scale": scale}
    if backend == "gather":
        visits = _visits(q, k, (counts, indices, full_counts, full_indices), lengths, (q_block, k_block), causal)
        return tuple(x.contiguous() for x in gather.forward(q, k, v, visits, **rules))
    lists = _lists(q, k, (counts, indices, full_counts, full_indices), (q_block, k_block), causal)
    from . import triton_forward, triton_tiles

    triton_tiles.check_device(q)
    sizes = _sizes(q, v, lists.block)
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
    q_block: int,
    k_block: int,
    alpha: float,
    scale: float,
    causal: bool,
    backend: str,
    precise: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of q, k and v."""
    rules = {"alpha": alpha, "scale": scale}
    if backend == "gather":
        visits = _visits(q, k, (counts, indices, full_counts, full_indices), lengths, (q_block, k_block), causal)
        return tuple(x.contiguous() for x in gather.backward(grad, q, k, v, tau, kept, visits, **rules))
    lists = _lists(q, k, (counts, indices, full_counts, full_indices), (q_block, k_block), causal)
    from . import triton_backward

    saved = (x.contiguous() for x in (output, tau, kept))
    sizes = _sizes(q, v, lists.block)
    return triton_backward.backward(grad, q, k, v, *saved, lists, lengths, sizes, causal=causal, **rules)


def _fake_attention(
    q, k, v, counts, indices, full_counts, full_indices, lengths, q_block, k_block, alpha, scale, causal, backend, precise
):  # fmt: skip
    output = q.new_empty((*q.shape[:3], v.shape[-1]))
    tau = q.new_empty(q.shape[:3], dtype=torch.promote_types(q.dtype, torch.float32))
    if backend == "gather":
        return output, tau, torch.empty_like(tau)
    listed = [x.shape[-1] for x in (indices, full_indices) if x is not None]
    width = sum(listed) if listed else -(-k.shape[2] // k_block)
    alive = alive_shape(q.shape, width, _sizes(q, v, (q_block, k_block)), alpha)
    return output, tau, q.new_empty(alive, dtype=torch.int8)


def _fake_gradients(grad, q, k, v, *_):
    return tuple(x.new_empty(x.shape) for x in (q, k, v))


def _save(ctx, inputs, output) -> None:
    q, k, v, *lists, lengths = inputs[:8]
    ctx.rules = inputs[8:]
    ctx.save_for_backward(q, k, v, *output, *lists, lengths)
    ctx.mark_non_differentiable(*output[1:])
    ctx.set_materialize_grads(False)


def _differentiate(ctx, grad: Tensor | None, *_) -> tuple:
    if grad is None:  # nothing that was computed from the output asks for gradients
        return (None,) * (8 + len(ctx.rules))
    gradients = _backward_operator(grad, *ctx.saved_tensors, *ctx.rules)
    return *gradients, *[None] * (5 + len(ctx.rules))


class _Attention(torch.autograd.Function):
    """The operator and its gradients as they are registered, for eager calls.

    The registered ones look at the operator's schema once for each of its arguments, which takes as long as a short attention.
    """

    @staticmethod
    def forward(ctx, *inputs) -> tuple[Tensor, Tensor, Tensor]:
        output = _operator(*inputs)
        _save(ctx, inputs, output)
        return output

    backward = staticmethod(_differentiate)


def _refuse(ctx, *_) -> None:
    raise NotImplementedError("block-sparse entmax attention has no second derivatives")


def _visits(q: Tensor, k: Tensor, listed: Listed, lengths: Tensor | None, block: tuple, causal: bool) -> Visits:
    pairs = _pairs(listed)
    visited = BlockLists(*concatenated(pairs), block) if pairs else None
    lengths = None if lengths is None else lengths.long().clamp(max=k.shape[2])  # nobody may have looked at them
    return Visits(*q.shape[:2], k.shape[1], (q.shape[2], k.shape[2]), visited, causal, lengths, q.device)


def _lists(q: Tensor, k: Tensor, listed: Listed, block: tuple[int, int], causal: bool) -> BlockLists:
    from . import triton_lists

    pairs = _pairs(listed)
    if not pairs:
        return dense((-(-q.shape[2] // block[0]), -(-k.shape[2] // block[1])), block[0], causal, q.device)
    lists, *full = (by_rows(*pair, block) for pair in pairs)
    return triton_lists.both_lists(lists, full[0] if full else None, causal) if causal or full else lists


def _pairs(listed: Listed) -> list[tuple[Tensor, Tensor]]:
    """Counts and indices of the lists that are given."""
    return [pair for pair in (listed[:2], listed[2:]) if pair[1] is not None]


def _sizes(q: Tensor, v: Tensor, block: tuple[int, int]) -> TileSizes:
    return tile_sizes(block, int(max(q.shape[-1], v.shape[-1])), q.dtype)


_operator = registered("block_sparse_entmax", _attention, _fake_attention, _differentiate, _save)
_backward_operator = registered("block_sparse_entmax_backward", _gradients, _fake_gradients, _refuse)
