"""Public block-sparse attention: argument checks, and the choice between plain, certified and exact attention."""

from functools import partial

import torch
from torch import Tensor

from . import certificate as certificates
from .block_mask import BlockMask
from .block_operator import attend
from .certificate import Certificate
from .checks import (
    autocast,
    check_backend,
    check_factors,
    check_lengths,
    check_same_device,
    check_tensors,
    first_not_finite,
    scaled,
)
from .learned_alpha import attend_learned
from .rules import MaskMod, ScoreMod
from .threshold import NEAR_SOFTMAX
from .tracing import is_traced, is_transformed


def block_sparse_entmax_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    block_mask: BlockMask | None = None,
    *,
    alpha: float | Tensor = 1.5,
    scale: float | Tensor | None = None,
    causal: bool = False,
    lengths: Tensor | None = None,
    mask_mod: MaskMod | None = None,
    score_mod: ScoreMod | None = None,
    backend: str | None = None,
    certify: bool = False,
    exact: bool = False,
    check: bool | None = None,
) -> Tensor | tuple[Tensor, Certificate]:
    """Compute attention with alpha-entmax weights over the keys of the visited blocks only.

    Parameters
    ----------
    q, k, v : Tensor ``[B, H, Q, D]``, ``[B, G, K, D]``, ``[B, G, K, E]``
        Queries, keys and values. G must divide H: each head of keys and values serves H / G query heads. All three have one
        dtype: float16, bfloat16, float32 or float64. Half precision is computed in float32. Within ``torch.autocast``, dtypes
        below float64 are first cast to its dtype, as in PyTorch's own attention.
    block_mask : BlockMask, optional
        Blocks to visit. By default, all blocks are visited.
    alpha : float or Tensor
        From 1 (softmax) to 2 (sparsemax). A tensor of shape ``[]``, ``[1]`` or ``[H]`` has numbers from 1.01 to 2 and gets a
        gradient, which PyTorch computes on every device. Each head with an alpha of its own is a call of its own.
    scale : float or Tensor, optional
        Factor on ``q @ k.T``; ``1 / sqrt(D)`` by default. A tensor has one number or one for each head, and gets a gradient.
    causal : bool
        Whether each query attends only to its own and earlier keys. Requires Q = K.
    lengths : int Tensor ``[B]``, optional
        Tokens of each sequence. Later tokens are padding, which neither attends nor is attended to. Requires Q = K.
    mask_mod : callable, optional
        Function ``(b, h, q_idx, kv_idx) -> Bool``, True where a query may attend to a key, as for FlexAttention: a window,
        documents, left padding. It applies inside visited blocks, together with `causal`, `lengths` and the rule of
        `block_mask`. Arguments are int64 tensors that broadcast, so use tensor operations such as ``&`` and ``torch.where``.
        The support backend writes the rule out as one boolean mask, by default only up to 2 ** 28 entries.
    score_mod : callable, optional
        Function ``(score, b, h, q_idx, kv_idx) -> score``, as for FlexAttention: a soft cap, ALiBi, a bias. The score includes
        `scale` and has at least single precision; ``-inf`` hides a pair. Tensors that the function reads get gradients, each
        of which takes time proportional to the tensor's size for every 262,144 scores.
    backend : str, optional
        ``"gather"`` (PyTorch only), ``"support"`` (C++ on a CPU; not for float64) or ``"triton"`` (not for
        float64). By default, Triton on a GPU. On a CPU, support where it can compute the call and was compiled with this
        package, else gather. A backend that cannot run raises an error; the function never falls back to another one.
    certify : bool
        Whether to also return a :class:`~sparselib.kernels.Certificate`: which rows provably equal full entmax attention.
    exact : bool
        Whether to visit more blocks until every row is certified. The search starts with the blocks of `block_mask` or, without
        one, with the blocks of the largest possible scores. Returns the same values as `certify`. It is fast where few blocks
        contain the large scores. On unstructured keys, nearly all blocks are visited, at two to three times the cost of dense
        attention.
    check : bool, optional
        Whether to check the numbers in `q`, `k`, `v` and `lengths`. By default True on a CPU and False on a GPU, where each
        check would wait for the device. Without checks, NaN entries give NaN in the rows that attend to their block, as in
        PyTorch's own attention, those beyond `lengths` do nothing, and lengths are clamped to 0 to n. Under ``torch.compile``,
        numbers are never checked.

    Returns
    -------
    output : Tensor ``[B, H, Q, E]``
        In the dtype of `q`. A query with no allowed key has output 0 and gradient 0. Repeated calls give bitwise equal outputs
        and gradients.
    certificate : Certificate
        Only if `certify` or `exact` is True.

    Raises
    ------
    ValueError
        If shapes, dtypes or devices do not match, or `block_mask` has other lengths than `q` and `k`.
        If `alpha` is outside 1 to 2, or a head dimension is above 256.
        If `alpha` has a gradient or several numbers, and one of them is below 1.01, `certify` or `exact` is True, or the call
        is compiled.
        If `backend` is unknown, or does not support the dtype, device or alpha: Triton and support compute in float32, so alpha
        must be 1 or at least 1.01.
        If there is a rule, and `backend` is ``"triton"`` or not ``"gather"`` on a GPU, `certify` or `exact` is True, or the
        call is compiled.
        If `backend` is ``"support"``, and the package was installed without a C++ compiler, the call is compiled, or there is a
        `score_mod`.
        If `mask_mod` does not return booleans.
        If a score overflows (gather only; Triton returns NaN in that row), or `exact` is True and scores are too large to
        certify.
        If numbers are checked, and `q`, `k` or `v` has NaN or infinite entries or a length is outside 0 to n.
    NotImplementedError
        If the tensors are neither on a CPU nor on a CUDA device, or belong to a transformation of ``torch.func``.

    Notes
    -----
    On a GPU, a call does not wait for the device and can be captured into a CUDA graph, unless `certify`, `exact` or `check` is
    True. With ``torch.compile``, build the block mask outside the compiled function, because its constructor checks numbers.

    Examples
    --------
    >>> import torch
    >>> from sparselib.kernels import BlockMask, block_sparse_entmax_attention
    >>> q = torch.randn(1, 2, 100, 16)
    >>> near = torch.eye(7, dtype=torch.bool).expand(1, 2, 7, 7)
    >>> mask = BlockMask.from_dense(near, block_size=16, length=100)
    >>> output, certificate = block_sparse_entmax_attention(q, q, q, mask, certify=True)
    >>> output.shape, certificate.rows.shape, round(certificate.share, 3)
    (torch.Size([1, 2, 100, 16]), torch.Size([1, 2, 100]), 0.143)

    Within the visited blocks, a window of 9 keys, and ALiBi with a learned slope for each head:

    >>> slopes = torch.ones(2, requires_grad=True)
    >>> output = block_sparse_entmax_attention(
    ...     q, q, q, mask,
    ...     mask_mod=lambda b, h, q_idx, kv_idx: (q_idx - kv_idx).abs() <= 4,
    ...     score_mod=lambda score, b, h, q_idx, kv_idx: score - slopes[h] * (q_idx - kv_idx).abs(),
    ... )
    >>> output.square().sum().backward()
    >>> slopes.grad.shape
    torch.Size([2])
    """
    _check_untransformed(q, k, v)
    q, k, v = autocast(q, k, v)
    check_tensors(q, k, v)
    _check_block_mask(block_mask, q, k)
    if (causal or lengths is not None) and q.shape[2] != k.shape[2]:
        raise ValueError(
            "`causal` and `lengths` must only be used with as many queries as keys, "
            f"got {q.shape[2]} queries and {k.shape[2]} keys"
        )
    check_lengths(lengths, q)
    learned = isinstance(alpha, Tensor) and (alpha.requires_grad or alpha.numel() != 1)
    if learned:
        _check_learned(alpha, q, certify or exact)
    check_factors(NEAR_SOFTMAX if learned else alpha, scale, q.shape[1])
    check_backend(backend, q, NEAR_SOFTMAX if learned else alpha)
    used = backend or ("triton" if q.is_cuda else None)
    _check_rules(
        {"mask_mod": mask_mod, "score_mod": score_mod, "block_mask.mask_mod": block_mask and block_mask.mask_mod},
        {
            "for the Triton backend, which has no token-level rules; use backend='gather', or `causal`, `lengths` and "
            "BlockMask.from_flex(..., drop_mask_mod=True)": used == "triton",
            "with `certify` or `exact`, whose bounds ignore rules; leave one of them out": certify or exact,
            "under torch.compile; call the attention outside the compiled function": torch.compiler.is_compiling(),
        },
    )
    if used == "support" and score_mod is not None:
        raise ValueError(
            "`score_mod` must be None for the support backend, which has none; use backend='gather' or None"
        )
    if isinstance(scale, Tensor):
        q, scale = scaled(q, scale), 1.0
    if not is_traced(q) and (q.device.type == "cpu" if check is None else check):
        _check_numbers(q, k, v, lengths)
    elif lengths is not None:
        q, k, v = (_without_padding(x, lengths) for x in (q, k, v))
    rules = {"alpha": alpha, "scale": scale, "causal": causal, "lengths": lengths}
    mods = {"mask_mod": mask_mod, "score_mod": score_mod, "backend": backend}
    if learned:
        return attend_learned(q, k, v, block_mask, **rules, **mods)
    run = partial(attend, **mods, precise=certify or exact)
    if exact:
        output, _, certificate = certificates.exact(run, q, k, v, block_mask, **rules)
        return output, certificate
    output, tau = run(q, k, v, block_mask, **rules)
    return (output, certificates.certify(q, k, tau, block_mask, **rules)) if certify else output


