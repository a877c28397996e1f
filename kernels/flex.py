"""Conversion of block lists to FlexAttention masks."""

import torch
from torch import Tensor
from torch.nn.attention import flex_attention
from torch.nn.functional import pad

from .rules import MaskMod


def of_blocks(
    counts: Tensor,
    indices: Tensor,
    visited: Tensor,
    block_size: tuple[int, int],
    length: tuple[int, int],
    rule: MaskMod | None,
) -> flex_attention.BlockMask:
    """Return a FlexAttention mask that lists all blocks as *full*, or as partial if there is a rule.

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
    rule : callable, optional
        Hides pairs inside the blocks.

    Returns
    -------
    torch.nn.attention.flex_attention.BlockMask
        The mask, with a ``mask_mod`` that uncompiled FlexAttention needs.
    """
    # FlexAttention infers the number of key blocks from the width of a row.
    indices = pad(indices, (0, visited.shape[-1] - indices.shape[-1]))
    listed, none = (counts, indices), (torch.zeros_like(counts), torch.zeros_like(indices))
    in_block = _block_lookup(visited, block_size)
    return flex_attention.BlockMask.from_kv_blocks(
        *(none + listed if rule is None else listed + none),
        BLOCK_SIZE=block_size,
        mask_mod=in_block if rule is None else flex_attention.and_masks(in_block, rule),
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
