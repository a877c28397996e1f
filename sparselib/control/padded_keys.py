"""Block-sparse cross-attention to a padded source, whose queries are not padded."""

import torch
from torch import Tensor

from sparselib.kernels import BlockMask, block_sparse_entmax_attention


def attend_to_real_keys(
    q: Tensor, k: Tensor, v: Tensor, mask: BlockMask | None, lengths: Tensor, alpha: float, scale: float | None
) -> Tensor:
    """Return the output of all queries over the first ``lengths [B]`` keys, with one kernel call per different length."""
    parts, order = [], []
    for length in lengths.unique().tolist():
        rows = (lengths == length).nonzero()[:, 0]
        keys = max(length, 1)
        part = block_sparse_entmax_attention(
            q[rows],
            k[rows, :, :keys],
            v[rows, :, :keys],
            None if mask is None else _first_keys(mask, rows, keys),
            alpha=alpha,
            scale=scale,
        )
        parts.append(part if length else torch.zeros_like(part))
        order.append(rows)
    return torch.cat(parts)[torch.cat(order).argsort()]


def _first_keys(mask: BlockMask, rows: Tensor, keys: int) -> BlockMask:
    """Return the block mask of some of the batch's sequences over the first keys."""
    dense = mask.to_dense()
    dense = dense[..., : -(-keys // mask.block_size[1])]
    return BlockMask.from_dense(dense if len(dense) == 1 else dense[rows], mask.block_size, (mask.length[0], keys))
