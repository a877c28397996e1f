"""Entmax attention of a few new queries over many cached keys, in three Triton kernels that each fill a GPU.

The queries of all heads that share keys form the rows of one tile, so each key is read only once. The first kernel writes the
scores and each row's largest score per step of keys, which take little memory compared with the keys. The second kernel
computes each row's threshold. The third reads only the values of steps where some row has a weight, often few with entmax.
"""

from math import gcd

import torch
import triton
import triton.language as tl
from torch import Tensor

from .lists import BlockLists, broadcast_strides
from .tile_sizes import padded
from .triton_cache import cached_tile, extent, positions
from .triton_entmax import SMALLEST_STEP, SOFTMAX, below_largest, far, kind_of, refined, tolerance_of, weights
from .triton_tiles import product, upcast

#: Largest number of rows per tile.
MOST_ROWS = 64
#: Programs per multiprocessor, enough to hide the latency of their loads.
PROGRAMS = 4
#: Largest number of sweeps that refine a threshold, as in the forward pass of training.
MOST_SWEEPS = 12
#: Steps of keys that the threshold search processes at a time.
STEPS = 64


@triton.jit
def _living(largest, factor, tau, KIND: tl.constexpr):
    """Return whether a step with this largest product may have a nonzero weight; True for NaN."""
    if KIND == SOFTMAX:
        dead = largest == float("-inf")
    else:
        dead = tl.fma(largest, factor, -tau) <= 0
    return ~dead


