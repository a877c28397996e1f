"""Attention over packed sequences of different lengths, in the format of FlashAttention's ``varlen`` functions."""

import torch
from torch import Tensor

from .attention import block_sparse_entmax_attention
from .block_mask import BlockMask
from .checks import check_integers, check_same_device
from .tracing import is_traced


def block_sparse_entmax_varlen(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    cu_seqlens: Tensor,
    block_mask: BlockMask | None = None,
    *,
    longest: int | None = None,
    alpha: float = 1.5,
    scale: float | Tensor | None = None,
    causal: bool = False,
    backend: str | None = None,
) -> Tensor:
    """Compute :func:`~sparselib.kernels.block_sparse_entmax_attention` within each of several packed sequences.

    Parameters
    ----------
    q, k, v : Tensor ``[total, H, D]``, ``[total, G, D]``, ``[total, G, E]``
        The tokens of all sequences, concatenated. G must divide H. Dtypes are as for the attention.
    cu_seqlens : int Tensor ``[B + 1]``
        Start of each sequence, and the total at the end. Sequence b has the tokens from ``cu_seqlens[b]`` to
        ``cu_seqlens[b + 1] - 1`` and may be empty.
    block_mask : BlockMask, optional
        Blocks to visit, of length `longest`. Positions count from the start of each sequence, and batch entries are sequences.
    longest : int, optional
        Length of the longest sequence, or more. By default, it is computed, for which a GPU must finish its work first.
    alpha, scale, causal, backend
        As for the attention.

    Returns
    -------
    Tensor ``[total, H, E]``
        In the dtype of `q`, differentiable in `q`, `k` and `v`.

    Raises
    ------
    ValueError
        If shapes, dtypes or devices do not match.
        If `cu_seqlens` does not rise from 0 to the total, or a sequence is longer than `longest` (CPU only; checking on a GPU
        would wait for it).
        If the attention raises it.

    Notes
    -----
    Sequences are copied into a padded tensor ``[B, longest, H, D]``. The attention computes nothing for padding, but memory
    grows with B times the longest length. If lengths differ a lot, group similar lengths into several calls.

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
            raise ValueError(
                f"`{name}` must have shape (total, heads, D) and the total of `q`, {q.shape[0]}, got shape {tuple(x.shape)}"
            )
    check_integers("cu_seqlens", cu_seqlens)
    if cu_seqlens.ndim != 1 or not len(cu_seqlens):
        raise ValueError(f"`cu_seqlens` must have shape (B + 1,), got {tuple(cu_seqlens.shape)}")
    check_same_device("cu_seqlens", cu_seqlens.device, q)
    lengths = cu_seqlens.diff()
    if longest is None:
        longest = int(lengths.max()) if len(lengths) else 0
    if not (is_traced(q) or q.is_cuda):
        _check_lengths(cu_seqlens, lengths, q, longest)
    positions = _padded_positions(cu_seqlens, len(q), longest)
    padded = [_unpacked(x, positions, len(lengths), longest) for x in (q, k, v)]
    rules = {"alpha": alpha, "scale": scale, "causal": causal, "lengths": lengths, "backend": backend}
    output = block_sparse_entmax_attention(*padded, block_mask, **rules)
    return output.transpose(1, 2).flatten(0, 1).index_select(0, positions)


def _check_lengths(cu_seqlens: Tensor, lengths: Tensor, q: Tensor, longest: int) -> None:
    """Check that the sequences cover all tokens and are not longer than `longest`."""
    if cu_seqlens[0] != 0 or cu_seqlens[-1] != len(q) or (lengths < 0).any():
        raise ValueError(f"`cu_seqlens` must rise from 0 to {len(q)}, the tokens of `q`, got {cu_seqlens.tolist()}")
    if (lengths > longest).any():
        raise ValueError(f"`longest` must be at least {lengths.max()}, the longest sequence, got {longest}")


def _padded_positions(cu_seqlens: Tensor, total: int, longest: int) -> Tensor:
    """Return each token's position in the padded batch, ``int64 [total]`` from 0 to ``B * longest - 1``."""
    token = torch.arange(total, device=cu_seqlens.device)
    sequence = torch.searchsorted(cu_seqlens[1:].contiguous(), token.to(cu_seqlens.dtype), right=True)
    return sequence * longest + token - cu_seqlens[:-1].index_select(0, sequence)


def _unpacked(x: Tensor, positions: Tensor, batch: int, longest: int) -> Tensor:
    """Copy ``[total, H, D]`` into ``[B, H, longest, D]``, with zeros behind each sequence."""
    zeros = x.new_zeros((batch * longest, *x.shape[1:]))
    return zeros.index_copy_(0, positions, x).unflatten(0, (batch, longest)).transpose(1, 2)
