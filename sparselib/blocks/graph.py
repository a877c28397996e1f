"""The blocks that an attention layer visits: predicted, window and global blocks, without padding and future."""

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
    """Maps chunk vectors to lists of key blocks; :mod:`sparselib.blocks.predictors` has implementations."""

    def predict(self, q: Tensor, k: Tensor, *, lengths: Lengths = None, causal: bool = False) -> Tensor: ...


def unite(predicted: Tensor, block_size: int, length: int, lengths: Lengths = None, causal: bool = False) -> BlockMask:
    """Return the block mask (predicted ∪ window ∪ global) ∩ padding ∩ causal, in memory linear in the number of blocks N.

    The window is a block and its two neighbours. The first and the last block are global, as in the paper's code, which takes
    them from BigBird: they attend to all blocks, and all blocks attend to them.

    Parameters
    ----------
    predicted : integer Tensor ``[B, H, N, K]``
        Key blocks of every query block in any order, filled up with N (one past the last). B may be 1 without `lengths`.
    block_size, length : int, the tokens per block and per sentence; N = ceil(length / block_size)
    lengths, causal : as in :func:`sparselib.masks.visible_pairs`

    Examples
    --------
    >>> blocks = unite(torch.tensor([3, 0, 0, 0, 2, 1]).view(1, 1, 6, 1), block_size=4, length=24)
    >>> blocks.to_dense()[0, 0, 4].int()  # block 2 is predicted, 3 to 5 are the window, 0 and 5 are global
    tensor([1, 0, 1, 1, 1, 1], dtype=torch.int32)
    """
    return _mask(_united(predicted, block_size, length, lengths, causal), block_size, length)


def _check(predicted: Tensor, count: int, length: int) -> None:
    if predicted.ndim != 4 or predicted.shape[2] != count or predicted.is_floating_point():
        given = f"{predicted.dtype} {tuple(predicted.shape)}"
        raise ValueError(f"`predicted` must be integers [B, H, {count}, K] for {length} tokens, got {given}")
    if predicted.numel() and not torch.compiler.is_compiling():
        low, high = torch.stack(torch.aminmax(predicted)).tolist()
        if low < 0 or high > count:
            raise ValueError(
                f"`predicted` must hold blocks in 0..{count}, got {low} to {high} in shape {tuple(predicted.shape)}"
            )


def _mask(lists: tuple[Tensor, Tensor, Tensor, Tensor], block_size: int, length: int) -> BlockMask:
    return BlockMask.unchecked(*lists[:2], (block_size, block_size), (length, length), *lists[2:])


def _united(
    predicted: Tensor, block_size: int, length: int, lengths: Lengths, causal: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return counts and lists of blocks, and counts and lists of the global rows."""
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
    block = torch.arange(count, device=predicted.device)
    is_global = ((block == 0) | (block == real[:, None] - 1))[:, None].expand(batch, heads, count)
    counts = (lists < count).sum(-1, dtype=torch.int32).masked_fill(is_global, 0)
    # Global rows share one list, a view without memory of its own. In kv_indices they would make all rows as long as they are.
    all_blocks = block.int().expand(batch, heads, count, count)
    global_counts = limits.int()[:, None].expand_as(counts).masked_fill(~is_global, 0)
    return counts, lists.masked_fill(lists == count, 0).int(), global_counts, all_blocks


@dataclass(frozen=True)
class PredictedBlocks:
    """Blocks predicted from each layer's own queries and keys, for ``AttentionControl.visiting`` of a bidirectional model.

    Parameters
    ----------
    projections : sequence of callables ``[B, H, n, D]`` -> ``[B, H, n, R]``, one per layer
    predictors : sequence of BlockPredictor, one per layer
    chunks : Chunks, whose size is the block size
    compiled : bool
        Whether to predict under torch.compile, which saves most of the time on a GPU but some seconds of the first call.
        Compiled code checks neither q, k and lengths (attention checks them) nor a predictor's output, which must be in 0..N.

    Examples
    --------
    >>> from sparselib.blocks import NearestBlocks
    >>> visits = PredictedBlocks([lambda x: x], [NearestBlocks(1)], Chunks(4))
    >>> visits(0, torch.randn(1, 1, 32, 4), torch.randn(1, 1, 32, 4), None).blocks
    (8, 8)
    """

    projections: Sequence[Project]
    predictors: Sequence[BlockPredictor]
    chunks: Chunks
    compiled: bool = False

    @torch.no_grad()
    def __call__(self, layer: int, q: Tensor, k: Tensor, lengths: Tensor | None) -> BlockMask:
        predict = _compiled() if self.compiled else _predicted
        lists = predict(self.projections[layer], self.predictors[layer], self.chunks, q, k, lengths)
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
