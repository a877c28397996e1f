"""Block-sparse attention of one layer, under any mask and any scoring without sinks."""

import torch
from torch import Tensor

from sparselib.control.certified import uncertified
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
    certify: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Return the output over some blocks under the model's mask, which is described, and, to certify, its certified rows.

    Masks that are neither causal nor of padding on the right, soft caps and biases are token-level rules. On a GPU,
    PyTorch computes these. None of their rows is certified. The newest tokens of a cache are decoded. A certificate needs the
    attention's thresholds, so one newest token is then not decoded, and several are not certified.
    """
    causal, lengths, rule, _ = description
    is_ruled = scoring.score_mod is not None or (blocks is not None and blocks.mask_mod is not None)
    newest = not is_ruled and (description.newest or (visible is None and q.shape[2] == 1))
    # A prompt that fills an empty cache is causal over the cache's first keys.
    if newest and q.shape[2] > 1 and lengths is not None and (lengths == q.shape[2]).all():
        k, v = (x[:, :, : q.shape[2]] for x in (k, v))
        blocks = None if blocks is None else _first_keys(blocks, slice(None), q.shape[2])
        newest, causal, lengths, rule = False, True, None, None
    one_certified = certify and newest and q.shape[2] == 1
    if newest and not one_certified and _can_decode(q, k, v, blocks):
        lengths = None if lengths is None else lengths.expand(len(q))
        output = block_sparse_entmax_decode(q, k, v, blocks, alpha=alpha, scale=scoring.scale, lengths=lengths)
        return output, uncertified(q) if certify else None
    if one_certified:
        causal, rule, blocks = False, None, _of_query_heads(blocks, q.shape[1])
    # The kernel's lengths hide queries, too, but padding of a source and unused places of a cache do not.
    if (is_cross or one_certified) and lengths is not None and rule is None:
        if not is_ruled:
            return _attend_to_real_keys(q, k, v, blocks, lengths.expand(len(q)), alpha, scoring.scale, certify)
        rule = looked_up(visible)
    if rule is not None:
        causal, lengths, is_ruled = False, None, True
    rules = {"alpha": alpha, "scale": scoring.scale, "causal": causal, "lengths": lengths}
    if is_ruled:
        mods = {"mask_mod": rule, "score_mod": scoring.score_mod, "backend": "gather" if q.is_cuda else None}
        output = block_sparse_entmax_attention(q, k, v, blocks, **rules, **mods)
        return output, uncertified(q) if certify else None
    return _attend(q, k, v, blocks, certify, **rules)


def _attend(
    q: Tensor, k: Tensor, v: Tensor, blocks: BlockMask | None, certify: bool, **rules: object
) -> tuple[Tensor, Tensor | None]:
    """Return the output without token-level rules, and, to certify, its certified rows."""
    if not certify:
        return block_sparse_entmax_attention(q, k, v, blocks, **rules), None
    output, certificate = block_sparse_entmax_attention(q, k, v, blocks, certify=True, **rules)
    return output, certificate.rows


def _of_query_heads(blocks: BlockMask | None, heads: int) -> BlockMask | None:
    """Return the lists of key heads for each query head that shares them; other lists are unchanged."""
    if blocks is None or blocks.shape[1] in (1, heads):
        return blocks
    dense = blocks.to_dense().repeat_interleave(heads // blocks.shape[1], 1)
    return BlockMask.from_dense(dense, blocks.block_size, blocks.length)


def _can_decode(q: Tensor, k: Tensor, v: Tensor, blocks: BlockMask | None) -> bool:
    """Return whether the decoding kernel takes these tensors and blocks.

    It takes few queries and no gradients, and on a GPU no lists for query heads.
    """
    if q.shape[2] > MOST_NEW_TOKENS or (torch.is_grad_enabled() and any(x.requires_grad for x in (q, k, v))):
        return False
    return blocks is None or (blocks.blocks[0] == 1 and (not q.is_cuda or blocks.shape[1] in (1, k.shape[1])))


def _attend_to_real_keys(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: BlockMask | None,
    lengths: Tensor,
    alpha: float,
    scale: float | None,
    certify: bool,
) -> tuple[Tensor, Tensor | None]:
    """Return the output of all queries over the first ``lengths [B]`` keys, with one kernel call per different length.

    The second result is the certified rows, or None if `certify` is False.
    """
    parts, certified, order = [], [], []
    for length in lengths.unique().tolist():
        rows = (lengths == length).nonzero()[:, 0]
        keys = max(length, 1)
        first = None if mask is None else _first_keys(mask, rows, keys)
        part, found = _attend(q[rows], k[rows, :, :keys], v[rows, :, :keys], first, certify, alpha=alpha, scale=scale)
        parts.append(part if length else torch.zeros_like(part))
        certified.append(found)
        order.append(rows)
    place = torch.cat(order).argsort()
    return torch.cat(parts)[place], torch.cat(certified)[place] if certify else None


def _first_keys(mask: BlockMask, rows: Tensor | slice, keys: int) -> BlockMask:
    """Return the block mask of some of the batch's sequences over the first keys."""
    dense = mask.to_dense()
    dense = dense[..., : -(-keys // mask.block_size[1])]
    return BlockMask.from_dense(dense if len(dense) == 1 else dense[rows], mask.block_size, (mask.length[0], keys))
