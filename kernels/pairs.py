"""Every block of queries against every block of keys: which pairs are allowed, which were visited, which may hold an edge."""

import torch
from torch import Tensor
from torch.nn.functional import pad

from .block_mask import BlockMask
from .bounds import SCORE_RESOLUTION, KeyBlocks, score_error, threshold_error
from .checks import fail_shapes

#: Pairs of a query and a block of keys that are looked at at once.
CHUNK_PAIRS = 1 << 20


class BlockPairs:
    """The R = B * H * Q_blocks blocks of M queries of an attention, and the N blocks of keys that each could visit.

    The arguments are those of the attention; of the mask, only block size and lengths are used.

    Raises
    ------
    ValueError
        If the mask does not fit q and k.
    """

    def __init__(
        self,
        q: Tensor,
        k: Tensor,
        block_mask: BlockMask,
        *,
        alpha: float,
        scale: float | None,
        causal: bool,
        lengths: Tensor | None,
    ) -> None:
        if block_mask.length != (q.shape[2], k.shape[2]):
            fail_shapes("block_mask", block_mask.length, "the lengths of q and k", (q.shape[2], k.shape[2]))
        if any(own not in (1, size) for own, size in zip(block_mask.shape, q.shape[:2], strict=True)):
            fail_shapes("block_mask", block_mask.kv_indices.shape, "q", q.shape)
        self.size, self.length, self.blocks = block_mask.block_size, block_mask.length, block_mask.blocks
        self.heads = tuple(q.shape[:2])
        self.queries = self._split(q, 0.0)  # [R, M, D]
        self.keys = KeyBlocks.of(k, self.size[1], lengths)
        self.alpha, self.causal, self.lengths = alpha, causal, lengths
        self.scale = q.shape[-1] ** -0.5 if scale is None else scale
        self.dtype = torch.promote_types(q.dtype, torch.float32)
        self.everything = torch.arange(len(self.queries), device=q.device)
        head = self.everything // self.blocks[0]
        self.batch, group = head // q.shape[1], q.shape[1] // k.shape[1]
        self.kv_head = self.batch * k.shape[1] + head % q.shape[1] // group

    def _split(self, rows: Tensor, fill: float) -> Tensor:
        """``[B, H, Q, *]`` as ``[R, M, *]``, the last block of each head filled up."""
        missing = (0, 0) * (rows.ndim - 3) + (0, -rows.shape[2] % self.size[0])
        return pad(rows, missing, value=fill).unflatten(2, (-1, self.size[0])).flatten(0, 2)

    def by_query(self, rows: Tensor) -> Tensor:
        """``[R, M]`` as ``[B, H, Q]``."""
        return rows.reshape(*self.heads, -1)[..., : self.length[0]]

    def visited(self, block_mask: BlockMask) -> Tensor:
        """``Bool[R, N]``, a copy."""
        return block_mask.to_dense().expand(*self.heads, *self.blocks).flatten(0, 2).clone()

    def block_mask(self, visited: Tensor) -> BlockMask:
        """The inverse of :meth:`visited`."""
        return BlockMask.from_dense(visited.view(*self.heads, *self.blocks), self.size, self.length)

    def share(self, visited: Tensor) -> float:
        """How many of the allowed pairs of blocks are among ``visited [R, N]``; 1 if none is allowed."""
        found = most = 0
        for chunk in self._chunks(self.everything):
            allowed = self._allowed(chunk).any(1)
            found, most = found + int((allowed & visited[chunk]).sum()), most + int(allowed.sum())
        return found / most if most else 1.0

    def certified(self, blocks: Tensor, tau: Tensor, visited: Tensor) -> tuple[Tensor, Tensor]:
        """Which rows of the blocks of queries ``blocks [S]`` are certified, and what could settle the others.

        Parameters
        ----------
        tau : Tensor ``[B, H, Q]``
            What the attention over ``visited Bool[R, N]`` found.

        Returns
        -------
        rows ``Bool[S, M]``
            True where no skipped block can hold an edge.
        excess ``[S, N]``
            By how much a block's largest possible score exceeds the threshold; ``-inf`` if it is visited, hidden or ruled out.
        """
        taus = self._split(tau, torch.inf)
        found = [self._certified(chunk, taus[chunk].double(), visited[chunk]) for chunk in self._chunks(blocks)]
        rows, excess = zip(*found, strict=True)
        return torch.cat(rows), torch.cat(excess)

    def resolved(self, visited: Tensor) -> Tensor:
        """True where all scores over ``visited [R, N]`` are known well enough, or none is allowed: ``Bool[R, M]``."""
        return torch.cat([self._resolved(chunk, visited[chunk]) for chunk in self._chunks(self.everything)])

    def _resolved(self, blocks: Tensor, visited: Tensor) -> Tensor:
        length = self.queries[blocks].double().norm(dim=-1) * abs(self.scale)
        longest = _longest(self.keys.reach[self.kv_head[blocks]], visited)
        error = score_error(length, longest, self.queries.shape[-1], self.dtype)
        return (error <= SCORE_RESOLUTION) | ~self._allowed(blocks).any(-1)

    def largest_score(self) -> float:
        """What :meth:`resolved` accepts: the most that the length of a query times that of a key and the scale may be."""
        one = torch.ones(1, dtype=torch.float64)
        return SCORE_RESOLUTION / score_error(one[None], one, self.queries.shape[-1], self.dtype).item()

    def _chunks(self, blocks: Tensor) -> tuple[Tensor, ...]:
        return blocks.split(max(1, CHUNK_PAIRS // (self.size[0] * self.blocks[1])))

    def _certified(self, blocks: Tensor, tau: Tensor, visited: Tensor) -> tuple[Tensor, Tensor]:
        q, head = self.queries[blocks].double() * (self.alpha - 1) * self.scale, self.kv_head[blocks]
        bound = self.keys.largest_scores(q, head)
        lowest = self._lowest(tau, q, self.keys.reach[head], visited)[..., None]
        failing = self._allowed(blocks) & ~visited[:, None] & ~(bound <= lowest)
        # Where nothing is known of the threshold, the largest score stands for the excess.
        excess = bound - lowest.masked_fill(lowest == -torch.inf, 0.0)
        return ~failing.any(-1), excess.masked_fill_(~failing, -torch.inf).amax(1)

    def _lowest(self, tau: Tensor, q: Tensor, reach: Tensor, visited: Tensor) -> Tensor:
        """What the threshold over all keys cannot be below: ``[S, M]``."""
        if self.alpha == 1:
            return torch.full_like(tau, -torch.inf)
        keys = visited.sum(-1) * self.size[1]
        error = threshold_error(q.norm(dim=-1), _longest(reach, visited), keys, q.shape[-1], self.dtype)
        return torch.where(tau == torch.inf, -torch.inf, tau - error)

    def _allowed(self, blocks: Tensor) -> Tensor:
        """True where a query may see some key of a block: ``Bool[S, M, N]``."""
        query = (blocks % self.blocks[0] * self.size[0])[:, None] + torch.arange(self.size[0], device=blocks.device)
        first_key = torch.arange(self.blocks[1], device=blocks.device) * self.size[1]
        limit = blocks.new_full(blocks.shape, self.length[0])
        limit = limit if self.lengths is None else self.lengths[self.batch[blocks]]
        allowed = (query < limit[:, None])[..., None].expand(-1, -1, self.blocks[1])
        if self.lengths is not None:
            allowed = allowed & (first_key < limit[:, None, None])
        return allowed & (first_key <= query[..., None]) if self.causal else allowed


def _longest(reach: Tensor, visited: Tensor) -> Tensor:
    """The largest ``reach [S, N]`` of the blocks ``visited [S, N]``: ``[S]``."""
    return reach.masked_fill(~visited, 0.0).amax(-1)
