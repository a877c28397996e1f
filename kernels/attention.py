"""The public function: checks its arguments, and runs the path of the device."""

from functools import partial

import torch
from torch import Tensor

from . import certificate
from .block_mask import BlockMask
from .certificate import Certificate
from .checks import (
    autocast,
    check_backend,
    check_factors,
    check_lengths,
    check_tensors,
    fail_shapes,
    first_not_finite,
)
from .operator import attend


def block_sparse_entmax_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    block_mask: BlockMask | None = None,
    *,
    alpha: float = 1.5,
    scale: float | None = None,
    causal: bool = False,
    lengths: Tensor | None = None,
    backend: str | None = None,
    certify: bool = False,
    exact: bool = False,
    check: bool | None = None,
) -> Tensor | tuple[Tensor, Certificate]:
    """Attention whose weights are alpha-entmax over the keys in the visited blocks; nothing else is computed.

    Parameters
    ----------
    q, k, v : Tensor ``[B, H, Q, D]``, ``[B, G, K, D]``, ``[B, G, K, E]``
        G divides H: that many heads of keys and values are shared by H / G heads of queries each. One dtype: float16, bfloat16,
        float32 or float64; half precision is computed in float32. Within ``torch.autocast``, those below float64 are first
        cast to its dtype, as for PyTorch's own attention.
    block_mask : BlockMask, optional
        Blocks to visit; all without it.
    alpha : float
        From 1 (softmax) to 2 (sparsemax).
    scale : float, optional
        Factor on ``q @ k.T``; ``1 / sqrt(D)`` by default.
    causal : bool
        No query sees a later key; needs Q = K.
    lengths : int Tensor ``[B]``, optional
        Tokens beyond the length of their sequence neither see nor are seen; needs Q = K.
    backend : str, optional
        ``"gather"`` (PyTorch alone) or ``"triton"`` (not for float64); by default that of the device, gather on a CPU and
        Triton on a GPU. A backend that cannot run is an error, never a reason to take the other.
    certify : bool
        Also say which rows provably equal full entmax attention: the output comes with a
        :class:`~sparselib.kernels.Certificate`.
    exact : bool
        Visit more blocks until every row is certified, beginning with those of `block_mask`; without one, with those that
        promise the largest scores. Returns what `certify` returns. It pays where few blocks hold the large scores: on
        unstructured keys nearly all are visited, which costs two to three times dense attention.
    check : bool, optional
        Look at the numbers in q, k, v and `lengths`, and refuse those that no attention can use. By default on a CPU alone: a
        GPU would have to be waited for, in every layer. Unlooked at, NaN gives NaN in the rows that it touches, as in PyTorch's
        own attention, and lengths count as 0 to n. (Never under torch.compile, where nothing may depend on numbers.)

    Returns
    -------
    Tensor ``[B, H, Q, E]``
        In the dtype of q. A query that sees no key has output 0 and gradient 0. Twice the same call gives the same bytes, and
        so do its gradients.

    Raises
    ------
    ValueError
        For shapes, dtypes or devices that do not fit, a block mask of other lengths, alpha outside 1 to 2, a head dimension
        above 256, scores that overflow (Triton: their rows are NaN) or, for `exact`, are too large to be certified, a backend
        that is unknown or does not fit, and if `check`, NaN or infinite numbers and lengths outside 0 to n.
    NotImplementedError
        On a device other than CPU and CUDA.

    Notes
    -----
    On a GPU, a call waits for nothing, and can be captured into a CUDA graph, unless `certify`, `exact` or `check` asks for
    numbers. Under torch.compile, the BlockMask, which checks itself, is built outside of the compiled function.

    Examples
    --------
    >>> import torch
    >>> from sparselib.kernels import BlockMask, block_sparse_entmax_attention
    >>> q = torch.randn(1, 2, 100, 16)
    >>> near = torch.eye(7, dtype=torch.bool).expand(1, 2, 7, 7)
    >>> output, found = block_sparse_entmax_attention(q, q, q, BlockMask.from_dense(near, 16, 100), certify=True)
    >>> output.shape, found.rows.shape, round(found.share, 3)
    (torch.Size([1, 2, 100, 16]), torch.Size([1, 2, 100]), 0.143)
    """
    q, k, v = autocast(q, k, v)
    check_tensors(q, k, v)
    _check_block_mask(block_mask, q, k)
    _check_rules(q, k, causal, lengths)
    check_factors(alpha, scale)
    check_backend(backend, q)
    if not torch.compiler.is_compiling() and (q.device.type == "cpu" if check is None else check):
        _check_numbers(q, k, v, lengths)
    rules = {"alpha": alpha, "scale": scale, "causal": causal, "lengths": lengths}
    run = partial(attend, backend=backend, precise=certify or exact)
    if exact:
        output, _, found = certificate.exact(run, q, k, v, block_mask, **rules)
        return output, found
    output, tau = run(q, k, v, block_mask, **rules)
    return (output, certificate.certify(q, k, tau, block_mask, **rules)) if certify else output


def _check_block_mask(block_mask: BlockMask | None, q: Tensor, k: Tensor) -> None:
    if block_mask is None:
        return
    if not isinstance(block_mask, BlockMask):
        raise ValueError(f"block_mask: BlockMask expected, got {type(block_mask)}; BlockMask.from_flex converts")
    if block_mask.length != (q.shape[2], k.shape[2]):
        fail_shapes("block_mask", block_mask.length, "the lengths of q and k", (q.shape[2], k.shape[2]))
    for own, size in zip(block_mask.shape, q.shape[:2], strict=True):
        if own not in (1, size):
            fail_shapes("block_mask", block_mask.kv_indices.shape, "q", q.shape)
    if block_mask.device != q.device:
        shapes = f"{tuple(block_mask.kv_indices.shape)} and q {tuple(q.shape)}"
        raise ValueError(f"block_mask: on {block_mask.device}, q: on {q.device}; shapes {shapes}")


def _check_rules(q: Tensor, k: Tensor, causal: bool, lengths: Tensor | None) -> None:
    if (causal or lengths is not None) and q.shape[2] != k.shape[2]:
        fail_shapes("causal and lengths need as many queries as keys: k", k.shape, "q", q.shape)
    check_lengths(lengths, q)


def _check_numbers(q: Tensor, k: Tensor, v: Tensor, lengths: Tensor | None) -> None:
    """What needs a look at values, and on a GPU a wait for them."""
    name = first_not_finite(q=q, k=k, v=v)
    if name is not None:
        raise ValueError(f"{name} of shape {tuple({'q': q, 'k': k, 'v': v}[name].shape)}: NaN or infinite entries")
    if lengths is not None and ((lengths < 0) | (lengths > q.shape[2])).any():
        raise ValueError(
            f"lengths: {lengths.tolist()} of shape {tuple(lengths.shape)}, outside 0 to n of q {tuple(q.shape)}"
        )