def _check_untransformed(*tensors: Tensor) -> None:
    """Refuse the tensors of ``torch.vmap`` and ``torch.func``, which no kernel can read."""
    if not torch.compiler.is_compiling() and any(map(is_transformed, tensors)):
        raise NotImplementedError(
            "block_sparse_entmax_attention does not run under torch.vmap and torch.func; give it a batch and call "
            "torch.autograd.grad, or use sparselib.attention with a boolean mask"
        )


def _check_block_mask(block_mask: BlockMask | None, q: Tensor, k: Tensor) -> None:
    """Check that a block mask matches the queries and keys in lengths, batch size, heads and device."""
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
    for mask_size, size in zip(block_mask.shape, q.shape[:2], strict=True):
        if mask_size not in (1, size):
            raise ValueError(
                f"`block_mask` must have the batch size and heads of `q`, {tuple(q.shape[:2])}, or 1, "
                f"got {block_mask.shape}"
            )
    check_same_device("block_mask", block_mask.device, q)


def _check_learned(alpha: Tensor, q: Tensor, certifies: bool) -> None:
    """Check an alpha that is learned or differs between heads; its numbers are read, for which a GPU must finish its work."""
    if is_traced(q):
        raise ValueError(
            "`alpha` must be a number under torch.compile, because a tensor's numbers choose the computation; call the "
            "attention outside the compiled function"
        )
    if alpha.shape not in ((), (1,), (q.shape[1],)):
        raise ValueError(
            f"`alpha` must be a number, or a tensor of shape () or ({q.shape[1]},), the heads of `q`, got {tuple(alpha.shape)}"
        )
    if certifies:
        raise ValueError("`alpha` must be one number without a gradient with `certify` or `exact`; detach it")
    if not ((alpha >= NEAR_SOFTMAX) & (alpha <= 2)).all():
        raise ValueError(
            f"`alpha` must be from {NEAR_SOFTMAX} to 2 if it is learned, got {alpha.tolist()}; for softmax, pass the number 1"
        )


