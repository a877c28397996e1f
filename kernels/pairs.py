"""All pairs of a query block and a key block: which are allowed, which were visited, and which may contain an edge."""

import torch
from torch import Tensor
from torch.nn.functional import pad

from .block_mask import BlockMask
from .bounds import SCORE_RESOLUTION, KeyBlocks, score_error, threshold_error

#: Pairs of a query and a key block per chunk.
CHUNK_PAIRS = 1 << 20


class BlockPairs:
    """The R = B * H * Q_blocks query blocks of an attention, of M queries each, and the N key blocks that each could visit.

    Parameters
    ----------
    q, k : Tensor ``[B, H, Q, D]``, ``[B, G, K, D]``
        Queries and keys.
    block_mask : BlockMask
        Defines the block size and the lengths; its blocks are not used.
    alpha, scale, causal, lengths
        As for the attention.

    Raises
    ------
    ValueError
        If the mask does not match `q` and `k`.
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
            raise ValueError(
                f"`block_mask` must have the lengths of `q` and `k`, {(q.shape[2], k.shape[2])}, got {block_mask.length}"
            )
        if any(mask_size not in (1, size) for mask_size, size in zip(block_mask.shape, q.shape[:2], strict=True)):
            raise ValueError(
                f"`block_mask` must have the batch size and heads of `q`, {tuple(q.shape[:2])}, or 1, got {block_mask.shape}"
            )
        self.size, self.length, self.blocks = block_mask.block_size, block_mask.length, block_mask.blocks
        self.heads = tuple(q.shape[:2])
        self.queries = self._split(q, 0.0)  # [R, M, D]
        self.keys = KeyBlocks.of(k, self.size[1], lengths)
        self.alpha, self.causal, self.lengths = alpha, causal, lengths
        self.scale = q.shape[-1] ** -0.5 if scale is None else scale
        self.dtype = torch.promote_types(q.dtype, torch.float32)
        self.all_blocks = torch.arange(len(self.queries), device=q.device)
        head = self.all_blocks // self.blocks[0]
        self.batch, group = head // q.shape[1], q.shape[1] // k.shape[1]
        self.kv_head = self.batch * k.shape[1] + head % q.shape[1] // group

    def _split(self, rows: Tensor, fill: float) -> Tensor:
        """Split ``[B, H, Q, *]`` into ``[R, M, *]`` and fill up the last block of each head."""
        padding = (0, 0) * (rows.ndim - 3) + (0, -rows.shape[2] % self.size[0])
        return pad(rows, padding, value=fill).unflatten(2, (-1, self.size[0])).flatten(0, 2)

    def by_query(self, rows: Tensor) -> Tensor:
        """Return values per query in the shape of the attention.

        Parameters
        ----------
        rows : Tensor ``[R, M]``
            Values by query block.

        Returns
        -------
        Tensor ``[B, H, Q]``
            The same values without the padding of the last blocks.
        """
        return rows.reshape(*self.heads, -1)[..., : self.length[0]]

    def visited(self, block_mask: BlockMask) -> Tensor:
        """Return the blocks of a mask by query block.

        Parameters
        ----------
        block_mask : BlockMask
            A mask of the same lengths and block size.

        Returns
        -------
        Bool Tensor ``[R, N]``
            True where a block is visited; a copy.
        """
        return block_mask.to_dense().expand(*self.heads, *self.blocks).flatten(0, 2).clone()

    def block_mask(self, visited: Tensor) -> BlockMask:
        """Return the mask of visited blocks, the inverse of :meth:`visited`.

        Parameters
        ----------
        visited : Bool Tensor ``[R, N]``
            True where a block is visited.

        Returns
        -------
        BlockMask
            The same blocks.
        """
        return BlockMask.from_dense(visited.view(*self.heads, *self.blocks), self.size, self.length)

    def share(self, visited: Tensor) -> float:
        """Return the visited share of the allowed block pairs.

        Parameters
        ----------
        visited : Bool Tensor ``[R, N]``
            True where a block is visited.

        Returns
        -------
        float
            From 0 to 1; 1 if no pair is allowed.
        """
        visited_count = allowed_count = 0
        for chunk in self._chunks(self.all_blocks):
            allowed = self._allowed(chunk).any(1)
            visited_count += int((allowed & visited[chunk]).sum())
            allowed_count += int(allowed.sum())
        return visited_count / allowed_count if allowed_count else 1.0

    def certified(self, blocks: Tensor, tau: Tensor, visited: Tensor) -> tuple[Tensor, Tensor]:
        """Return which rows of some query blocks are certified, and which key blocks could contain the others' edges.

        Parameters
        ----------
        blocks : int64 Tensor ``[S]``
            Query blocks.
        tau : Tensor ``[B, H, Q]``
            Thresholds of the attention over `visited`.
        visited : Bool Tensor ``[R, N]``
            True where a block is visited.

        Returns
        -------
        rows : Bool Tensor ``[S, M]``
            True where no skipped block can contain an edge.
        excess : float64 Tensor ``[S, N]``
            Difference between a block's largest possible score and the threshold. It is ``-inf`` for blocks that are visited,
            hidden or ruled out.
        """
        taus = self._split(tau, torch.inf)
        results = [self._certified(chunk, taus[chunk].double(), visited[chunk]) for chunk in self._chunks(blocks)]
        rows, excess = zip(*results, strict=True)
        return torch.cat(rows), torch.cat(excess)

    def resolved(self, visited: Tensor) -> Tensor:
        """Return which rows have scores accurate enough for a certificate.

        Parameters
        ----------
        visited : Bool Tensor ``[R, N]``
            True where a block is visited.

        Returns
        -------
        Bool Tensor ``[R, M]``
            True where the error of every visited score is at most 1/64, or the query has no allowed key.
        """
        return torch.cat([self._resolved(chunk, visited[chunk]) for chunk in self._chunks(self.all_blocks)])

    def _resolved(self, blocks: Tensor, visited: Tensor) -> Tensor:
        """Apply :meth:`resolved` to a chunk of query blocks."""
        length = self.queries[blocks].double().norm(dim=-1) * abs(self.scale)
        longest = _longest(self.keys.reach[self.kv_head[blocks]], visited)
        error = score_error(length, longest, self.queries.shape[-1], self.dtype)
        return (error <= SCORE_RESOLUTION) | ~self._allowed(blocks).any(-1)

    def largest_score(self) -> float:
        """Return the largest score ``|q| * |k| * scale`` that :meth:`resolved` accepts.

        Returns
        -------
        float
            It depends on the head dimension and the dtype.
        """
        unit = torch.ones(1, dtype=torch.float64)
        return SCORE_RESOLUTION / score_error(unit[None], unit, self.queries.shape[-1], self.dtype).item()

    def _chunks(self, blocks: Tensor) -> tuple[Tensor, ...]:
        """Split query blocks into chunks of bounded memory."""
        return blocks.split(max(1, CHUNK_PAIRS // (self.size[0] * self.blocks[1])))

    def _certified(self, blocks: Tensor, tau: Tensor, visited: Tensor) -> tuple[Tensor, Tensor]:
        """Apply :meth:`certified` to a chunk of query blocks."""
        q, head = self.queries[blocks].double() * (self.alpha - 1) * self.scale, self.kv_head[blocks]
        bound = self.keys.largest_scores(q, head)
        lowest = self._lowest(tau, q, self.keys.reach[head], visited)[..., None]
        failing = self._allowed(blocks) & ~visited[:, None] & ~(bound <= lowest)
        # Without a bound on the threshold, the largest possible score ranks the blocks.
        excess = bound - lowest.masked_fill(lowest == -torch.inf, 0.0)
        return ~failing.any(-1), excess.masked_fill_(~failing, -torch.inf).amax(1)

    def _lowest(self, tau: Tensor, q: Tensor, reach: Tensor, visited: Tensor) -> Tensor:
        """Return a lower bound ``[S, M]`` on the threshold over all keys."""
        if self.alpha == 1:
            return torch.full_like(tau, -torch.inf)
        keys = visited.sum(-1) * self.size[1]
        error = threshold_error(q.norm(dim=-1), _longest(reach, visited), keys, q.shape[-1], self.dtype)
        return torch.where(tau == torch.inf, -torch.inf, tau - error)

    def _allowed(self, blocks: Tensor) -> Tensor:
        """Return where a query may attend to some key of a block: ``Bool[S, M, N]``."""
        query = (blocks % self.blocks[0] * self.size[0])[:, None] + torch.arange(self.size[0], device=blocks.device)
        first_key = torch.arange(self.blocks[1], device=blocks.device) * self.size[1]
        limit = blocks.new_full(blocks.shape, self.length[0])
        limit = limit if self.lengths is None else self.lengths[self.batch[blocks]]
        allowed = (query < limit[:, None])[..., None].expand(-1, -1, self.blocks[1])
        if self.lengths is not None:
            allowed = allowed & (first_key < limit[:, None, None])
        return allowed & (first_key <= query[..., None]) if self.causal else allowed


def _longest(reach: Tensor, visited: Tensor) -> Tensor:
    """Return the largest ``reach [S, N]`` of the blocks ``visited [S, N]``: ``[S]``."""
    return reach.masked_fill(~visited, 0.0).amax(-1)