@triton.jit
def _scores(
    q_ptr, k_ptr, scores_ptr, largest_ptr, counts_ptr, indices_ptr, lengths_ptr, pages_ptr,
    q_sb, q_sh, q_sn, q_sd, k_sb, k_sh, k_sn, k_sd, counts_sb, counts_sh, indices_sb, indices_sh,
    kv_heads, rows, queries, keys, pages, splits, width,
    PAGE: tl.constexpr, D: tl.constexpr, TILE_D: tl.constexpr, ROW_TILE: tl.constexpr, K_BLOCK: tl.constexpr,
    KEY_STEP: tl.constexpr, UPCAST: tl.constexpr,
):  # fmt: skip
    """Write products and each row's largest; each program processes a tile of rows and every `splits`-th step of keys."""
    batch = (tl.program_id(0) // kv_heads).to(tl.int64)
    head = (tl.program_id(0) % kv_heads).to(tl.int64)
    row = tl.program_id(2) * ROW_TILE + tl.arange(0, ROW_TILE)
    owned = row < rows
    limit, count, steps = extent(counts_ptr, lengths_ptr, batch, head, counts_sb, counts_sh, keys, K_BLOCK, KEY_STEP)
    query = row % queries
    seen = tl.where(owned, limit - (queries - 1 - query), 0)  # the last query is its sequence's last token
    own_head = head * (rows // queries) + row // queries
    column = tl.arange(0, TILE_D)
    q_offset = own_head[:, None] * q_sh + query.to(tl.int64)[:, None] * q_sn + column[None, :] * q_sd
    q = tl.load(q_ptr + batch * q_sb + q_offset, mask=owned[:, None] & (column < D)[None, :], other=0.0)
    listed = batch * indices_sb + head * indices_sh
    target = (tl.program_id(0).to(tl.int64) * rows + row) * width
    for step in range(tl.program_id(1), steps, splits):
        start, local = positions(indices_ptr, listed, step, count, K_BLOCK, KEY_STEP)
        k = cached_tile(
            k_ptr, pages_ptr, batch, head, start, local, limit, k_sb, k_sh, k_sn, k_sd, pages, PAGE, D, TILE_D
        )  # fmt: skip
        x = product(q, tl.trans(k), UPCAST)
        x = tl.where((start + local)[None, :] < seen[:, None], x, float("-inf"))
        nans = tl.max((x != x).to(tl.int32), 1)
        largest = tl.where(nans > 0, float("nan"), tl.max(x, 1))
        pointers = scores_ptr + (target + step)[:, None] * KEY_STEP + tl.arange(0, KEY_STEP)[None, :]
        tl.store(pointers, x, mask=owned[:, None])
        tl.store(largest_ptr + target + step, largest, mask=owned)


@triton.jit
def _thresholds(
    scores_ptr, largest_ptr, tau_ptr, share_ptr, counts_ptr, lengths_ptr, counts_sb, counts_sh,
    kv_heads, rows, keys, width, factor, power, tolerance,
    K_BLOCK: tl.constexpr, KEY_STEP: tl.constexpr, KIND: tl.constexpr, STEPS: tl.constexpr, SWEEPS: tl.constexpr,
):  # fmt: skip
    """Write each row's threshold, and the factor that normalises its weights to the sum 1; each program processes a row."""
    first = tl.program_id(0).to(tl.int64) * width
    batch = (tl.program_id(0) // rows // kv_heads).to(tl.int64)
    head = (tl.program_id(0) // rows % kv_heads).to(tl.int64)
    _limit, _count, steps = extent(counts_ptr, lengths_ptr, batch, head, counts_sb, counts_sh, keys, K_BLOCK, KEY_STEP)
    offset = tl.arange(0, STEPS)
    tops = tl.full([STEPS], float("-inf"), tl.float32)
    for start in range(0, steps, STEPS):
        top = tl.load(largest_ptr + first + start + offset, mask=start + offset < steps, other=float("-inf"))
        tops = tl.maximum(tops, top, propagate_nan=tl.PropagateNan.ALL)
    largest = tl.where(tl.max((tops != tops).to(tl.int32), 0) > 0, float("nan"), tl.max(tops, 0)) * factor
    sees = largest != float("-inf")
    tau = tl.where(sees, largest, float("inf"))
    if KIND != SOFTMAX:
        tau = tl.where(sees, below_largest(largest - 1, largest), float("inf"))
        lower = tau
        sweep = 0
        unsettled = sees
        while (sweep < SWEEPS) & unsettled:
            total, below, support = _sums(
                scores_ptr, largest_ptr, first, steps, factor, tau, power, KEY_STEP, KIND, STEPS
            )
            before = tau
            tau, lower = refined(tau, lower, total, below, support, power, KIND)
            tau = below_largest(tau, largest)
            moved = tl.abs(tau - before) > tl.abs(before) * SMALLEST_STEP
            unsettled = far(total, below, support, tolerance, KIND) & moved
            sweep += 1
    total, _below, _support = _sums(scores_ptr, largest_ptr, first, steps, factor, tau, power, KEY_STEP, KIND, STEPS)
    tl.store(tau_ptr + tl.program_id(0), tau)
    tl.store(share_ptr + tl.program_id(0), tl.where(total == 0, 0.0, 1 / total))


@triton.jit
def _sums(
    scores_ptr, largest_ptr, first, steps, factor, tau, power,
    KEY_STEP: tl.constexpr, KIND: tl.constexpr, STEPS: tl.constexpr,
):  # fmt: skip
    """Return the sums of p and w of a row at `tau` and the keys above it, without reading steps that have no weight."""
    totals = tl.zeros([STEPS, KEY_STEP], tl.float32)
    belows = tl.zeros([STEPS, KEY_STEP], tl.float32)
    supports = tl.zeros([STEPS, KEY_STEP], tl.float32)
    for start in range(0, steps, STEPS):
        step = start + tl.arange(0, STEPS)
        top = tl.load(largest_ptr + first + step, mask=step < steps, other=float("-inf"))
        pointers = scores_ptr + (first + step)[:, None] * KEY_STEP + tl.arange(0, KEY_STEP)[None, :]
        living = (step < steps) & _living(top, factor, tau, KIND)
        x = tl.load(pointers, mask=living[:, None], other=float("-inf"))
        p, w = weights(x, factor, tau, None, power, KIND)
        totals += p
        belows += w
        supports += tl.where(w > 0, 1.0, 0.0)
    return tl.sum(tl.sum(totals, 1), 0), tl.sum(tl.sum(belows, 1), 0), tl.sum(tl.sum(supports, 1), 0)


@triton.jit
def _weigh(
    scores_ptr, largest_ptr, tau_ptr, share_ptr, v_ptr, parts_ptr, counts_ptr, indices_ptr, lengths_ptr, pages_ptr,
    v_sb, v_sh, v_sn, v_sd, counts_sb, counts_sh, indices_sb, indices_sh,
    kv_heads, rows, keys, pages, splits, width, factor, power,
    PAGE: tl.constexpr, E: tl.constexpr, TILE_E: tl.constexpr, ROW_TILE: tl.constexpr, K_BLOCK: tl.constexpr,
    KEY_STEP: tl.constexpr, KIND: tl.constexpr, UPCAST: tl.constexpr,
):  # fmt: skip
    """Write each program's part of the output, for the same rows and steps as in `_scores`."""
    batch = (tl.program_id(0) // kv_heads).to(tl.int64)
    head = (tl.program_id(0) % kv_heads).to(tl.int64)
    row = tl.program_id(2) * ROW_TILE + tl.arange(0, ROW_TILE)
    owned = row < rows
    limit, count, steps = extent(counts_ptr, lengths_ptr, batch, head, counts_sb, counts_sh, keys, K_BLOCK, KEY_STEP)
    number = tl.program_id(0).to(tl.int64) * rows + row
    tau = tl.load(tau_ptr + number, mask=owned, other=float("inf"))
    nothing = tl.where(tau == tau, 0.0, tau)
    listed = batch * indices_sb + head * indices_sh
    accumulated = tl.zeros([ROW_TILE, TILE_E], tl.float32)
    for step in range(tl.program_id(1), steps, splits):
        top = tl.load(largest_ptr + number * width + step, mask=owned, other=float("-inf"))
        if tl.max((owned & _living(top, factor, tau, KIND)).to(tl.int32), 0) > 0:
            pointers = scores_ptr + (number * width + step)[:, None] * KEY_STEP + tl.arange(0, KEY_STEP)[None, :]
            x = tl.load(pointers, mask=owned[:, None], other=float("-inf"))
            p, _ = weights(x, factor, tau[:, None], nothing[:, None], power, KIND)
            start, local = positions(indices_ptr, listed, step, count, K_BLOCK, KEY_STEP)
            v = cached_tile(
                v_ptr, pages_ptr, batch, head, start, local, limit, v_sb, v_sh, v_sn, v_sd, pages, PAGE, E, TILE_E
            )  # fmt: skip
            accumulated += product(p.to(v.dtype), v, UPCAST)
    share = tl.load(share_ptr + number, mask=owned, other=0.0)
    column = tl.arange(0, TILE_E)
    pointers = parts_ptr + ((number * splits + tl.program_id(1)) * E)[:, None] + column[None, :]
    tl.store(pointers, accumulated * share[:, None], mask=owned[:, None] & (column < E)[None, :])


def decode(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    lists: BlockLists | None,
    lengths: Tensor | None,
    pages: Tensor | None,
    *,
    alpha: float,
    scale: float,
) -> Tensor:
    """Compute attention of the newest tokens.

    Parameters
    ----------
    q, k, v : Tensor ``[B, H, M, D]``, ``[B, G, n, D]``, ``[B, G, n, E]``
        Queries and cache.
    lists : BlockLists, optional
        Visited blocks of one query block, per key head. By default, all keys are visited.
    lengths : int Tensor ``[B]``, optional
        Tokens of each sequence in the cache.
    pages : contiguous int Tensor ``[B, P]``, optional
        Page table; the cache is then a pool of pages ``[N, G, S, D]``, ``[N, G, S, E]``.
    alpha : float
        From 1 to 2.
    scale : float
        Positive factor on ``q @ k.T``.

    Returns
    -------
    Tensor ``[B, H, M, E]``
        In the dtype of `q`.

    Notes
    -----
    Repeated calls give bitwise equal outputs, because the parts are added in a fixed order.
    """
    (b, h, m, d), (kv_heads, page, e) = q.shape, v.shape[1:]
    per_sequence = 1 if pages is None else pages.shape[1]
    keys = page * per_sequence
    rows, kind = h // kv_heads * m, kind_of(alpha)
    key_step = _key_step(gcd(0 if lists is None else lists.block[1], 0 if pages is None else page), q.dtype)
    block = key_step if lists is None else lists.block[1]
    width = -(-(keys if lists is None else lists.indices.shape[-1] * block) // key_step)
    if not b * h * m * width * e:
        return torch.zeros((b, h, m, e), dtype=q.dtype, device=q.device)
    row_tile = min(MOST_ROWS, padded(rows))
    grid = (b * kv_heads, _splits(b * kv_heads * -(-rows // row_tile), width, q), -(-rows // row_tile))
    scores = torch.empty((b * kv_heads, rows, width, key_step), dtype=torch.float32, device=q.device)
    largest = torch.empty(scores.shape[:3], dtype=torch.float32, device=q.device)
    tau, share = (torch.empty(scores.shape[:2], dtype=torch.float32, device=q.device) for _ in range(2))
    parts = torch.empty((b * kv_heads, rows, grid[1], e), dtype=torch.float32, device=q.device)
    counts, indices = (None, None) if lists is None else (lists.counts, lists.indices)
    strides = [(0, 0) if x is None else broadcast_strides(x) for x in (counts, indices)]
    factors = (scale if alpha == 1 else scale * (alpha - 1), 1.0 if alpha == 1 else 1 / (alpha - 1))
    tiles = {
        "PAGE": page if pages is not None else 1,
        "ROW_TILE": row_tile,
        "K_BLOCK": block,
        "KEY_STEP": key_step,
        "UPCAST": upcast(q),
        "num_warps": 4,
    }
    tiles["num_stages"] = 2 if q.dtype == torch.float32 else 3
    with torch.cuda.device_of(q):
        _scores[grid](
            q, k, scores, largest, counts, indices, lengths, pages, *q.stride(), *k.stride(), *strides[0], *strides[1],
            kv_heads, rows, m, keys, per_sequence, grid[1], width, D=d, TILE_D=padded(d), **tiles,
        )  # fmt: skip
        _thresholds[(b * kv_heads * rows,)](
            scores, largest, tau, share, counts, lengths, *strides[0], kv_heads, rows, keys, width, *factors,
            tolerance_of(kind, q.dtype), K_BLOCK=block, KEY_STEP=key_step, KIND=kind, STEPS=STEPS, SWEEPS=MOST_SWEEPS,
            num_warps=8,
        )  # fmt: skip
        _weigh[grid](
            scores, largest, tau, share, v, parts, counts, indices, lengths, pages, *v.stride(), *strides[0], *strides[1],
            kv_heads, rows, keys, per_sequence, grid[1], width, *factors, E=e, TILE_E=padded(e), KIND=kind, **tiles,
        )  # fmt: skip
    return parts.sum(2).to(q.dtype).view(b, h, m, e)


def _key_step(size: int, dtype: torch.dtype) -> int:
    """Return the keys per step: a large divisor of a block and a page, so that a step is contiguous, or the preferred step.

    A size of 0 has any divisor.
    """
    preferred = 32 if dtype == torch.float32 else 64
    return next((step for step in (preferred, 32, 16) if step <= preferred and size % step == 0), preferred)


def _splits(programs: int, steps: int, x: Tensor) -> int:
    """Return the number of parts that the steps are split into, so that all multiprocessors have work."""
    processors = torch.cuda.get_device_properties(x.device).multi_processor_count if x.is_cuda else 2  # interpreted
    return max(1, min(steps, -(-PROGRAMS * processors // programs)))
