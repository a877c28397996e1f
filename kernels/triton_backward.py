"""Backward pass of block-sparse entmax attention in Triton, over the blocks with a nonzero weight in the forward pass.

The gradient of the scores is ``dS = w * (dP - delta)`` with ``delta = sum(w * dP) / sum(w)`` for each query. The output and its
gradient give ``sum(p * dP)`` without a sweep. It equals delta for alpha = 1 and is close to it otherwise, so it serves as a
first guess. One sweep sums ``w * (dP - guess) * k`` and ``w * k`` and corrects the gradient of q once delta is known. The
correction is small, so little cancels, and no second sweep is needed.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from .lists import BlockLists, broadcast_strides
from .tile_sizes import STAGES, TileSizes, padded
from .triton_entmax import SOFTMAX, folded, kind_of, weights
from .triton_lists import from_both_sides
from .triton_tiles import listed_tile, load_tile, product, store_tile, upcast, without_hidden


@triton.jit(do_not_specialize=["heads", "group", "queries", "keys", "tiles"])
def _gradient_of_queries(
    q_ptr, k_ptr, v_ptr, output_ptr, grad_ptr, tau_ptr, dq_ptr, delta_ptr, counts_ptr, indices_ptr, lengths_ptr,
    q_sb, q_sh, q_sn, q_sd, k_sb, k_sh, k_sn, k_sd, v_sb, v_sh, v_sn, v_sd, g_sb, g_sh, g_sn, g_sd,
    counts_sb, counts_sh, indices_sb, indices_sh, indices_sq,
    heads, group, queries, keys, tiles, factor, power, scale,
    D: tl.constexpr, E: tl.constexpr, TILE_D: tl.constexpr, TILE_E: tl.constexpr,
    ROWS: tl.constexpr, ROW_TILE: tl.constexpr, K_BLOCK: tl.constexpr, KEY_STEP: tl.constexpr,
    KIND: tl.constexpr, CAUSAL: tl.constexpr, EVEN: tl.constexpr, UPCAST: tl.constexpr,
):  # fmt: skip
    """Compute dq, and delta for the gradients of k and v; each program processes a tile of queries."""
    tile = tl.program_id(0) % tiles
    if CAUSAL:
        tile = tiles - 1 - tile  # longest lists first
    batch = (tl.program_id(0) // tiles // heads).to(tl.int64)
    head = (tl.program_id(0) // tiles % heads).to(tl.int64)
    key_limit = keys
    if lengths_ptr is not None:
        key_limit = tl.minimum(tl.load(lengths_ptr + batch), keys).to(tl.int32)
    local_row = tl.arange(0, ROW_TILE)
    row = tile * ROWS + local_row
    owned = (local_row < ROWS) & (row < queries)
    seen = tl.where(owned, key_limit, 0)  # a row attends to the keys below this one
    if CAUSAL:
        seen = tl.minimum(row + 1, seen)
    hidden = tl.min(tl.where(owned, seen, key_limit), 0)
    first = (batch * heads + head) * queries
    tau = tl.load(tau_ptr + first + row, mask=owned, other=float("inf"))
    q = load_tile(q_ptr + batch * q_sb + head * q_sh, tile * ROWS, local_row, queries, q_sn, q_sd, D, TILE_D, False)
    grad_base = grad_ptr + batch * g_sb + head * g_sh
    grad = load_tile(grad_base, tile * ROWS, local_row, queries, g_sn, g_sd, E, TILE_E, False)
    output = load_tile(output_ptr + first * E, tile * ROWS, local_row, queries, E, 1, E, TILE_E, False)
    guess = tl.sum(grad.to(tl.float32) * output.to(tl.float32), 1)

    count = tl.load(counts_ptr + batch * counts_sb + head * counts_sh + tile)
    list_ptr = indices_ptr + batch * indices_sb + head * indices_sh + tile.to(tl.int64) * indices_sq
    k_base = k_ptr + batch * k_sb + head // group * k_sh
    v_base = v_ptr + batch * v_sb + head // group * v_sh
    about_guess = tl.zeros([ROW_TILE, TILE_D], tl.float32)
    weighted = tl.zeros([ROW_TILE, TILE_D], tl.float32)
    above_guess = tl.zeros([ROW_TILE, 8], tl.float32)
    totals = tl.zeros([ROW_TILE, 8], tl.float32)
    for step in range(0, tl.cdiv(count * K_BLOCK, KEY_STEP)):
        start, local = listed_tile(list_ptr, step, count, K_BLOCK, KEY_STEP)
        k = load_tile(k_base, start, local, key_limit, k_sn, k_sd, D, TILE_D, EVEN)
        v = load_tile(v_base, start, local, key_limit, v_sn, v_sd, E, TILE_E, EVEN)
        x = product(q, tl.trans(k), UPCAST)
        if CAUSAL or not EVEN:
            x = without_hidden(x, start, local, seen, hidden, K_BLOCK, KEY_STEP)
        _, w = weights(x, factor, tau[:, None], None, power, KIND)
        ds = w * (product(grad, tl.trans(v), UPCAST) - guess[:, None])
        about_guess += product(ds.to(k.dtype), k, UPCAST)
        if KIND != SOFTMAX:
            weighted += product(w.to(k.dtype), k, UPCAST)
            above_guess += folded(ds, ROW_TILE, KEY_STEP)
            totals += folded(w, ROW_TILE, KEY_STEP)

    if KIND != SOFTMAX:
        total = tl.sum(totals, 1)
        correction = tl.where(total == 0, 0.0, tl.sum(above_guess, 1) / total)
        about_guess -= correction[:, None] * weighted
        guess += correction
    tl.store(delta_ptr + first + row, guess, mask=owned)
    store_tile(dq_ptr + first * D, about_guess * scale, row, owned, D, TILE_D)


@triton.jit(do_not_specialize=["heads", "group", "queries", "keys", "key_tiles"])
def _gradients_of_keys(
    q_ptr, k_ptr, v_ptr, grad_ptr, tau_ptr, delta_ptr, dk_ptr, dv_ptr, ends_ptr, members_ptr, lengths_ptr,
    q_sb, q_sh, q_sn, q_sd, k_sb, k_sh, k_sn, k_sd, v_sb, v_sh, v_sn, v_sd, g_sb, g_sh, g_sn, g_sd,
    ends_sb, ends_sh, members_sb, members_sh,
    heads, group, queries, keys, key_tiles, factor, power, scale,
    D: tl.constexpr, E: tl.constexpr, TILE_D: tl.constexpr, TILE_E: tl.constexpr,
    ROWS: tl.constexpr, ROW_STEP: tl.constexpr, PARTS: tl.constexpr, KEYS: tl.constexpr, KEY_TILE: tl.constexpr,
    KIND: tl.constexpr, CAUSAL: tl.constexpr, EVEN: tl.constexpr, UPCAST: tl.constexpr,
):  # fmt: skip
    """Compute dk and dv; each program processes a tile of keys and visits the query tiles of all heads that share it."""
    tile = tl.program_id(0) % key_tiles
    kv_heads = heads // group
    batch = (tl.program_id(0) // key_tiles // kv_heads).to(tl.int64)
    kv_head = (tl.program_id(0) // key_tiles % kv_heads).to(tl.int64)
    key_limit = keys
    if lengths_ptr is not None:
        key_limit = tl.minimum(tl.load(lengths_ptr + batch), keys).to(tl.int32)
    local_key = tl.arange(0, KEY_TILE)
    key = tile * KEYS + local_key
    owned = (local_key < KEYS) & (key < keys)
    k_base = k_ptr + batch * k_sb + kv_head * k_sh
    v_base = v_ptr + batch * v_sb + kv_head * v_sh
    k = load_tile(k_base, tile * KEYS, local_key, key_limit, k_sn, k_sd, D, TILE_D, False)
    v = load_tile(v_base, tile * KEYS, local_key, key_limit, v_sn, v_sd, E, TILE_E, False)
    dk = tl.zeros([KEY_TILE, TILE_D], tl.float32)
    dv = tl.zeros([KEY_TILE, TILE_E], tl.float32)

    for shared in range(0, group):
        head = kv_head * group + shared
        first = (batch * heads + head) * queries
        block = tile // PARTS
        end_ptr = ends_ptr + batch * ends_sb + head * ends_sh + block
        begin = tl.load(end_ptr - 1, mask=block > 0, other=0)
        count = tl.load(end_ptr) - begin
        list_ptr = members_ptr + batch * members_sb + head * members_sh + begin
        q_base = q_ptr + batch * q_sb + head * q_sh
        grad_base = grad_ptr + batch * g_sb + head * g_sh
        for step in range(0, tl.cdiv(count * ROWS, ROW_STEP)):
            start, local = listed_tile(list_ptr, step, count, ROWS, ROW_STEP)
            q = load_tile(q_base, start, local, queries, q_sn, q_sd, D, TILE_D, EVEN)
            grad = load_tile(grad_base, start, local, queries, g_sn, g_sd, E, TILE_E, EVEN)
            row = start + local
            if EVEN:
                tau = tl.load(tau_ptr + first + row)
                delta = tl.load(delta_ptr + first + row)
            else:
                tau = tl.load(tau_ptr + first + row, mask=row < queries, other=float("inf"))
                delta = tl.load(delta_ptr + first + row, mask=row < queries, other=0.0)
            x = product(k, tl.trans(q), UPCAST)
            if CAUSAL:
                if ROWS % ROW_STEP == 0:
                    if start < tile * KEYS + KEYS - 1:  # otherwise all rows are later than all keys
                        x = tl.where(key[:, None] <= row[None, :], x, float("-inf"))
                else:
                    x = tl.where(key[:, None] <= row[None, :], x, float("-inf"))
            p, w = weights(x, factor, tau[None, :], (0 * delta)[None, :], power, KIND)
            dv += product(p.to(grad.dtype), grad, UPCAST)
            ds = w * (product(v, tl.trans(grad), UPCAST) - delta[None, :])
            dk += product(ds.to(q.dtype), q, UPCAST)

    seen = (key < key_limit)[:, None]
    kv_first = (batch * kv_heads + kv_head) * keys
    store_tile(dk_ptr + kv_first * D, tl.where(seen, dk * scale, 0.0), key, owned, D, TILE_D)
    store_tile(dv_ptr + kv_first * E, tl.where(seen, dv, 0.0), key, owned, E, TILE_E)


def backward(
    grad: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    output: Tensor,
    tau: Tensor,
    alive: Tensor,
    lists: BlockLists,
    lengths: Tensor | None,
    sizes: TileSizes,
    *,
    alpha: float,
    scale: float,
    causal: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the backward pass.

    Parameters
    ----------
    grad : Tensor ``[B, H, Q, E]``
        Gradient of the output.
    q, k, v, lists, lengths, sizes, alpha, scale, causal
        As for :func:`sparselib.kernels.triton_forward.forward`.
    output, tau, alive : Tensor
        As returned by the forward pass.

    Returns
    -------
    dq, dk, dv : Tensor
        Gradients in the shapes and dtype of `q`, `k` and `v`.

    Notes
    -----
    The result is deterministic: one program sums each gradient in a fixed order, without atomic additions.
    """
    (b, h, n, d), (kv_heads, keys, e) = q.shape, v.shape[1:]
    k_blocks = -(-keys // lists.block[1])
    lists, visitors = from_both_sides(lists, sizes.rows, -(-n // sizes.rows), None if alpha == 1 else alive, k_blocks)
    delta = torch.empty_like(tau)
    dq, dk, dv = (torch.empty(x.shape, dtype=x.dtype, device=x.device) for x in (q, k, v))
    strides = (*q.stride(), *k.stride(), *v.stride(), *grad.stride())
    numbers = (scale if alpha == 1 else scale * (alpha - 1), 1.0 if alpha == 1 else 1 / (alpha - 1), scale)
    common = {"D": d, "E": e, "TILE_D": padded(d), "TILE_E": padded(e), "ROWS": sizes.rows, "KIND": kind_of(alpha)}
    common |= {"CAUSAL": causal, "UPCAST": upcast(q), "num_stages": STAGES}
    whole_keys = lengths is None and keys % lists.block[1] == 0 and lists.block[1] % sizes.gradient_key_step == 0
    whole_rows = n % sizes.rows == 0 and sizes.rows % sizes.row_step == 0
    tiles, key_tiles = -(-n // sizes.rows), -(-keys // sizes.keys)
    with torch.cuda.device_of(q):
        if b * h * tiles:
            _gradient_of_queries[(b * h * tiles,)](
                q, k, v, output, grad, tau, dq, delta, lists.counts, lists.indices, lengths, *strides,
                *broadcast_strides(lists.counts), *broadcast_strides(lists.indices), lists.indices.stride(2),
                h, h // kv_heads, n, keys, tiles, *numbers, ROW_TILE=sizes.row_tile, K_BLOCK=lists.block[1],
                KEY_STEP=sizes.gradient_key_step, EVEN=whole_keys, num_warps=sizes.row_warps, **common,
            )  # fmt: skip
        if b * h * key_tiles:
            _gradients_of_keys[(b * kv_heads * key_tiles,)](
                q, k, v, grad, tau, delta, dk, dv, visitors.ends, visitors.tiles, lengths, *strides,
                *broadcast_strides(visitors.ends), *broadcast_strides(visitors.tiles),
                h, h // kv_heads, n, keys, key_tiles, *numbers, ROW_STEP=sizes.row_step,
                PARTS=lists.block[1] // sizes.keys, KEYS=sizes.keys, KEY_TILE=sizes.key_tile, EVEN=whole_rows,
                num_warps=sizes.key_warps, **common,
            )  # fmt: skip
    return dq, dk, dv
