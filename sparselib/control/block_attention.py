"""Block-sparse attention of one layer, under any mask and any scoring without sinks."""

import torch
from torch import Tensor

from sparselib.dense_attention import Scoring
from sparselib.kernels import BlockMask, block_sparse_entmax_attention, block_sparse_entmax_decode
from sparselib.masks.pattern import looked_up
from sparselib.masks.visible import Description

#: More new tokens are a part of a prompt, whose scores the decoding kernel would all keep in memory.
MOST_NEW_TOKENS = 16


def attend_to_blocks(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    blocks: BlockMask | None,
    visible: Tensor | None,
    description: Description,
    scoring: Scoring,
    alpha: float,
    is_cross: bool,
) -> Tensor:
    """Return the output over some blocks under the model's mask, which is described.

    Masks that are neither causal nor of padding on the right, soft caps and biases are token-level rules. PyTorch computes
    these on every device. The newest tokens of a cache are decoded.
    """
    causal, lengths, rule, _ = description
    is_ruled = scoring.score_mod is not None or (blocks is not None and blocks.mask_mod is not None)
    newest = description.newest or (visible is None and q.shape[2] == 1)
    if newest and not is_ruled and _can_decode(q, k, v, blocks):
        lengths = None if lengths is None else lengths.expand(len(q))
        return block_sparse_entmax_decode(q, k, v, blocks, alpha=alpha, scale=scoring.scale, lengths=lengths)
    # The kernel's lengths hide queries, too, but padding of a source does not.
    if is_cross and lengths is not None and rule is None:
        if not is_ruled:
            return _attend_to_real_keys(q, k, v, blocks, lengths.expand(len(q)), alpha, scoring.scale)
        rule = looked_up(visible)
    if rule is not None:
        causal, lengths, is_ruled = False, None, True
    rules = {"causal": causal, "lengths": lengths, "mask_mod": rule, "score_mod": scoring.score_mod}
    backend = "gather" if is_ruled else None
    return block_sparse_entmax_attention(q, k, v, blocks, alpha=alpha, scale=scoring.scale, backend=backend, **rules)


def _can_decode(q: Tensor, k: Tensor, v: Tensor, blocks: BlockMask | None) -> bool:
    """Return whether the decoding kernel takes these tensors and blocks.

    It takes few queries and no gradients, and on a GPU no lists for query heads.
    """
    if q.shape[2] > MOST_NEW_TOKENS or (torch.is_grad_enabled() and any(x.requires_grad for x in (q, k, v))):
        return False
    return blocks is None or (blocks.blocks[0] == 1 and (not q.is_cuda or blocks.shape[1] in (1, k.shape[1])))


def _attend_to_real_keys(
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
