"""Attention of the newest tokens of each sequence over its cache of keys and values: no backward pass, one launch or few."""

import torch
from torch import Tensor

from .block_mask import BlockMask
from .checks import autocast, check_backend, check_factors, check_lengths, check_tensors, fail_shapes
from .lists import by_rows, concatenated
from .registration import registered
from .threshold import threshold


def block_sparse_entmax_decode(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    block_mask: BlockMask | None = None,
    *,
    alpha: float = 1.5,
    scale: float | None = None,
    lengths: Tensor | None = None,
    backend: str | None = None,
) -> Tensor:
    """The rows of the newest tokens in causal :func:`~sparselib.kernels.block_sparse_entmax_attention`, for generation.

    Parameters
    ----------
    q : Tensor ``[B, H, M, D]``
        Of the last M tokens of each sequence: one usually, a few where several are tried at once.
    k, v : Tensor ``[B, G, n, D]``, ``[B, G, n, E]``
        The cache, which already has those tokens. G divides H, and the heads that share keys are computed together. Dtypes as
        for the attention.
    block_mask : BlockMask, optional
        Blocks of keys to visit, all without it: of length (M, n), with one block of queries, for each of the G heads of keys or
        for all. Without those that `lengths` hides, it may be the same for each token of a generation.
    alpha, scale, backend
        As for the attention.
    lengths : int Tensor ``[B]``, optional
        Tokens of each sequence in the cache, n by default; what follows them is not read. The m-th query, the token ``lengths -
        M + m``, sees the keys up to its own.

    Returns
    -------
    Tensor ``[B, H, M, E]``
        In the dtype of q; 0 where a query sees no key. Twice the same call gives the same bytes.

    Raises
    ------
    ValueError
        For shapes, dtypes or devices that do not fit, a block mask of other lengths or one per head of the queries, alpha
        outside 1 to 2, lengths outside 0 to n (on a CPU: a GPU is not waited for, and takes the nearest), inputs that require
        gradients, and a backend that is unknown or does not fit.
    NotImplementedError
        On a device other than CPU and CUDA.

    Notes
    -----
    NaN gives NaN in the rows that see it; a value whose weight is 0 need not be read.

    Examples
    --------
    >>> import torch
    >>> from sparselib.kernels import BlockMask, block_sparse_entmax_decode
    >>> q, cache = torch.randn(1, 8, 1, 64), torch.randn(1, 2, 1000, 64)
    >>> visited = torch.tensor([True] + 12 * [False] + 3 * [True]).view(1, 1, 1, 16)
    >>> newest = BlockMask.from_dense(visited, (1, 64), (1, 1000))
    >>> block_sparse_entmax_decode(q, cache, cache, newest, lengths=torch.tensor([900])).shape
    torch.Size([1, 8, 1, 64])
    """
    q, k, v = autocast(q, k, v)
    check_tensors(q, k, v)
    _check_block_mask(block_mask, q, k)
    _check_numbers(lengths, q, k)
    check_factors(alpha, scale)
    check_backend(backend, q)
    if torch.is_grad_enabled() and any(x.requires_grad for x in (q, k, v)):
        raise ValueError(
            f"q, k or v of shapes {tuple(q.shape)} and {tuple(k.shape)} requires gradients, and decoding has none: "
            "run it under torch.no_grad(), or take block_sparse_entmax_attention"
        )
    counts, indices = (None, None) if block_mask is None else concatenated(block_mask.lists())
    k_block = 1 if block_mask is None else block_mask.block_size[1]
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    if scale <= 0:  # the kernels want a positive one: a hidden key's product is -inf, and its score has to be
        q, scale = (-q, -scale) if scale < 0 else (0 * q, 1.0)
    backend = backend or ("triton" if q.is_cuda else "gather")
    return _operator(q, k, v, counts, indices, lengths, k_block, float(alpha), float(scale), backend)


def _check_block_mask(block_mask: BlockMask | None, q: Tensor, k: Tensor) -> None:
    if block_mask is None:
        return
    if not isinstance(block_mask, BlockMask):
        raise ValueError(f"block_mask: BlockMask expected, got {type(block_mask)}; BlockMask.from_flex converts")
    if block_mask.length != (q.shape[2], k.shape[2]):
        fail_shapes("block_mask", block_mask.length, "the lengths of q and k", (q.shape[2], k.shape[2]))
    shape = block_mask.kv_indices.shape
    if shape[2] != 1:
        fail_shapes("block_mask", shape, "one block of queries", ("B", "G", 1, "KV_blocks"))
    for own, size in zip(shape[:2], k.shape[:2], strict=True):
        if own not in (1, size):
            fail_shapes("block_mask", shape, "the heads of keys that share a list, k", k.shape)
    if block_mask.device != q.device:
        raise ValueError(
            f"block_mask: on {block_mask.device}, q: on {q.device}; shapes {tuple(shape)}, {tuple(q.shape)}"
        )


