"""The blocks that an attention layer visits: predicted ones, window and global blocks, without padding and future.

::

    graph = PredictedBlocks(projections, [NearestBlocks(2)] * 12, Chunks(16))
    with control.visiting(graph): model(ids)  # sparselib.huggingface.attention.use_attention
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import torch
from torch import Tensor

from sparselib.blocks.chunks import Chunks
from sparselib.blocks.fixed import block_limits, distinct, fixed_columns
from sparselib.checks import Lengths
from sparselib.kernels import BlockMask
from sparselib.masks.visible import real_positions

#: A learned projection, ``[B, H, n, D]`` -> ``[B, H, n, R]``.
Project = Callable[[Tensor], Tensor]


class BlockPredictor(Protocol):
    """From chunk vectors to lists of key blocks; those of this repository are in ``sparselib.blocks.predictors``."""

    def predict(self, q: Tensor, k: Tensor, *, lengths: Lengths = None, causal: bool = False) -> Tensor: ...


def unite(predicted: Tensor, block_size: int, length: int, lengths: Lengths = None, causal: bool = False) -> BlockMask:
    """(predicted ∪ window ∪ global) ∩ padding ∩ causal, each block once.

    The window is the block itself and its two neighbours. The first and the last block are global: every query block sees
    them, and they see everything (what the paper's code takes from BigBird). Memory is linear in the number of blocks N:
    nothing here has a number for each pair of blocks.

    Parameters
    ----------
    predicted : integer Tensor ``[B, H, N, K]``
        Key blocks of every query block, in any order; N, one past the last, where there are fewer than K. B may be 1 for
        all sentences if there are no `lengths`.
    block_size, length : int
        Tokens per block, and tokens n; N = ceil(n / block_size).
    lengths : ``[B]``, optional
        Real tokens of each sentence.

    Raises ``ValueError`` if `predicted` has another shape or dtype, holds indices outside 0..N, or for lengths outside 0 to
    n.

    >>> blocks = unite(torch.tensor([3, 0, 0, 0, 2, 1]).view(1, 1, 6, 1), block_size=4, length=24)
    >>> blocks.to_dense()[0, 0].int()
    tensor([[1, 1, 1, 1, 1, 1],
            [1, 1, 1, 0, 0, 1],
            [1, 1, 1, 1, 0, 1],
            [1, 0, 1, 1, 1, 1],
            [1, 0, 1, 1, 1, 1],
            [1, 1, 1, 1, 1, 1]], dtype=torch.int32)
    """
    return _mask(_united(predicted, block_size, length, lengths, causal), block_size, length)


def _check(predicted: Tensor, count: int, length: int) -> None:
    if predicted.ndim != 4 or predicted.shape[2] != count or predicted.is_floating_point():
        found = f"{predicted.dtype} {tuple(predicted.shape)}"
        raise ValueError(f"predicted must be integers [B, H, {count}, K] for {length} tokens; got {found}")
    if predicted.numel() and not torch.compiler.is_compiling():
        low, high = torch.stack(torch.aminmax(predicted)).tolist()
        if low < 0 or high > count:
            raise ValueError(f"predicted {tuple(predicted.shape)} holds blocks outside 0..{count}")


def _mask(lists: tuple[Tensor, Tensor, Tensor, Tensor], block_size: int, length: int) -> BlockMask:
    return BlockMask.unchecked(*lists[:2], (block_size, block_size), (length, length), *lists[2:])


def _united(
    predicted: Tensor, block_size: int, length: int, lengths: Lengths, causal: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Counts and lists of blocks, and those of the rows that see everything."""
    count = Chunks(block_size).count(length)
    _check(predicted, count, length)
    batch, heads = predicted.shape[:2]
    if lengths is None:
        real = torch.full((batch,), count, device=predicted.device)
    else:
        real = Chunks(block_size).count(real_positions(batch, length, lengths, predicted.device).sum(-1))
    limits = block_limits(real, count, causal)  # [B, N]
    fixed = fixed_columns(count, real - 1)[:, None].expand(batch, heads, count, -1)
    lists = distinct(torch.cat([predicted, fixed], dim=-1), limits[:, None].expand(batch, heads, count))
    lists = lists[..., :count]
    own = torch.arange(count, device=predicted.device)
    is_global = ((own == 0) | (own == real[:, None] - 1))[:, None].expand(batch, heads, count)
    counts = (lists < count).sum(-1, dtype=torch.int32).masked_fill(is_global, 0)
    # Rows that see everything share one list, a view without memory of its own; in kv_indices they would make all rows as long.
    everything = own.int().expand(batch, heads, count, count)
    everything_seen = limits.int()[:, None].expand_as(counts).masked_fill(~is_global, 0)
    return counts, lists.masked_fill(lists == count, 0).int(), everything_seen, everything


@dataclass(frozen=True)
class PredictedBlocks:
    """Blocks predicted from each layer's own queries and keys; for ``AttentionControl.visiting`` of a bidirectional model.

    There are a projection and a predictor per layer. ``compiled=True`` predicts with torch.compile: it takes some seconds to
    begin with, and saves most of the time of a prediction on a GPU, which is that of launching a hundred small operations and
    waiting for what they found. Numbers in q, k and `lengths` are not looked at then (the attention does that), nor is what a
    predictor returns: it has to be within 0..N.

    >>> from sparselib.blocks import NearestBlocks
    >>> from sparselib.projections import Projection
    >>> projection = Projection(torch.eye(4)[:, :2].repeat(1, 1, 1), torch.zeros(1, 2))
    >>> visits = PredictedBlocks([projection], [NearestBlocks(1)], Chunks(4))
    >>> blocks = visits(0, torch.randn(1, 1, 32, 4), torch.randn(1, 1, 32, 4), None)
    >>> blocks.blocks, 0 < blocks.density <= 1
    ((8, 8), True)
    """

    projections: Sequence[Project]
    predictors: Sequence[BlockPredictor]
    chunks: Chunks
    compiled: bool = False

    @torch.no_grad()
    def __call__(self, layer: int, q: Tensor, k: Tensor, lengths: Tensor | None) -> BlockMask:
        """Queries and keys ``[B, H, n, D]`` and the real tokens ``[B]`` of each sentence -> the blocks that they visit."""
        run = _compiled() if self.compiled else _predicted
        lists = run(self.projections[layer], self.predictors[layer], self.chunks, q, k, lengths)
        return _mask(lists, self.chunks.size, q.shape[2])


def _predicted(
    projection: Project, predictor: BlockPredictor, chunks: Chunks, q: Tensor, k: Tensor, lengths: Tensor | None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    vectors = (chunks.vectors(projection(x), lengths) for x in (q, k))
    real = None if lengths is None else chunks.count(lengths)
    return _united(predictor.predict(*vectors, lengths=real), chunks.size, q.shape[2], lengths, causal=False)


@cache
def _compiled() -> Callable:
    return torch.compile(_predicted)
