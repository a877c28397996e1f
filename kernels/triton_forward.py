"""Forward pass of block-sparse entmax attention in Triton.

Each program processes a tile of queries and sweeps over its visited keys several times without storing scores. The first sweep
estimates the thresholds. Usually one sweep refines them, and one sums the weighted values. Softmax takes one sweep in total.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from .lists import BlockLists, broadcast_strides
from .tile_sizes import STAGES, TileSizes, alive_shape, padded
from .triton_entmax import (
    LOG2_E,
    LOWEST,
    SMALLEST_STEP,
    SOFTMAX,
    SQUARES,
    below_largest,
    far,
    folded,
    kind_of,
    maximum,
    online_step,
    refined,
    tolerance_of,
    weights,
)
from .triton_tiles import listed_tile, load_tile, product, store_tile, upcast, without_hidden

#: Largest number of sweeps that refine a threshold; one is usual in half precision and three in single precision.
MOST_SWEEPS = 12


@triton.jit
def _products(
    q, k_ptr, list_ptr, step, count, seen, hidden, key_limit, stride_n, stride_d,
    D: tl.constexpr, TILE_D: tl.constexpr, K_BLOCK: tl.constexpr, KEY_STEP: tl.constexpr,
    EVEN: tl.constexpr, MASKED: tl.constexpr, UPCAST: tl.constexpr,
):  # fmt: skip
    """Return a step's products ``[ROW_TILE, KEY_STEP]``, ``-inf`` for keys not below their row's `seen`, and its keys."""
    start, local = listed_tile(list_ptr, step, count, K_BLOCK, KEY_STEP)
    k = load_tile(k_ptr, start, local, key_limit, stride_n, stride_d, D, TILE_D, EVEN)
    x = product(q, tl.trans(k), UPCAST)
    if MASKED:
        x = without_hidden(x, start, local, seen, hidden, K_BLOCK, KEY_STEP)
    return x, start, local


@triton.jit(do_not_specialize=["heads", "group", "queries", "keys", "tiles", "width"])
def _forward(
    q_ptr, k_ptr, v_ptr, output_ptr, tau_ptr, alive_ptr, counts_ptr, indices_ptr, lengths_ptr,
    q_sb, q_sh, q_sn, q_sd, k_sb, k_sh, k_sn, k_sd, v_sb, v_sh, v_sn, v_sd,
    counts_sb, counts_sh, indices_sb, indices_sh, indices_sq,
    heads, group, queries, keys, tiles, width, factor, power, tolerance,
    D: tl.constexpr, E: tl.constexpr, TILE_D: tl.constexpr, TILE_E: tl.constexpr,
    ROWS: tl.constexpr, ROW_TILE: tl.constexpr, PARTS: tl.constexpr, K_BLOCK: tl.constexpr, KEY_STEP: tl.constexpr,
    KIND: tl.constexpr, CAUSAL: tl.constexpr, EVEN: tl.constexpr, UPCAST: tl.constexpr, SWEEPS: tl.constexpr,
):  # fmt: skip
    """Compute output, tau and flags of live blocks; each program processes a tile of queries."""
    tile = tl.program_id(0) % tiles
    if CAUSAL:
        tile = tiles - 1 - tile  # longest lists first
    batch = (tl.program_id(0) // tiles // heads).to(tl.int64)
    head = (tl.program_id(0) // tiles % heads).to(tl.int64)
    limit = queries
    key_limit = keys
    if lengths_ptr is not None:
        limit = tl.minimum(tl.load(lengths_ptr + batch), keys).to(tl.int32)  # lengths may be unchecked
        key_limit = limit
    row = tile * ROWS + tl.arange(0, ROW_TILE)
    owned = (tl.arange(0, ROW_TILE) < ROWS) & (row < queries)
    sees = owned & (row < limit)
    seen = tl.where(sees, key_limit, 0)  # a row attends to the keys below this one
    if CAUSAL:
        seen = tl.where(sees, tl.minimum(row + 1, key_limit), 0)
    hidden = tl.min(tl.where(sees, seen, key_limit), 0)
    MASKED: tl.constexpr = CAUSAL or not EVEN

    q_block = tile // PARTS
    count = tl.load(counts_ptr + batch * counts_sb + head * counts_sh + q_block)
    count = tl.where(tile * ROWS < limit, count, 0)
    steps = tl.cdiv(count * K_BLOCK, KEY_STEP)
    list_ptr = indices_ptr + batch * indices_sb + head * indices_sh + q_block.to(tl.int64) * indices_sq
    k_base = k_ptr + batch * k_sb + head // group * k_sh
    v_base = v_ptr + batch * v_sb + head // group * v_sh
    q = load_tile(
        q_ptr + batch * q_sb + head * q_sh, tile * ROWS, tl.arange(0, ROW_TILE), queries, q_sn, q_sd, D, TILE_D, False
    )
    first = (batch * heads + head) * queries
    accumulated = tl.zeros([ROW_TILE, TILE_E], tl.float32)

    if KIND == SOFTMAX:
        largest = tl.full([ROW_TILE], LOWEST, tl.float32)  # in base-2 logarithms
        total = tl.zeros([ROW_TILE], tl.float32)
        for step in range(0, steps):
            x, start, local = _products(
                q, k_base, list_ptr, step, count, seen, hidden, key_limit, k_sn, k_sd,
                D, TILE_D, K_BLOCK, KEY_STEP, EVEN, MASKED, UPCAST,
            )  # fmt: skip
            raised = maximum(largest, tl.max(x, 1) * (factor * LOG2_E))
            shrunk = tl.exp2(largest - raised)
            p = tl.exp2(tl.fma(x, factor * LOG2_E, -raised[:, None]))
            total = total * shrunk + tl.sum(p, 1)
            v = load_tile(v_base, start, local, key_limit, v_sn, v_sd, E, TILE_E, EVEN)
            accumulated = accumulated * shrunk[:, None] + product(p.to(v.dtype), v, UPCAST)
            largest = raised
        # Tiles are masked only if a row with allowed keys needs it, so sums of rows without allowed keys are reset here.
        total = tl.where(sees, total, 0.0)
        accumulated = tl.where(sees[:, None], accumulated, 0.0)
        tau = (largest + tl.log2(total)) / LOG2_E
        tau = tl.where(sees & (total != 0), tau, float("inf"))
    else:
        tau = tl.full([ROW_TILE], LOWEST, tl.float32)
        level = tl.zeros([ROW_TILE], tl.float32)
        slope = tl.zeros([ROW_TILE], tl.float32)
        largest = tl.full([ROW_TILE], LOWEST, tl.float32)
        for step in range(0, steps):
            x, start, local = _products(
                q, k_base, list_ptr, step, count, seen, hidden, key_limit, k_sn, k_sd,
                D, TILE_D, K_BLOCK, KEY_STEP, EVEN, MASKED, UPCAST,
            )  # fmt: skip
            tau, level, slope, largest = online_step(tau, level, slope, largest, x, factor, power, KIND)

        sees = sees & (tau != LOWEST)
        tau = below_largest(tau, largest)
        lower = below_largest(largest - 1, largest)
        sweep = 0
        unsettled = tl.max(sees.to(tl.int32), 0)
        while (sweep < SWEEPS) & (unsettled > 0):
            totals = tl.zeros([ROW_TILE, 8], tl.float32)
            belows = tl.zeros([ROW_TILE, 8], tl.float32)
            supports = tl.zeros([ROW_TILE, 8], tl.float32)
            for step in range(0, steps):
                x, start, local = _products(
                    q, k_base, list_ptr, step, count, seen, hidden, key_limit, k_sn, k_sd,
                    D, TILE_D, K_BLOCK, KEY_STEP, EVEN, MASKED, UPCAST,
                )  # fmt: skip
                p, w = weights(x, factor, tau[:, None], None, power, KIND)
                totals += folded(p, ROW_TILE, KEY_STEP)
                belows += folded(w, ROW_TILE, KEY_STEP)
                if KIND == SQUARES:
                    supports += folded(tl.where(w > 0, 1.0, 0.0), ROW_TILE, KEY_STEP)
            before = tau
            total = tl.sum(totals, 1)
            below = tl.sum(belows, 1)
            support = tl.sum(supports, 1)
            tau, lower = refined(tau, lower, total, below, support, power, KIND)
            tau = below_largest(tau, largest)
            moved = tl.abs(tau - before) > tl.abs(before) * SMALLEST_STEP
            unsettled = tl.max((far(total, below, support, tolerance, KIND) & moved & sees).to(tl.int32), 0)
            sweep += 1

        tau = tl.where(sees, tau, float("inf"))
        nothing = tl.where(tau == tau, 0.0, tau)
        total = tl.zeros([ROW_TILE], tl.float32)
        for step in range(0, steps):
            x, start, local = _products(
                q, k_base, list_ptr, step, count, seen, hidden, key_limit, k_sn, k_sd,
                D, TILE_D, K_BLOCK, KEY_STEP, EVEN, MASKED, UPCAST,
            )  # fmt: skip
            p, _ = weights(x, factor, tau[:, None], nothing[:, None], power, KIND)
            v = load_tile(v_base, start, local, key_limit, v_sn, v_sd, E, TILE_E, EVEN)
            accumulated += product(p.to(v.dtype), v, UPCAST)
            weight = tl.sum(p, 1)
            total += weight
            # Several rows or keys may write to their block's flag, but all write 1. NaN counts as alive.
            flags = alive_ptr + ((batch * heads + head) * tiles + tile) * width
            if K_BLOCK % KEY_STEP == 0:
                flag = flags + step // (K_BLOCK // KEY_STEP) + tl.zeros([ROW_TILE], tl.int32)
                tl.store(flag, tl.full([ROW_TILE], 1, tl.int8), mask=weight != 0)
            else:
                offset = step * KEY_STEP + tl.arange(0, KEY_STEP)
                living = (tl.sum(p, 0) != 0) & (offset < count * K_BLOCK)
                tl.store(flags + offset // K_BLOCK, tl.full([KEY_STEP], 1, tl.int8), mask=living)

    accumulated = tl.where(total == 0, 0.0, 1 / total)[:, None] * accumulated
    tl.store(tau_ptr + first + row, tau, mask=owned)
    store_tile(output_ptr + first * E, accumulated, row, owned, E, TILE_E)


def forward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    lists: BlockLists,
    lengths: Tensor | None,
    sizes: TileSizes,
    *,
    alpha: float,
    scale: float,
    causal: bool,
    precise: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the forward pass.

    Parameters
    ----------
    q, k, v : Tensor ``[B, H, Q, D]``, ``[B, G, K, D]``, ``[B, G, K, E]``
        Queries, keys and values.
    lists : BlockLists
        Visited blocks; if `causal`, without future blocks.
    lengths : int Tensor ``[B]``, optional
        Tokens of each sequence.
    sizes : TileSizes
        Tile sizes for the blocks of `lists`.
    alpha : float
        From 1 to 2.
    scale : float
        Positive factor on ``q @ k.T``.
    causal : bool
        Whether each query attends only to its own and earlier keys.
    precise : bool
        Whether to refine thresholds of half precision as accurately as for float32.

    Returns
    -------
    output : Tensor ``[B, H, Q, E]``
        In the dtype of `q`.
    tau : float32 Tensor ``[B, H, Q]``
        Threshold of each query, infinite for a query with no allowed key.
    alive : int8 Tensor ``[B, H, tiles, W]``
        1 for listed blocks with a nonzero weight, by tile of ``sizes.rows`` queries and position in the list. Empty for
        softmax, where no weight is 0.

    Notes
    -----
    Repeated calls give bitwise equal results, because the order of all sums is fixed.
    """
    (b, h, n, d), (keys, e) = q.shape, v.shape[2:]
    output = torch.empty((b, h, n, e), dtype=q.dtype, device=q.device)
    tau = torch.empty((b, h, n), dtype=torch.float32, device=q.device)
    width = lists.indices.shape[-1]
    alive = torch.zeros(alive_shape(q.shape, width, sizes, alpha), dtype=torch.int8, device=q.device)
    tiles, kind = -(-n // sizes.rows), kind_of(alpha)
    even = lengths is None and keys % lists.block[1] == 0 and lists.block[1] % sizes.key_step == 0
    if b * h * tiles:
        with torch.cuda.device_of(q):
            _forward[(b * h * tiles,)](
                q, k, v, output, tau, alive, lists.counts, lists.indices, lengths,
                *q.stride(), *k.stride(), *v.stride(), *broadcast_strides(lists.counts),
                *broadcast_strides(lists.indices), lists.indices.stride(2), h, h // k.shape[1], n, keys, tiles, width,
                scale if alpha == 1 else scale * (alpha - 1), 1.0 if alpha == 1 else 1 / (alpha - 1),
                tolerance_of(kind, torch.float32 if precise else q.dtype),
                D=d, E=e, TILE_D=padded(d), TILE_E=padded(e), ROWS=sizes.rows, ROW_TILE=sizes.row_tile,
                PARTS=lists.block[0] // sizes.rows, K_BLOCK=lists.block[1], KEY_STEP=sizes.key_step, KIND=kind,
                CAUSAL=causal, EVEN=even, UPCAST=upcast(q), SWEEPS=MOST_SWEEPS,
                num_warps=sizes.row_warps, num_stages=STAGES,
                maxnreg=sizes.registers if kind == SQUARES.value else None,
            )  # fmt: skip
    return output, tau, alive
