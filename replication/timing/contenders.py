"""Attentions that are timed against each other, on one problem: random queries, keys, values and blocks."""

import importlib.util
import os
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.attention import flex_attention
from torch.nn.functional import scaled_dot_product_attention

from sparselib.blocks import ClusteredBlocks
from sparselib.blocks.chunks import Chunks
from sparselib.blocks.graph import PredictedBlocks
from sparselib.checks import at_least
from sparselib.dense_attention import attention
from sparselib.kernels import BlockMask, block_sparse_entmax_attention
from sparselib.projections import Projection

#: From q, k and v ``[1, H, n, D]`` to an output of that shape.
Attend = Callable[[Tensor, Tensor, Tensor], Tensor]
#: From q and k to the blocks to visit.
Predict = Callable[[Tensor, Tensor], BlockMask]

#: Whose time and memory depend on the blocks.
BLOCK_SPARSE = ("block-sparse", "flex")
#: Float32 tensors ``[H, n, n]`` that dense entmax attention holds at once, and one to spare: measured with 4096 tokens.
SQUARE_MATRICES = 4
#: Dimensions that a head is projected to, as in the paper.
PROJECTED = 4


@dataclass(frozen=True)
class Problem:
    """Random inputs of one length and density, the same for the same fields; bfloat16 on a GPU, float32 on a CPU.

    Raises
    ------
    ValueError
        If a size is below 1, or the blocks of that density are fewer than the diagonal's.
    """

    length: int
    density: float
    heads: int
    dimension: int
    block: int
    seed: int
    device: str

    def __post_init__(self) -> None:
        for name in ("length", "heads", "dimension", "block"):
            at_least(name, getattr(self, name), 1)
        at_least("density", self.density * self.blocks, 1)

    @property
    def blocks(self) -> int:
        return -(-self.length // self.block)

    def inputs(self) -> list[Tensor]:
        """q, k and v ``[1, H, n, D]``, which ask for gradients."""
        generator = torch.Generator(self.device).manual_seed(self.seed)
        shape = (1, self.heads, self.length, self.dimension)
        dtype = torch.float32 if self.device == "cpu" else torch.bfloat16
        drawn = (torch.randn(shape, generator=generator, device=self.device) for _ in range(3))
        return [x.to(dtype).requires_grad_() for x in drawn]

    def block_mask(self) -> BlockMask:
        """The diagonal and random blocks: the given share of all, to a block, in every head."""
        generator = torch.Generator().manual_seed(self.seed)
        order = torch.rand(self.heads, self.blocks, self.blocks, generator=generator)
        order = order.masked_fill_(torch.eye(self.blocks, dtype=torch.bool), -1.0).flatten(1).argsort(-1)
        chosen = torch.zeros(order.shape, dtype=torch.bool)
        chosen.scatter_(1, order[:, : round(self.density * self.blocks**2)], True)
        dense = chosen.view(1, self.heads, self.blocks, self.blocks)
        return BlockMask.from_dense(dense, self.block, self.length).to(self.device)


def contender(name: str, problem: Problem) -> Attend:
    """The attention of that name, ready to run on inputs of the problem; what is prepared once is prepared here."""
    if name == "dense-entmax":
        return lambda q, k, v: attention(q, k, v)[0]
    if name == "sdpa":
        return scaled_dot_product_attention
    if name == "adasplash":
        from adasplash import adasplash

        return lambda q, k, v: adasplash(q, k, v, alpha=1.5, is_causal=False)
    mask = problem.block_mask()
    if name == "flex":
        compiled, flex_mask = torch.compile(flex_attention.flex_attention), mask.to_flex()
        return lambda q, k, v: compiled(q, k, v, block_mask=flex_mask)
    if name == "block-sparse":
        return lambda q, k, v: block_sparse_entmax_attention(q, k, v, mask)
    raise ValueError(f"no attention is called {name!r}")


def peers(problem: Problem) -> list[str]:
    """The names of those that can run the problem here: installed, made for the device, and within half of its memory."""
    names = ["block-sparse", "sdpa"]
    if problem.device != "cpu":
        names += ["flex"] + ["adasplash"] * (importlib.util.find_spec("adasplash") is not None)
    if SQUARE_MATRICES * 4 * problem.heads * problem.length**2 <= memory_bytes(problem.device) / 2:
        names.append("dense-entmax")
    return names


def memory_bytes(device: str) -> int:
    """The memory of the machine, or what is free of an accelerator's."""
    if device == "cpu":
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return torch.cuda.mem_get_info()[0]


@dataclass(frozen=True)
class Prediction:
    """What one layer predicts from its queries and keys, of any dtype; picklable."""

    graph: PredictedBlocks

    def __call__(self, q: Tensor, k: Tensor) -> BlockMask:
        return self.graph(0, q, k, None)


def untrained_prediction(
    heads: int,
    dimension: int,
    block: int,
    *,
    clusters: int,
    count: int,
    seed: int,
    device: str,
    compiled: bool = False,
) -> Prediction:
    """Version 2 of efficient Sparsefinder with a random projection and random centroids: they cost what learned ones do.

    Each of ``clusters`` centroids picks ``count`` blocks of queries and as many of keys.
    """
    generator = torch.Generator().manual_seed(seed)
    weight = torch.randn(heads, dimension, PROJECTED, generator=generator) * dimension**-0.5
    centroids = torch.randn(heads, clusters, block * PROJECTED, generator=generator)
    projection = Projection(weight, torch.zeros(heads, PROJECTED)).to(device)
    predictor = ClusteredBlocks(centroids.to(device), count)
    return Prediction(PredictedBlocks([projection], [predictor], Chunks(block), compiled))
