"""Random inputs of several structures, random masks, and dense attention in float64 as the oracle."""

from functools import partial

import torch

from sparselib import attention, entmax
from sparselib.kernels import BlockMask

ALPHAS = [1.25, 1.5, 2]
KINDS = ["random", "clustered", "smooth", "one huge key"]
RULES = [
    {},
    {"causal": True},
    {"lengths": torch.tensor([100, 0])},
    {"causal": True, "lengths": torch.tensor([129, 37])},
]


def random_inputs(kind, n=129, d=16, *, heads=2, kv_heads=None, batch=2, block=16, seed=0, dtype=torch.float64):
    """Return q, k and v. Clustered keys lie near their block's centre, and queries near some centre; smooth keys drift."""
    generator = torch.Generator().manual_seed(seed)
    kv_heads = kv_heads or heads
    q, k, v = (
        torch.randn(batch, h, n, d, generator=generator, dtype=torch.float64) for h in (heads, kv_heads, kv_heads)
    )
    if kind == "clustered":
        centres = 2 * torch.randn(-(-n // block), d, generator=generator, dtype=torch.float64)
        order = torch.randperm(len(centres), generator=generator)
        q, k = (x.repeat_interleave(block, 0)[:n] + y / 4 for x, y in ((centres[order], q), (centres, k)))
    elif kind == "smooth":
        walk = torch.randn(n, d, generator=generator, dtype=torch.float64).cumsum(0)
        walk = 2 * (walk - walk.mean(0)) / walk.std(0)
        q, k = walk + q / 10, walk + k / 10
    elif kind == "one huge key":
        k[:, :, n // 3] *= 100
    return [x.to(dtype) for x in (q, k, v)]


def random_mask(n=129, *, block=16, batch=2, heads=2, density=0.5, seed=0):
    """Return a mask of random blocks for each batch entry and head."""
    blocks = -(-n // block)
    dense = torch.rand(batch, heads, blocks, blocks, generator=torch.Generator().manual_seed(seed)) < density
    return BlockMask.from_dense(dense, block, n)


def allowed_pairs(q, k, *, causal=False, lengths=None):
    """Return the pairs that causality and lengths allow, ``Bool[B, 1, Q, K]``."""
    queries, keys = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
    allowed = torch.ones(q.shape[0], 1, q.shape[2], k.shape[2], dtype=torch.bool)
    if causal:
        allowed = allowed & (keys <= queries)
    if lengths is not None:
        limit = lengths[:, None, None, None]
        allowed = allowed & (keys < limit) & (queries < limit)
    return allowed


def oracle(q, k, v, *, alpha, scale=None, **rule):
    """Return output and weights of dense attention in float64, whatever the dtype of the inputs."""
    q, k, v = (x.double().repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (q, k, v))
    mask = allowed_pairs(q, k, **rule).expand(*q.shape[:2], -1, -1)
    return attention(q, k, v, mask, normalizer=partial(entmax, alpha=alpha), scale=scale)


def token_mask(mask, q, k):
    """Return the pairs in visited blocks, ``Bool[B, H, Q, K]``."""
    query_block, key_block = (torch.arange(x.shape[2]) // size for x, size in zip((q, k), mask.block_size, strict=True))
    return mask.to_dense()[:, :, query_block[:, None], key_block].expand(*q.shape[:2], -1, -1)


def missed(weights, mask, q, k):
    """Return the rows with an edge outside the mask, ``Bool[B, H, Q]``."""
    return ((weights > 0) & ~token_mask(mask, q, k)).any(-1)
