"""Attentions that are timed on one problem of random queries, keys, values and blocks."""

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

#: From q, k and v, each ``[1, H, n, D]``, to an output of that shape.
Attend = Callable[[Tensor, Tensor, Tensor], Tensor]
#: From q and k to the blocks to visit.
Predict = Callable[[Tensor, Tensor], BlockMask]

#: Attentions whose time and memory depend on the blocks.
BLOCK_SPARSE = ("block-sparse", "flex")
#: Float32 tensors ``[H, n, n]`` that dense entmax attention needs at once, as measured with 4096 tokens, plus one.
SQUARE_MATRICES = 4
#: Dimensions that a head is projected to, as in the paper.
PROJECTED = 4


@dataclass(frozen=True)
class Problem:
    """Random inputs that the fields determine, in bfloat16 on a GPU and float32 on a CPU.

    Raises
    ------
    ValueError
        If a size is below 1, or the density gives fewer blocks than the diagonal has.
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
        """Return the number of query blocks."""
        return -(-self.length // self.block)

    def inputs(self) -> list[Tensor]:
        """Return q, k and v ``[1, H, n, D]``, which require gradients."""
        generator = torch.Generator(self.device).manual_seed(self.seed)
        shape = (1, self.heads, self.length, self.dimension)
        dtype = torch.float32 if self.device == "cpu" else torch.bfloat16
        drawn = (torch.randn(shape, generator=generator, device=self.device) for _ in range(3))
        return [x.to(dtype).requires_grad_() for x in drawn]

    def block_mask(self) -> BlockMask:
        """Return the blocks of every head: the diagonal, and random blocks until the density is reached."""
        generator = torch.Generator().manual_seed(self.seed)
        order = torch.rand(self.heads, self.blocks, self.blocks, generator=generator)
        order = order.masked_fill_(torch.eye(self.blocks, dtype=torch.bool), -1.0).flatten(1).argsort(-1)
        chosen = torch.zeros(order.shape, dtype=torch.bool)
        chosen.scatter_(1, order[:, : round(self.density * self.blocks**2)], True)
        dense = chosen.view(1, self.heads, self.blocks, self.blocks)
        return BlockMask.from_dense(dense, self.block, self.length).to(self.device)


def contender(name: str, problem: Problem) -> Attend:
    """Return an attention by name, prepared for the inputs of a problem.

    Raises
    ------
    ValueError
        If there is no attention of that name.
    """
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
    raise ValueError(f"`name` must be block-sparse, dense-entmax, sdpa, flex or adasplash, got {name!r}")


def peers(problem: Problem) -> list[str]:
    """Return the names of attentions that are installed, support the device and need at most half of its memory."""
    names = ["block-sparse", "sdpa"]
    if problem.device != "cpu":
        names += ["flex"] + ["adasplash"] * (importlib.util.find_spec("adasplash") is not None)
    if SQUARE_MATRICES * 4 * problem.heads * problem.length**2 <= memory_bytes(problem.device) / 2:
        names.append("dense-entmax")
    return names


def memory_bytes(device: str) -> int:
    """Return the memory of the machine, or the free memory of an accelerator."""
    if device == "cpu":
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return torch.cuda.mem_get_info()[0]


@dataclass(frozen=True)
class Prediction:
    """Picklable prediction of one layer's blocks from queries and keys."""

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
    """Return version 2 of efficient Sparsefinder with random projections and centroids, which cost as much as learned ones.

    Parameters
    ----------
    heads, dimension, block : int
        Sizes of the attention.
    clusters : int
        Number of centroids.
    count : int
        Query blocks, and key blocks, that each centroid selects.
    seed : int
        Seed of projections and centroids.
    device : str
        Device of the prediction.
    compiled : bool
        Whether the prediction is compiled.
    """
    generator = torch.Generator().manual_seed(seed)
    weight = torch.randn(heads, dimension, PROJECTED, generator=generator) * dimension**-0.5
    centroids = torch.randn(heads, clusters, block * PROJECTED, generator=generator)
    projection = Projection(weight, torch.zeros(heads, PROJECTED)).to(device)
    predictor = ClusteredBlocks(centroids.to(device), count)
    return Prediction(PredictedBlocks([projection], [predictor], Chunks(block), compiled))
