"""Attention of each sequence's newest tokens over its cache of keys and values, without a backward pass."""

import torch
from torch import Tensor

from .block_mask import BlockMask
from .checks import (
    autocast,
    check_backend,
    check_factors,
    check_lengths,
    check_same_device,
    check_tensors,
    scaled,
)
from .lists import by_rows, concatenated
from .pages import STEP, check_pages, check_used, read, without_pages
from .registration import registered
from .threshold import SMALLEST_EXCESS, dtype_of_scores, threshold
from .tracing import is_traced

#: Backends that decode.
BACKENDS = ("gather", "triton")


def block_sparse_entmax_decode(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    block_mask: BlockMask | None = None,
    *,
    alpha: float = 1.5,
    scale: float | Tensor | None = None,
    lengths: Tensor | None = None,
    pages: Tensor | None = None,
    backend: str | None = None,
) -> Tensor:
    """Compute causal attention for the newest tokens of each sequence, for generation.

    The result equals the last M rows of :func:`~sparselib.kernels.block_sparse_entmax_attention` with ``causal=True``.

    Parameters
    ----------
    q : Tensor ``[B, H, M, D]``
        Queries of the last M tokens of each sequence: usually one, or a few to verify several candidates at once.
    k, v : Tensor ``[B, G, n, D]``, ``[B, G, n, E]``
        The cache, including the keys and values of these tokens. G must divide H; query heads that share keys are computed
        together. Dtypes are as for the attention. With `pages`, a pool of N pages of S tokens each: ``[N, G, S, D]`` and
        ``[N, G, S, E]``; transpose a pool that is stored as ``[N, S, G, D]``.
    block_mask : BlockMask, optional
        Key blocks to visit, of lengths (M, n), with one query block, and for each of the G key heads or for all. On a CPU and
        without `pages`, each of the H query heads can have its own. By default, all blocks are visited. Blocks beyond `lengths`
        are skipped, so one mask can serve all tokens of a generation.
    alpha, scale, backend
        As for the attention.
    lengths : int Tensor ``[B]``, optional
        Tokens of each sequence in the cache, n by default. Later cache entries are not read. Query m belongs to token
        ``lengths - M + m`` and attends to the keys up to that token.
    pages : int Tensor ``[B, P]``, optional
        Page table, as in vLLM and FlashInfer: the keys and values of sequence b from token ``p * S`` on are in page
        ``pages[b, p]`` of the pool. The cache then has a length of n = P * S. S, and the key blocks of `block_mask`, must be
        multiples of 16. Entries beyond `lengths` are not read.

    Returns
    -------
    Tensor ``[B, H, M, E]``
        In the dtype of `q`; 0 for a query with no allowed key. Repeated calls give bitwise equal outputs.

    Raises
    ------
    ValueError
        If shapes, dtypes or devices do not match.
        If `block_mask` has other lengths, several query blocks or a ``mask_mod``, or a list for each query head where that is
        not supported.
        If `alpha` is outside 1 to 2, or an input requires gradients.
        If `backend` is unknown, or does not support the dtype or device.
        If a length is outside 0 to n, or an entry of `pages` that is used names no page (CPU only; on a GPU, the call does not
        wait for these values, and lengths are clamped).
        If the pages or blocks are not a multiple of 16 tokens.
    NotImplementedError
        If the tensors are neither on a CPU nor on a CUDA device.

    Notes
    -----
    NaN gives NaN in the rows that attend to it. A value with weight 0 may not be read.

    Examples
    --------
    >>> import torch
    >>> from sparselib.kernels import BlockMask, block_sparse_entmax_decode
    >>> q, cache = torch.randn(1, 8, 1, 64), torch.randn(1, 2, 1000, 64)
    >>> visited = torch.tensor([True] + 12 * [False] + 3 * [True]).view(1, 1, 1, 16)
    >>> newest = BlockMask.from_dense(visited, (1, 64), (1, 1000))
    >>> block_sparse_entmax_decode(q, cache, cache, newest, lengths=torch.tensor([900])).shape
    torch.Size([1, 8, 1, 64])

    The same 900 tokens in pages of 64, in any order:

    >>> pool, order = torch.randn(40, 2, 64, 64), torch.randperm(40)[None, :15]
    >>> block_sparse_entmax_decode(q, pool, pool, lengths=torch.tensor([900]), pages=order).shape
    torch.Size([1, 8, 1, 64])
    """
    q, k, v = autocast(q, k, v)
    if pages is None:
        keys, values = k, v
    else:
        check_pages(pages, q, k, v)
        keys, values = without_pages(k, pages), without_pages(v, pages)
    check_tensors(q, keys, values)
    by_query_head = pages is None and (backend or ("triton" if q.is_cuda else "gather")) == "gather"
    _check_block_mask(block_mask, q, keys, multiple=1 if pages is None else STEP, by_query_head=by_query_head)
    _check_numbers(lengths, q, keys)
    if pages is not None:
        check_used(pages, k, lengths)
    check_factors(alpha, scale, q.shape[1])
    check_backend(backend, q, alpha, BACKENDS)
    if isinstance(scale, Tensor):
        q, scale = scaled(q, scale), 1.0
    if torch.is_grad_enabled() and any(x.requires_grad for x in (q, k, v)):
        raise ValueError(
            "`q`, `k` and `v` must not require gradients, because decoding has no backward pass; call it under "
            "torch.no_grad(), or use block_sparse_entmax_attention"
        )
    counts, indices = (None, None) if block_mask is None else concatenated(block_mask.lists())
    k_block = 1 if block_mask is None else block_mask.block_size[1]
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    if scale <= 0:  # The kernels set a hidden key's product to -inf; only a positive scale keeps its score at -inf.
        q, scale = (-q, -scale) if scale < 0 else (0 * q, 1.0)
    backend = backend or ("triton" if q.is_cuda else "gather")
    alpha = 1.0 if alpha - 1 < SMALLEST_EXCESS else float(alpha)
    return _operator(q, k, v, counts, indices, lengths, pages, k_block, alpha, float(scale), backend)