def _check_numbers(lengths: Tensor | None, q: Tensor, k: Tensor) -> None:
    check_lengths(lengths, q)
    unseen = torch.compiler.is_compiling() or q.is_cuda
    if lengths is not None and not unseen and ((lengths < 0) | (lengths > k.shape[2])).any():
        raise ValueError(
            f"lengths: {lengths.tolist()} of shape {tuple(lengths.shape)}, outside 0 to n of k {tuple(k.shape)}"
        )


def _decode(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    counts: Tensor | None,
    indices: Tensor | None,
    lengths: Tensor | None,
    k_block: int,
    alpha: float,
    scale: float,
    backend: str,
) -> Tensor:
    if backend == "gather":
        return _gathered(q, k, v, counts, indices, lengths, k_block, alpha, scale)
    from . import triton_decode, triton_tiles

    triton_tiles.check_device(q)
    lists = None if counts is None else by_rows(counts, indices, (q.shape[2], k_block))
    lengths = None if lengths is None else lengths.contiguous()
    return triton_decode.decode(q, k, v, lists, lengths, alpha=alpha, scale=scale)


def _gathered(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    counts: Tensor | None,
    indices: Tensor | None,
    lengths: Tensor | None,
    k_block: int,
    alpha: float,
    scale: float,
) -> Tensor:
    """In PyTorch: the visited keys beside each other, and all scores at once, of which few queries have few."""
    (b, h, m, d), (kv_heads, keys) = q.shape, k.shape[1:3]
    if not q.shape[:3].numel() * (keys if indices is None else indices.shape[-1]):
        return q.new_zeros((b, h, m, v.shape[-1]))
    dtype = torch.promote_types(q.dtype, torch.float32)
    position = torch.arange(keys, device=q.device).expand(b, kv_heads, keys)
    limit = position.new_full((b,), keys) if lengths is None else lengths.long().clamp(0, keys)
    if indices is not None:
        place = torch.arange(indices.shape[-1], device=q.device)
        block = torch.where(place < counts[..., None], indices, keys)[
            :, :, 0
        ]  # behind the cache, for what is not listed
        position = (block[..., None].long() * k_block + torch.arange(k_block, device=q.device)).flatten(2)
        position = position.expand(b, kv_heads, -1)
        k, v = (x.gather(2, position.clamp_max(keys - 1)[..., None].expand(-1, -1, -1, x.shape[-1])) for x in (k, v))
    newest = torch.arange(m, device=q.device) - (m - 1)
    seen = position[:, :, None] < (limit[:, None] + newest)[:, None, :, None]  # [B, G, M, K]
    # Beside each other: rows of the heads that share keys, in the order of heads and then queries.
    scores = q.to(dtype).reshape(b, kv_heads, -1, d) @ k.to(dtype).mT * (scale * (1 if alpha == 1 else alpha - 1))
    scores = scores.masked_fill_(~seen.repeat(1, 1, h // kv_heads, 1), -torch.inf)
    largest = scores.amax(-1, keepdim=True)
    empty = largest == -torch.inf
    shifted = (scores - largest).masked_fill_(empty, 0.0)
    u = torch.empty_like(shifted)
    threshold(shifted, alpha, u)
    weights = u.exp_() if alpha == 1 else u.pow_(1 / (alpha - 1))
    # Keys behind a sequence may be anything, NaN too, and a weight of 0 would not hide that.
    v = v.to(dtype).masked_fill(~seen.any(2)[..., None], 0.0)
    return (weights.masked_fill(empty, 0.0) @ v).view(b, h, m, -1).to(q.dtype)


def _fake(q, k, v, *_):
    return q.new_empty((*q.shape[:3], v.shape[-1]))


def _refuse(ctx, *_) -> None:
    raise NotImplementedError("decoding has no gradients")


_operator = registered("block_sparse_entmax_decode", _decode, _fake, _refuse)
