"""Certificates: which rows of a block-sparse attention provably equal full entmax attention.

An additional key can only raise the threshold, so the threshold over some keys is never above the threshold over all keys. If
the largest possible score of a skipped block is at most the threshold computed without it, the block contains no edge. If that
holds for every skipped block, the row has the threshold and the weights of full attention. Softmax (alpha = 1) has no zero
weights, so it certifies only rows without a skipped block.

The certificates account for rounding. Weights depend on differences of scores. Among very large scores, single precision cannot
resolve these differences, and no row is certified.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from .block_mask import BlockMask
from .pairs import BlockPairs

#: Block size of a search without an initial mask.
BLOCK = 64

#: Function ``(q, k, v, block_mask, *, alpha, scale, causal, lengths) -> (output [B, H, Q, E], tau [B, H, Q])``.
Attend = Callable[..., tuple[Tensor, Tensor]]


@dataclass(frozen=True, eq=False)
class Certificate:
    """Rows of a block-sparse attention that provably equal full entmax attention.

    Attributes
    ----------
    rows : Bool Tensor ``[B, H, Q]``
        True where the weights provably equal those of full entmax attention. The output is then equal up to rounding, because
        no score of the row has an error above 1/64. In float32, that requires ``|q| * |k| * scale`` of at most ``2 ** 18 / (D +
        8)``, which is 3,640 at D = 64. False does not prove the contrary. Rows without an allowed key are True; their output is
        0.
    block_mask : BlockMask, optional
        The visited blocks; None if all blocks were visited.
    share : float
        Visited share of the blocks with a pair that causality and lengths allow; 1 if there are no such blocks.
    rounds : int
        Number of times that blocks were added to the given ones.

    Examples
    --------
    >>> import torch
    >>> from sparselib.kernels import BlockMask, block_sparse_entmax_attention
    >>> q, k, v = torch.randn(3, 1, 2, 32, 16).unbind(0)
    >>> mask = BlockMask.from_dense(torch.ones(1, 2, 4, 4, dtype=torch.bool), block_size=8, length=32)
    >>> output, certificate = block_sparse_entmax_attention(q, k, v, mask, certify=True)
    >>> certificate.rows.all(), certificate.share, certificate.rounds
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
    """Certify the rows of an attention over the blocks of a mask.

    Parameters
    ----------
    q, k : Tensor ``[B, H, Q, D]``, ``[B, G, K, D]``
        Queries and keys, as for :func:`sparselib.kernels.block_sparse_entmax_attention`.
    tau : Tensor ``[B, H, Q]``
        The attention's thresholds, infinite for rows without keys, from scores computed in float32 or better.
    block_mask : BlockMask, optional
        The visited blocks; None if all blocks were visited.
    alpha, scale, causal, lengths
        As for the attention.

    Returns
    -------
    Certificate
        With `block_mask` and 0 rounds.

    Raises
    ------
    ValueError
        If `tau` or `block_mask` does not match `q` and `k`.

    Notes
    -----
    The time is three products per query, key block and dimension. The memory is linear in the number of queries.
    """
    if tau.shape != q.shape[:3]:
        raise ValueError(
            f"`tau` must have shape {tuple(q.shape[:3])}, a threshold for each query, got {tuple(tau.shape)}"
        )
    if _without_pairs(q, k):
        return Certificate(torch.ones_like(tau, dtype=torch.bool), block_mask, 1.0, 0)
    mask = _blocks(q, k, visited=True) if block_mask is None else block_mask
    with torch.no_grad():
        pairs = BlockPairs(q, k, mask, alpha=alpha, scale=scale, causal=causal, lengths=lengths)
        visited = pairs.visited(mask)
        rows = pairs.resolved(visited)
        if block_mask is None:
            return Certificate(pairs.by_query(rows), None, 1.0, 0)
        rows = rows & pairs.certified(pairs.all_blocks, tau, visited)[0]
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
    """Compute full entmax attention over as few blocks as the bounds allow.

    Parameters
    ----------
    attend : callable
        The attention. It takes the following arguments and returns output and tau.
    q, k, v : Tensor ``[B, H, Q, D]``, ``[B, G, K, D]``, ``[B, G, K, E]``
        As for the attention.
    block_mask : BlockMask, optional
        Blocks to visit first. By default, the search starts with no blocks, in blocks of 64, and first visits the block with
        the largest possible score.
    alpha, scale, causal, lengths
        As for the attention. With ``alpha = 1``, all blocks are visited at once, because none can be skipped.

    Returns
    -------
    output : Tensor ``[B, H, Q, E]``
        Output of the last pass, with its gradients.
    tau : Tensor ``[B, H, Q]``
        Thresholds of the last pass.
    certificate : Certificate
        A certificate whose rows are all True.

    Raises
    ------
    ValueError
        If scores are too large to certify a row in the dtype.

    Notes
    -----
    Blocks are added until every row is certified. In each round, a query block adds the key blocks that fail the bound, largest
    possible scores first, and at most as many as it already visits. Each round raises the threshold, and so rules out blocks
    that failed the bound before. Only query blocks with an uncertified row are computed again. The last pass computes all query
    blocks, and only this pass is differentiated.
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
        rows, excess = pairs.certified(pairs.all_blocks, tau, visited)
        if rows.all():
            return output, tau, _complete_certificate(pairs, visited, mask, rounds)
        with torch.no_grad():
            rounds += _complete(visited, rows, excess, pairs, lambda mask: attend(q, k, v, mask, **rules)[1])
        mask = pairs.block_mask(visited)


def _without_pairs(q: Tensor, k: Tensor) -> bool:
    """Return whether there is no query or no key, so that every row is 0."""
    return 0 in (*q.shape[:3], k.shape[2])


def _blocks(q: Tensor, k: Tensor, *, visited: bool) -> BlockMask:
    """Return a mask of all blocks or of no block."""
    length = (q.shape[2], k.shape[2])
    blocks = torch.full((1, 1, *(-(-n // BLOCK) for n in length)), visited, device=q.device)
    return BlockMask.from_dense(blocks, BLOCK, length)


def _complete_certificate(pairs: BlockPairs, visited: Tensor, mask: BlockMask | None, rounds: int) -> Certificate:
    """Return a certificate with all rows True, or raise if scores are too large to resolve."""
    rows = pairs.resolved(visited)
    if not rows.all():
        raise ValueError(
            f"`q` and `k` must have scores |q| |k| scale below {pairs.largest_score():.3g} for exact attention in "
            f"{pairs.dtype}, got larger ones; use float64, which resolves larger scores"
        )
    return Certificate(pairs.by_query(rows), mask, pairs.share(visited) if mask else 1.0, rounds)


def _complete(
    visited: Tensor, rows: Tensor, excess: Tensor, pairs: BlockPairs, thresholds: Callable[[BlockMask], Tensor]
) -> int:
    """Add blocks to ``visited [R, N]`` in place until every row is certified, and return the number of rounds.

    ``rows`` and ``excess`` are the results of :meth:`BlockPairs.certified` for `visited`.
    """
    rounds, pending = 0, pairs.all_blocks
    while (uncertified := ~rows.all(-1)).any():
        pending, excess = pending[uncertified], excess[uncertified]
        visited[pending] = _grown(visited[pending], excess)
        # Query blocks that are already certified need no further pass.
        visited_by_pending = torch.zeros_like(visited).index_copy_(0, pending, visited[pending])
        rows, excess = pairs.certified(pending, thresholds(pairs.block_mask(visited_by_pending)), visited)
        rounds += 1
    return rounds


def _grown(visited: Tensor, excess: Tensor) -> Tensor:
    """Add the blocks with the largest ``excess [S, N]`` to ``visited [S, N]``, at most as many again, but at least one."""
    rank = excess.argsort(dim=-1, descending=True, stable=True).argsort(dim=-1)
    return visited | ((excess > -torch.inf) & (rank < visited.sum(-1, keepdim=True).clamp_min(1)))
