"""Which blocks of keys each block of queries has to read, cut into chunks of a bounded number of scores."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from .lists import BlockLists

#: Scores per chunk: the several passes over a chunk of this size stay in the cache.
CHUNK_SCORES = 1 << 18
#: Block size of dense attention, where no mask has one.
DENSE_BLOCK = 64


@dataclass(frozen=True)
class Chunk:
    """Blocks of queries that visit about the same number M of blocks of keys.

    Attributes
    ----------
    queries : int64 Tensor ``[G]``
        Which blocks of queries, counted over batch, head and position.
    keys : int64 Tensor ``[G * M]``
        Which blocks of keys, counted over batch, head of the keys and position.
    hidden : Bool Tensor ``[G, 1 or q_block, M * k_block]``, optional
        True where a query does not see a key; None if it sees all.
    """

    queries: Tensor
    keys: Tensor
    hidden: Tensor | None


@dataclass(frozen=True)
class Visits:
    """The visits of one attention: sizes, the rule of tokens, and the lists of blocks.

    Attributes
    ----------
    batch, heads, kv_heads : int
    length : tuple of int
        Number of queries and of keys.
    visited : BlockLists, optional
        None for dense attention.
    causal : bool
    lengths : int64 Tensor ``[B]``, optional
    """

    batch: int
    heads: int
    kv_heads: int
    length: tuple[int, int]
    visited: BlockLists | None
    causal: bool
    lengths: Tensor | None
    device: torch.device

    @property
    def block(self) -> tuple[int, int]:
        return (DENSE_BLOCK, DENSE_BLOCK) if self.visited is None else self.visited.block

    @property
    def blocks(self) -> tuple[int, int]:
        """Number of blocks of queries and of keys."""
        return tuple(-(-n // size) for n, size in zip(self.length, self.block, strict=True))

    @cached_property
    def lists(self) -> tuple[Tensor, Tensor]:
        """Counts ``[R]`` and indices ``[R, W]`` for the R = B * H * Q_blocks blocks of queries, without hidden blocks."""
        q_blocks, k_blocks = self.blocks
        shape = (self.batch, self.heads, q_blocks)
        if self.visited is None:
            indices = torch.arange(k_blocks, device=self.device).expand(*shape, k_blocks)
            listed = torch.ones_like(indices, dtype=torch.bool)
        else:
            indices = self.visited.indices.expand(*shape, -1)
            counts = self.visited.counts.expand(shape)
            listed = torch.arange(indices.shape[-1], device=self.device) < counts[..., None]
        listed = listed & self._any_seen(indices)
        order = (~listed).to(torch.uint8).argsort(dim=-1, stable=True)
        return listed.sum(-1).flatten(), indices.gather(-1, order).flatten(0, 2)

    def _any_seen(self, indices: Tensor) -> Tensor:
        """False where causality or lengths hide all of a block; ``indices [B, H, Q_blocks, W]`` of blocks of keys."""
        first_key = indices * self.block[1]
        first_query = torch.arange(self.blocks[0], device=self.device)[:, None] * self.block[0]
        seen = torch.ones_like(indices, dtype=torch.bool)
        if self.causal:
            seen &= first_key < first_query + self.block[0]
        if self.lengths is not None:
            limit = self.lengths[:, None, None, None]
            seen &= (first_key < limit) & (first_query < limit)
        return seen

    def chunks(self) -> Iterator[Chunk]:
        """All blocks of queries with a visit, the longest lists first, so that little of a chunk is padding."""
        counts, _ = self.lists
        order = counts.argsort(dim=0, descending=True, stable=True)
        ordered = counts[order].tolist()
        start = 0
        while start < len(ordered) and ordered[start]:
            step = max(1, CHUNK_SCORES // (ordered[start] * self.block[0] * self.block[1]))
            rows = order[start : start + step]
            yield self._chunk(rows[counts[rows] > 0], ordered[start])
            start += step

    def _chunk(self, rows: Tensor, most: int) -> Chunk:
        counts, indices = self.lists
        listed = torch.arange(most, device=self.device) < counts[rows, None]  # [G, M]
        blocks = torch.where(listed, indices[rows, :most].long(), 0)
        row_head, row_block = rows // self.blocks[0], rows % self.blocks[0]
        batch, head = row_head // self.heads, row_head % self.heads
        kv_head = batch * self.kv_heads + head // (self.heads // self.kv_heads)
        keys = kv_head[:, None] * self.blocks[1] + blocks
        return Chunk(rows, keys.flatten(), self._hidden(batch, row_block, blocks, listed))

    def _hidden(self, batch: Tensor, row_block: Tensor, blocks: Tensor, listed: Tensor) -> Tensor | None:
        """The rule of tokens for blocks of queries ``[G]`` in batch entries ``[G]`` and their blocks of keys ``[G, M]``."""
        key = blocks[..., None] * self.block[1] + torch.arange(self.block[1], device=self.device)  # [G, M, k_block]
        limit = key.new_full(batch.shape, self.length[1]) if self.lengths is None else self.lengths[batch]
        hidden = ~listed[..., None] | (key >= limit[:, None, None])
        hidden, key = hidden.flatten(1)[:, None], key.flatten(1)[:, None]
        query = row_block[:, None] * self.block[0] + torch.arange(self.block[0], device=self.device)  # [G, q_block]
        if self.lengths is not None and (query >= limit[:, None]).any():
            hidden = hidden | (query >= limit[:, None])[..., None]
        if self.causal:
            hidden = hidden | (key > query[..., None])
        return hidden if hidden.any() else None
