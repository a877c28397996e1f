"""Certified exactness: which rows of a block-sparse attention provably equal full entmax attention.

The threshold over some of the keys is never above the threshold over all: a key that joins can only raise it. So a block that
was skipped, and whose largest possible score is at most the threshold found without it, holds no edge. Where that is true of
every skipped block, the threshold and all weights of the row are those of full attention. Softmax (alpha = 1) has no zero
weights: there a row is certified only if no block was skipped.

All of this is up to rounding, and weights follow from differences of scores: where single precision has no digits left for
these, among very large scores, no row is certified.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from .block_mask import BlockMask
from .checks import fail_shapes
from .pairs import BlockPairs

#: Block size of a search that begins without a mask.
BLOCK = 64

#: ``(q, k, v, block_mask, *, alpha, scale, causal, lengths) -> (output [B, H, Q, E], tau [B, H, Q])``
Attend = Callable[..., tuple[Tensor, Tensor]]


@dataclass(frozen=True, eq=False)
class Certificate:
    """What is known of the rows of a block-sparse attention.

    Attributes
    ----------
    rows : Bool Tensor ``[B, H, Q]``
        True where the weights provably are those of full entmax attention; the output then is too, to rounding: no score of
        the row is off by more than 1/64. In float32 that holds while the lengths of query and key, times the scale, make at
        most 3,640 at D = 64 (``2 ** 18 / (D + 8)``). False is no proof of the contrary. Rows that may see no key, and are 0,
        are True.
    block_mask : BlockMask, optional
        The blocks that were visited; None if all.
    share : float
        How many of the blocks that hold an allowed pair, by causality and lengths, were visited; 1 if there are none.
    rounds : int
        How often blocks were added to those given.

    >>> from sparselib.kernels import BlockMask, block_sparse_entmax_attention
    >>> q, k, v = torch.randn(3, 1, 2, 32, 16).unbind(0)
    >>> every = BlockMask.from_dense(torch.ones(1, 2, 4, 4, dtype=torch.bool), block_size=8, length=32)
    >>> output, found = block_sparse_entmax_attention(q, k, v, every, certify=True)
    >>> found.rows.all(), found.share, found.rounds
    (tensor(True), 1.0, 0)
    """

    rows: Tensor
    block_mask: BlockMask | None
    share: float
    rounds: int


def certify(
    q: Tensor,
    k: Tensor,
    tau: Tensor,
    block_mask: BlockMask | None,
    *,
    alpha: float = 1.5,
    scale: float | None = None,
    causal: bool = False,
    lengths: Tensor | None = None,
) -> Certificate:
    """Which rows of an attention over the blocks of `block_mask` are those of full entmax attention.

    Parameters
    ----------
    tau : Tensor ``[B, H, Q]``
        The thresholds that the attention found, infinite for rows without keys, from scores computed in float32 or better.

    The other arguments are those of the attention: :func:`sparselib.kernels.block_sparse_entmax_attention`. Time is that of
    three products per query, block of keys and dimension, and memory linear in the number of queries.

    Raises
    ------
    ValueError
        If `tau` or `block_mask` does not fit q and k.
    """
    if tau.shape != q.shape[:3]:
        fail_shapes("tau", tau.shape, "q", q.shape)
    if _without_pairs(q, k):
        return Certificate(torch.ones_like(tau, dtype=torch.bool), block_mask, 1.0, 0)
    mask = _blocks(q, k, visited=True) if block_mask is None else block_mask
    with torch.no_grad():
        pairs = BlockPairs(q, k, mask, alpha=alpha, scale=scale, causal=causal, lengths=lengths)
        visited = pairs.visited(mask)
        rows = pairs.resolved(visited)
        if block_mask is None:
            return Certificate(pairs.by_query(rows), None, 1.0, 0)
        rows = rows & pairs.certified(pairs.everything, tau, visited)[0]
        return Certificate(pairs.by_query(rows), block_mask, pairs.share(visited), 0)


def exact(
    attend: Attend,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    block_mask: BlockMask | None = None,
    *,
    alpha: float = 1.5,
    scale: float | None = None,
    causal: bool = False,
    lengths: Tensor | None = None,
) -> tuple[Tensor, Tensor, Certificate]:
    """Full entmax attention, visiting as few blocks as the bounds allow: blocks are added until every row is certified.

    A block of queries adds the blocks of keys that fail the bound, those with the largest possible scores first, and at most
    as many as it visits already: each round raises the threshold, and so spares blocks that seemed to be needed. Only blocks
    of queries with an uncertified row are computed again; the last pass is over all of them, and it alone is differentiated.

    Parameters
    ----------
    attend : callable
        The attention: its arguments are those that follow, and it returns output and tau.
    block_mask : BlockMask, optional
        Where to begin. Without it, with no block at all, in blocks of 64: the first block that is visited is the one that the
        bounds promise most of. (With alpha = 1, all blocks are visited at once: none can be spared.)

    Returns
    -------
    output ``[B, H, Q, E]``, tau ``[B, H, Q]``
        Those of the last pass, with its gradients.
    Certificate
        All of its rows are True.

    Raises
    ------
    ValueError
        If scores are too large for the dtype to certify a row at all.
    """
    rules = {"alpha": alpha, "scale": scale, "causal": causal, "lengths": lengths}
    if _without_pairs(q, k):
        output, tau = attend(q, k, v, block_mask, **rules)
        return output, tau, certify(q, k, tau, block_mask)
    if alpha == 1:
        output, tau = attend(q, k, v, None, **rules)
        mask = _blocks(q, k, visited=True)
        pairs = BlockPairs(q.detach(), k.detach(), mask, **rules)
        return output, tau, _complete_certificate(pairs, pairs.visited(mask), None, 0)
    mask = _blocks(q, k, visited=False) if block_mask is None else block_mask
    pairs, rounds = BlockPairs(q.detach(), k.detach(), mask, **rules), 0
    while True:
        output, tau = attend(q, k, v, mask, **rules)
        visited = pairs.visited(mask)
        rows, excess = pairs.certified(pairs.everything, tau, visited)
        if rows.all():
            return output, tau, _complete_certificate(pairs, visited, mask, rounds)
        with torch.no_grad():
            rounds += _complete(visited, rows, excess, pairs, lambda mask: attend(q, k, v, mask, **rules)[1])
        mask = pairs.block_mask(visited)


def _without_pairs(q: Tensor, k: Tensor) -> bool:
    """Whether there is no query or no key: every row, if there are any, is 0 then."""
    return 0 in (*q.shape[:3], k.shape[2])


def _blocks(q: Tensor, k: Tensor, *, visited: bool) -> BlockMask:
    """All blocks, or none."""
    length = (q.shape[2], k.shape[2])
    blocks = torch.full((1, 1, *(-(-n // BLOCK) for n in length)), visited, device=q.device)
    return BlockMask.from_dense(blocks, BLOCK, length)


def _complete_certificate(pairs: BlockPairs, visited: Tensor, mask: BlockMask | None, rounds: int) -> Certificate:
    """That of rows which no skipped block can hold an edge of; refused where scores are too large to say so."""
    rows = pairs.resolved(visited)
    if not rows.all():
        raise ValueError(
            f"q, k: exact attention in {pairs.dtype} needs scores below {pairs.largest_score():.3g} (length of a query times "
            "length of a key times scale), and these are larger; float64 resolves larger ones"
        )
    return Certificate(pairs.by_query(rows), mask, pairs.share(visited) if mask else 1.0, rounds)


def _complete(
    visited: Tensor, rows: Tensor, excess: Tensor, pairs: BlockPairs, thresholds: Callable[[BlockMask], Tensor]
) -> int:
    """Add blocks to ``visited [R, N]``, in place, until every row is certified; the number of rounds.

    ``rows`` and ``excess`` are what :meth:`BlockPairs.certified` says of `visited`.
    """
    rounds, pending = 0, pairs.everything
    while (doubtful := ~rows.all(-1)).any():
        pending, excess = pending[doubtful], excess[doubtful]
        visited[pending] = _grown(visited[pending], excess)
        # The blocks of queries that are done need no further pass.
        partly = torch.zeros_like(visited).index_copy_(0, pending, visited[pending])
        rows, excess = pairs.certified(pending, thresholds(pairs.block_mask(partly)), visited)
        rounds += 1
    return rounds


def _grown(visited: Tensor, excess: Tensor) -> Tensor:
    """``visited [S, N]`` and the blocks of the largest ``excess [S, N]``: at most as many as were visited, and one at least."""
    place = excess.argsort(dim=-1, descending=True, stable=True).argsort(dim=-1)
    return visited | ((excess > -torch.inf) & (place < visited.sum(-1, keepdim=True).clamp_min(1)))