def _check_rules(rules: dict[str, object], obstacles: dict[str, bool]) -> None:
    """Check that rules are functions, and that nothing in the call prevents them."""
    for name, rule in rules.items():
        if rule is not None and not callable(rule):
            raise ValueError(f"`{name}` must be a function of index tensors, got {type(rule).__name__}")
        for obstacle, applies in obstacles.items():
            if rule is not None and applies:
                raise ValueError(f"`{name}` must be None {obstacle}")


def _without_padding(x: Tensor, lengths: Tensor) -> Tensor:
    """Set the padding of ``x [B, H, n, D]`` to 0, because 0 times a hidden NaN is NaN."""
    return x.masked_fill((torch.arange(x.shape[2], device=x.device) >= lengths[:, None])[:, None, :, None], 0.0)


def _check_numbers(q: Tensor, k: Tensor, v: Tensor, lengths: Tensor | None) -> None:
    """Check the values of the arguments, for which a GPU must finish its work first."""
    name = first_not_finite(q=q, k=k, v=v)
    if name is not None:
        raise ValueError(
            f"`{name}` must be finite, got NaN or infinite entries; replace them, or skip this check with check=False"
        )
    if lengths is not None and ((lengths < 0) | (lengths > q.shape[2])).any():
        raise ValueError(f"`lengths` must be from 0 to {q.shape[2]}, the tokens of `q`, got {lengths.tolist()}")