def _check_block_mask(block_mask: BlockMask | None, q: Tensor, k: Tensor, multiple: int, by_query_head: bool) -> None:
    """Check that a block mask matches the queries and the cache in lengths, batch size, heads, block size and device."""
    if block_mask is None:
        return
    if not isinstance(block_mask, BlockMask):
        raise ValueError(
            f"`block_mask` must be a BlockMask, got {type(block_mask)}; convert it with BlockMask.from_flex"
        )
    if block_mask.length != (q.shape[2], k.shape[2]):
        raise ValueError(
            f"`block_mask` must have the lengths of `q` and `k`, {(q.shape[2], k.shape[2])}, got {block_mask.length}"
        )
    if block_mask.mask_mod is not None:
        raise ValueError(
            "`block_mask` must have no mask_mod, which decoding does not apply; use BlockMask.from_flex(..., "
            "drop_mask_mod=True), or block_sparse_entmax_attention"
        )
    if block_mask.blocks[0] != 1:
        raise ValueError(
            f"`block_mask` must have one query block, got {block_mask.blocks[0]}; use query blocks of {q.shape[2]} or more"
        )
    if block_mask.block_size[1] % multiple:
        raise ValueError(
            f"`block_mask` must have key blocks of a multiple of {multiple} with `pages`, got {block_mask.block_size[1]}"
        )
    batch, heads = block_mask.shape
    if batch not in (1, len(k)) or heads not in (1, k.shape[1], *([q.shape[1]] if by_query_head else [])):
        raise ValueError(
            f"`block_mask` must have the batch size and key heads of `k`, {tuple(k.shape[:2])}, or 1, got {block_mask.shape}"
        )
    check_same_device("block_mask", block_mask.device, q)


def _check_numbers(lengths: Tensor | None, q: Tensor, k: Tensor) -> None:
    """Check lengths, and also their values on a CPU."""
    check_lengths(lengths, q)
    skip_values = is_traced(q) or q.is_cuda
    if lengths is not None and not skip_values and ((lengths < 0) | (lengths > k.shape[2])).any():
        raise ValueError(f"`lengths` must be from 0 to {k.shape[2]}, the length of the cache, got {lengths.tolist()}")


