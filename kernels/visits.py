"""Key blocks that each query block reads in the gather backend, in chunks of a bounded number of scores."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import or_

import torch
from torch import Tensor

from .lists import BlockLists
from .rules import Places, Rules

#: Scores per chunk. A chunk of this size stays in the CPU cache over several passes.
CHUNK_SCORES = 1 << 18
#: Block size of dense attention, which has no mask to define it.
DENSE_BLOCK = 64


@dataclass(frozen=True)
class Chunk:
    """Query blocks that visit M key blocks each.

    Attributes
    ----------
    queries : int64 Tensor ``[G]``
        Query blocks, numbered over batch, head and position.
    keys : int64 Tensor ``[G * M]``
        Key blocks, numbered over batch, key head and position.
    hidden : Bool Tensor ``[G, 1 or q_block, M * k_block]``, optional
        True where a query must not attend to a key; None if all pairs are allowed.
    places : Places, optional
        The pairs of the chunk, if there are rules: int64 tensors that broadcast to ``[G, q_block, M * k_block]``.
    """

    queries: Tensor
    keys: Tensor
    hidden: Tensor | None
    places: Places | None


@dataclass(frozen=True)
class Visits:
    """Sizes, token mask and block lists of one attention.

    Attributes
    ----------
    batch, heads, kv_heads : int
        Batch size, query heads and key heads.
    length : tuple of int
        Number of queries and of keys.
    visited : BlockLists, optional
        Visited blocks; None for dense attention.
    causal : bool
        Whether each query attends only to its own and earlier keys.
    lengths : int64 Tensor ``[B]``, optional
        Tokens of each sequence.
    device : torch.device
        Device of the tensors.
    mask : Bool Tensor ``[B or 1, H or 1, Q or 1, K or 1]``, optional
        True where a query may attend to a key.
    rules : Rules, optional
        Token-level rules inside visited blocks.
    """

    batch: int
    heads: int
    kv_heads: int
    length: tuple[int, int]
    visited: BlockLists | None
    causal: bool
    lengths: Tensor | None
    device: torch.device
    mask: Tensor | None = None
    rules: Rules | None = None

    @property
    def block(self) -> tuple[int, int]:
        """Queries and keys per block."""
        return (DENSE_BLOCK, DENSE_BLOCK) if self.visited is None else self.visited.block

    @property
    def blocks(self) -> tuple[int, int]:
        """Number of query blocks and key blocks."""
        return tuple(-(-n // size) for n, size in zip(self.length, self.block, strict=True))

    @cached_property
    def lists(self) -> tuple[Tensor, Tensor]:
        """Counts ``[R]`` and indices ``[R, W]`` for all R = B * H * Q_blocks query blocks, without hidden blocks."""
        q_blocks, k_blocks = self.blocks
        shape = (self.batch, self.heads, q_blocks)
        if self.visited is None:
            indices = torch.arange(k_blocks, device=self.device).expand(*shape, k_blocks)
            listed = torch.ones_like(indices, dtype=torch.bool)
        else:
            indices = self.visited.indices.expand(*shape, -1)
            counts = self.visited.counts.expand(shape)
            listed = torch.arange(indices.shape[-1], device=self.device) < counts[..., None]
        listed = listed & self._any_allowed(indices)
        order = (~listed).to(torch.uint8).argsort(dim=-1, stable=True)
        return listed.sum(-1).flatten(), indices.gather(-1, order).flatten(0, 2)

    def _any_allowed(self, indices: Tensor) -> Tensor:
        """Return whether causality and lengths allow any pair of a query block and its key blocks ``[B, H, Q_blocks, W]``."""
        first_key = indices * self.block[1]
        first_query = torch.arange(self.blocks[0], device=self.device)[:, None] * self.block[0]
        allowed = torch.ones_like(indices, dtype=torch.bool)
        if self.causal:
            allowed &= first_key < first_query + self.block[0]
        if self.lengths is not None:
            limit = self.lengths[:, None, None, None]
            allowed &= (first_key < limit) & (first_query < limit)
        return allowed

    def chunks(self) -> Iterator[Chunk]:
        """Iterate over the query blocks that visit any key block.

        Yields
        ------
        Chunk
            The query blocks of a chunk visit the same number of key blocks, so that no list needs padding. The longest lists
            come first.
        """
        counts, indices = self.lists
        order = counts.argsort(dim=0, descending=True, stable=True)
        lengths, sizes = counts[order].unique_consecutive(return_counts=True)
        for length, rows in zip(lengths.tolist(), order.split(sizes.tolist()), strict=True):
            if length:
                step = max(1, CHUNK_SCORES // (length * self.block[0] * self.block[1]))
                yield from (self._chunk(some, indices[some, :length].long()) for some in rows.split(step))

    def _chunk(self, rows: Tensor, blocks: Tensor) -> Chunk:
        """Return the chunk of query blocks ``[G]`` that visit the key blocks ``[G, M]``."""
        row_head, row_block = rows // self.blocks[0], rows % self.blocks[0]
        batch, head = row_head // self.heads, row_head % self.heads
        kv_head = batch * self.kv_heads + head // (self.heads // self.kv_heads)
        keys = kv_head[:, None] * self.blocks[1] + blocks
        query, key = (
            (x[..., None] * size + torch.arange(size, device=self.device)).flatten(1)  # [G, q_block], [G, M * k_block]
            for x, size in zip((row_block, blocks), self.block, strict=True)
        )
        hidden = self._hidden(batch, query, key)
        if self.rules is None and self.mask is None:
            return Chunk(rows, keys.flatten(), hidden, None)
        # Tokens behind the end repeat the last one, so that a rule can use their positions as indices.
        query, key = (x.clamp(max=n - 1) for x, n in zip((query, key), self.length, strict=True))
        places = batch[:, None, None], head[:, None, None], query[..., None], key[:, None]
        masks = [hidden, None if self.rules is None else self.rules.hidden(places), self._masked(places)]
        masks = [x for x in masks if x is not None]
        return Chunk(rows, keys.flatten(), reduce(or_, masks) if masks else None, places)

    def _masked(self, places: Places) -> Tensor | None:
        """Return which pairs the mask hides."""
        if self.mask is None:
            return None
        return ~self.mask[tuple(index if size > 1 else 0 for size, index in zip(self.mask.shape, places, strict=True))]

    def _hidden(self, batch: Tensor, query: Tensor, key: Tensor) -> Tensor | None:
        """Return the token mask of queries ``[G, q_block]`` in batch entries ``[G]``, and keys ``[G, M * k_block]``."""
        limit = key.new_full(batch.shape, self.length[1]) if self.lengths is None else self.lengths[batch]
        hidden = (key >= limit[:, None])[:, None]
        if self.lengths is not None and (query >= limit[:, None]).any():
            hidden = hidden | (query >= limit[:, None])[..., None]
        if self.causal:
            hidden = hidden | (key[:, None] > query[..., None])
        return hidden if hidden.any() else None
