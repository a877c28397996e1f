"""Sequences of several lengths behind each other in one tensor, as FlashAttention's ``varlen`` functions take them."""

import torch
from torch import Tensor

from .attention import block_sparse_entmax_attention
from .block_mask import BlockMask
from .checks import fail_shapes


def block_sparse_entmax_varlen(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    cu_seqlens: Tensor,
    block_mask: BlockMask | None = None,
    *,
    longest: int | None = None,
    alpha: float = 1.5,
    scale: float | None = None,
    causal: bool = False,
    backend: str | None = None,
) -> Tensor:
    """:func:`~sparselib.kernels.block_sparse_entmax_attention` within each of several packed sequences.

    Parameters
    ----------
    q, k, v : Tensor ``[total, H, D]``, ``[total, G, D]``, ``[total, G, E]``
        The tokens of all sequences behind each other. G divides H; dtypes as for the attention.
    cu_seqlens : int Tensor ``[B + 1]``
        Where sequences begin, and the total: the b-th has the tokens from ``cu_seqlens[b]`` to before ``cu_seqlens[b + 1]``,
        possibly none.
    block_mask : BlockMask, optional
        Blocks to visit, of length `longest`, and counted from the beginning of each sequence; its batch entries are sequences.
    longest : int, optional
        Tokens of the longest sequence, or more. Without it they are looked up, for which a GPU is waited for once.
    alpha, scale, causal, backend
        As for the attention.

    Returns
    -------
    Tensor ``[total, H, E]``
        In the dtype of q, and differentiable in q, k and v.

    Raises
    ------
    ValueError
        For shapes, dtypes or devices that do not fit; for `cu_seqlens` that do not rise from 0 to the total, or sequences above
        `longest` (on a CPU: a GPU is not waited for); and whatever the attention refuses.

    Notes
    -----
    Sequences are copied into a padded tensor ``[B, longest, H, D]`` and the output out of it. The attention computes nothing
    for padding, but memory is that of B sequences of the longest length: where they differ much, sort them into several calls.

    Examples
    --------
    >>> import torch
    >>> from sparselib.kernels import block_sparse_entmax_varlen
    >>> q = torch.randn(100, 2, 16)
    >>> block_sparse_entmax_varlen(q, q, q, torch.tensor([0, 60, 60, 100]), causal=True).shape
    torch.Size([100, 2, 16])
    """
    for name, x in (("q", q), ("k", k), ("v", v)):
        if x.ndim != 3 or x.shape[0] != q.shape[0]:
            fail_shapes(name, x.shape, "packed sequences", (q.shape[0], "H", "D"))
    _check_bounds(cu_seqlens, q)
    lengths = cu_seqlens.diff()
    if longest is None:
        longest = int(lengths.max()) if len(lengths) else 0
    if not (torch.compiler.is_compiling() or q.is_cuda):
        _check_lengths(cu_seqlens, lengths, q, longest)
    place = _places(cu_seqlens, len(q), longest)
    padded = [_unpacked(x, place, len(lengths), longest) for x in (q, k, v)]
    rules = {"alpha": alpha, "scale": scale, "causal": causal, "lengths": lengths, "backend": backend}
    output = block_sparse_entmax_attention(*padded, block_mask, **rules)
    return output.transpose(1, 2).flatten(0, 1).index_select(0, place)


def _check_bounds(cu_seqlens: Tensor, q: Tensor) -> None:
    if not isinstance(cu_seqlens, Tensor) or cu_seqlens.dtype not in (torch.int32, torch.int64):
        raise ValueError(
            f"cu_seqlens: int32 or int64 tensor expected, got {getattr(cu_seqlens, 'dtype', type(cu_seqlens))}"
        )
    if cu_seqlens.ndim != 1 or not len(cu_seqlens):
        fail_shapes("cu_seqlens", cu_seqlens.shape, "the bounds of B sequences", ("B + 1",))
    if cu_seqlens.device != q.device:
        raise ValueError(
            f"cu_seqlens: {tuple(cu_seqlens.shape)} on {cu_seqlens.device}, q: {tuple(q.shape)} on {q.device}"
        )


def _check_lengths(cu_seqlens: Tensor, lengths: Tensor, q: Tensor, longest: int) -> None:
    if cu_seqlens[0] != 0 or cu_seqlens[-1] != len(q) or (lengths < 0).any():
        raise ValueError(f"cu_seqlens: {cu_seqlens.tolist()} do not rise from 0 to the tokens of q {tuple(q.shape)}")
    if (lengths > longest).any():
        raise ValueError(f"longest: {longest}, but lengths are {lengths.tolist()}")


def _places(cu_seqlens: Tensor, total: int, longest: int) -> Tensor:
    """``int64 [total]``: where each token is among B times `longest`."""
    token = torch.arange(total, device=cu_seqlens.device)
    sequence = torch.searchsorted(cu_seqlens[1:].contiguous(), token.to(cu_seqlens.dtype), right=True)
    return sequence * longest + token - cu_seqlens[:-1].index_select(0, sequence)


def _unpacked(x: Tensor, place: Tensor, batch: int, longest: int) -> Tensor:
    """``[total, H, D]`` as ``[B, H, longest, D]``, 0 behind each sequence."""
    empty = x.new_zeros((batch * longest, *x.shape[1:]))
    return empty.index_copy(0, place, x).unflatten(0, (batch, longest)).transpose(1, 2)