def _decode(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    counts: Tensor | None,
    indices: Tensor | None,
    lengths: Tensor | None,
    pages: Tensor | None,
    k_block: int,
    alpha: float,
    scale: float,
    backend: str,
) -> Tensor:
    """Run a backend; arguments are checked, and scale is positive."""
    if backend == "gather":
        return _gathered(q, k, v, counts, indices, lengths, pages, k_block, alpha, scale)
    from . import triton_decode, triton_tiles

    triton_tiles.check_device(q)
    lists = None if counts is None else by_rows(counts, indices, (q.shape[2], k_block))
    lengths, pages = (None if x is None else x.contiguous() for x in (lengths, pages))
    return triton_decode.decode(q, k, v, lists, lengths, pages, alpha=alpha, scale=scale)


def _gathered(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    counts: Tensor | None,
    indices: Tensor | None,
    lengths: Tensor | None,
    pages: Tensor | None,
    k_block: int,
    alpha: float,
    scale: float,
) -> Tensor:
    """Gather the visited keys and compute all scores at once, which take little memory for few queries."""
    (b, h, m, d), (kv_heads, keys) = q.shape, k.shape[1:3]
    if pages is not None:
        keys *= pages.shape[1]
    if not q.shape[:3].numel() * (keys if indices is None else indices.shape[-1]):
        return q.new_zeros((b, h, m, v.shape[-1]))
    dtype = dtype_of_scores(q.dtype, alpha)
    # Rows that visit the same keys: those of the query heads that share a key head, or those of one query head.
    rows = kv_heads if indices is None else max(kv_heads, indices.shape[1])
    position = torch.arange(keys, device=q.device).expand(b, rows, keys)
    limit = position.new_full((b,), keys) if lengths is None else lengths.long().clamp(0, keys)
    if indices is not None:
        column = torch.arange(indices.shape[-1], device=q.device)
        # Unlisted entries get a position behind the cache, which the mask below hides.
        block = torch.where(column < counts[..., None], indices, keys)[:, :, 0]
        position = (block[..., None].long() * k_block + torch.arange(k_block, device=q.device)).flatten(2)
        position = position.expand(b, rows, -1)
    if pages is not None:
        k, v = (read(x, pages, position.clamp_max(keys - 1)) for x in (k, v))
    elif indices is not None:
        sequence = torch.arange(b, device=q.device)[:, None, None]
        key_head = (torch.arange(rows, device=q.device) // (rows // kv_heads))[:, None]
        k, v = (x[sequence, key_head, position.clamp_max(keys - 1)] for x in (k, v))
    is_whole_cache = lengths is None and indices is None
    newest = torch.arange(m, device=q.device) - (m - 1)
    seen = position[:, :, None] < (limit[:, None] + newest)[:, None, :, None]  # [B, R, M, K]
    # Stacked rows are ordered by head and then query.
    scores = q.to(dtype).reshape(b, rows, -1, d) @ k.to(dtype).mT * (scale * (1 if alpha == 1 else alpha - 1))
    if not is_whole_cache or m > 1:
        scores = scores.masked_fill_(~seen.repeat(1, 1, h // rows, 1), -torch.inf)
    largest = scores.amax(-1, keepdim=True)
    empty = largest == -torch.inf
    shifted = (scores - largest).masked_fill_(empty, 0.0)
    u = torch.empty_like(shifted)
    threshold(shifted, alpha, u)
    weights = u.exp_() if alpha == 1 else u.pow_(1 / (alpha - 1))
    v = v.to(dtype)
    if not is_whole_cache:  # values behind a sequence may be NaN, which a weight of 0 would not hide
        v = v.masked_fill(~seen.any(2)[..., None], 0.0)
    return (weights.masked_fill(empty, 0.0) @ v).view(b, h, m, -1).to(q.dtype)


def _fake(q, k, v, *_):
    """Return an empty output of the right shape, for ``torch.compile`` and export."""
    return q.new_empty((*q.shape[:3], v.shape[-1]))


def _raise_without_gradients(ctx, *_) -> None:
    """Raise, because there is no backward pass."""
    raise NotImplementedError("decoding has no gradients; use block_sparse_entmax_attention")


_operator = registered("block_sparse_entmax_decode", _decode, _fake, _raise_without_gradients)
