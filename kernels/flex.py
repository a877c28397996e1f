"""Conversion of block lists to FlexAttention masks."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.attention import flex_attention
from torch.nn.functional import pad

#: Function ``(b, h, q_idx, kv_idx) -> Bool``.
MaskMod = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


def of_full_blocks(
    counts: Tensor, indices: Tensor, visited: Tensor, block_size: tuple[int, int], length: tuple[int, int]
) -> flex_attention.BlockMask:
    """Return a FlexAttention mask that lists all blocks as *full*.

    Parameters
    ----------
    counts, indices : int32 Tensor ``[B, H, Q_blocks]``, ``[B, H, Q_blocks, W]``
        One list of blocks.
    visited : Bool Tensor ``[B, H, Q_blocks, KV_blocks]``
        The same blocks as a boolean tensor.
    block_size : tuple of int
        Queries and keys per block.
    length : tuple of int
        Number of queries and of keys.

    Returns
    -------
    torch.nn.attention.flex_attention.BlockMask
        The mask, with a ``mask_mod`` for uncompiled FlexAttention.
    """
    # FlexAttention infers the number of key blocks from the width of a row.
    indices = pad(indices, (0, visited.shape[-1] - indices.shape[-1]))
    return flex_attention.BlockMask.from_kv_blocks(
        torch.zeros_like(counts),
        torch.zeros_like(indices),
        counts,
        indices,
        BLOCK_SIZE=block_size,
        mask_mod=_block_lookup(visited, block_size),
        seq_lengths=length,
    )


def _block_lookup(visited: Tensor, block_size: tuple[int, int]) -> MaskMod:
    """Return a ``mask_mod`` that is True for pairs in a visited block."""
    q_block, k_block = block_size
    several_batches, several_heads = (size > 1 for size in visited.shape[:2])

    def mask_mod(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        batch, head = b if several_batches else 0 * b, h if several_heads else 0 * h
        return visited[batch, head, q_idx // q_block, kv_idx // k_block]

    return mask_mod
