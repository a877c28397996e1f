"""Rules of every kind, and dense attention under them as the oracle."""

from functools import partial

import torch

from sparselib import entmax
from sparselib.dense_attention import weights_of
from sparselib.kernels import BlockMask, block_sparse_entmax_attention

BATCH, HEADS, LENGTH = 2, 4, 21
ALPHAS = [1, 1.25, 1.5, 2]
DOCUMENTS = torch.tensor([7 * [0] + 14 * [1], 20 * [0] + [1]])
PADDING = torch.tensor([0, 9])
SLOPES = torch.tensor([0.5, 0.25, 0.1, -0.2], dtype=torch.float64)
TABLE = torch.randn(HEADS, LENGTH, LENGTH, generator=torch.Generator().manual_seed(9), dtype=torch.float64)
MASKS = {
    "window": lambda b, h, i, j: (i - j).abs() <= 3,
    "window of each head": lambda b, h, i, j: (i - j).abs() <= h,
    "documents": lambda b, h, i, j: DOCUMENTS[b, i] == DOCUMENTS[b, j],
    "left padding": lambda b, h, i, j: j >= PADDING[b],
}
SCORES = {
    "soft cap": lambda score, b, h, i, j: 2 * torch.tanh(score / 2),
    "ALiBi": lambda score, b, h, i, j: score - SLOPES[h] * (i - j).abs(),
    "bias": lambda score, b, h, i, j: score + TABLE[h, i, j],
    "hidden by -inf": lambda score, b, h, i, j: score.where((i + j) % 3 > 0, -torch.inf),
}
RULES = {name: {"mask_mod": rule} for name, rule in MASKS.items()}
RULES |= {name: {"score_mod": rule} for name, rule in SCORES.items()}
RULES |= {"both": {"mask_mod": MASKS["window"], "score_mod": SCORES["ALiBi"]}}


def random_inputs(queries=LENGTH, keys=LENGTH, dtype=torch.float64, batch=BATCH):
    generator = torch.Generator().manual_seed(0)
    shapes = [(batch, HEADS, queries, 8), *[(batch, HEADS // 2, keys, 8)] * 2]
    return [torch.randn(x, generator=generator, dtype=torch.float64).mul_(1.5).to(dtype) for x in shapes]


def random_mask(queries=LENGTH, keys=LENGTH, block=(4, 8)):
    blocks = [-(-n // size) for n, size in zip((queries, keys), block, strict=True)]
    dense = torch.rand(BATCH, HEADS, *blocks, generator=torch.Generator().manual_seed(1)) < 0.7
    return BlockMask.from_dense(dense, block, (queries, keys))


def places(*sizes):
    return torch.meshgrid(*map(torch.arange, sizes), indexing="ij")


def dense(q, k, v, mask=None, *, alpha=1.5, causal=False, lengths=None, mask_mod=None, score_mod=None, dtype=None):
    """Dense attention under all rules, with autograd."""
    q, k, v = (x.to(dtype or torch.float64).repeat_interleave(HEADS // x.shape[1], 1) for x in (q, k, v))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    b, h, i, j = place = places(*scores.shape)
    seen = torch.ones_like(scores, dtype=torch.bool)
    if mask is not None:
        seen &= mask.to_dense().expand(*scores.shape[:2], -1, -1)[
            b, h, i // mask.block_size[0], j // mask.block_size[1]
        ]
    if causal:
        seen &= j <= i
    if lengths is not None:
        seen &= (i < lengths[b]) & (j < lengths[b])
    if mask_mod is not None:
        seen &= mask_mod(*place)
    if score_mod is not None:
        scores = score_mod(scores, *place).to(scores.dtype)
        seen &= scores > -torch.inf
    return weights_of(scores, seen, partial(entmax, alpha=alpha)) @ v


def check(inputs, mask, *, tolerance=1e-9, **rules):
    """Check that the output and the gradients of the inputs are those of dense attention."""
    leaves = [x.requires_grad_() for x in inputs]
    output = block_sparse_entmax_attention(*leaves, mask, **rules)
    assert output.dtype == inputs[0].dtype
    expected = dense(*leaves, mask, **rules)
    upstream = torch.randn(expected.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    found = torch.autograd.grad(output, leaves, upstream.to(output.dtype))
    wanted = torch.autograd.grad(expected, leaves, upstream)
    for x, y in zip((output, *found), (expected, *wanted), strict=True):
        torch.testing.assert_close(x.double(), y.double(), rtol=tolerance, atol=tolerance)
