"""The public function: checks its arguments, and runs the path of the device."""

from functools import partial

import torch
from torch import Tensor

from . import certificate
from .block_mask import BlockMask
from .certificate import Certificate
from .checks import fail_shapes, first_not_finite
from .operator import attend

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
BACKENDS = ("gather", "triton")
DEVICES = ("cpu", "cuda")
#: Largest head dimension, the same on every device.
MOST_DIMENSIONS = 256


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
    q, k, v = _autocast(q, k, v)
    _check_tensors(q, k, v)
    _check_block_mask(block_mask, q, k)
    _check_rules(q, k, causal, lengths)
    _check_factors(alpha, scale)
    _check_backend(backend, q)
    if not torch.compiler.is_compiling() and (q.device.type == "cpu" if check is None else check):
        _check_numbers(q, k, v, lengths)
    rules = {"alpha": alpha, "scale": scale, "causal": causal, "lengths": lengths}
    run = partial(attend, backend=backend, precise=certify or exact)
    if exact:
        output, _, found = certificate.exact(run, q, k, v, block_mask, **rules)
        return output, found
    output, tau = run(q, k, v, block_mask, **rules)
    return (output, certificate.certify(q, k, tau, block_mask, **rules)) if certify else output


def _autocast(*tensors: Tensor) -> list[Tensor]:
    """In the dtype of the ``torch.autocast`` of their device, if there is one; float64 stays, as in PyTorch's operators."""
    return [
        x.to(torch.get_autocast_dtype(x.device.type))
        if x.device.type in DEVICES and torch.is_autocast_enabled(x.device.type) and x.dtype in DTYPES[:3]
        else x
        for x in tensors
    ]


def _check_tensors(q: Tensor, k: Tensor, v: Tensor) -> None:
    for name, x in (("q", q), ("k", k), ("v", v)):
        if x.ndim != 4:
            fail_shapes(name, x.shape, "an attention", ("B", "H", "n", "D"))
        if x.dtype not in DTYPES or x.dtype != q.dtype:
            raise ValueError(
                f"{name}: {x.dtype} {tuple(x.shape)}, q: {q.dtype} {tuple(q.shape)}; one of {DTYPES} for all"
            )
        if x.device != q.device:
            raise ValueError(f"{name}: {tuple(x.shape)} on {x.device}, q: {tuple(q.shape)} on {q.device}")
        if not 1 <= x.shape[-1] <= MOST_DIMENSIONS:
            fail_shapes(name, x.shape, "a head dimension from 1 to 256", ("B", "H", "n", f"D <= {MOST_DIMENSIONS}"))
    if k.shape[0] != q.shape[0] or k.shape[-1] != q.shape[-1]:
        fail_shapes("k", k.shape, "q", q.shape)
    if k.shape[1] == 0 or q.shape[1] % k.shape[1]:
        fail_shapes("k", k.shape, "q, whose heads its own must divide,", q.shape)
    if v.shape[:3] != k.shape[:3]:
        fail_shapes("v", v.shape, "k", k.shape)


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
    if lengths is None:
        return
    if not isinstance(lengths, Tensor) or lengths.dtype not in (torch.int32, torch.int64):
        raise ValueError(f"lengths: int32 or int64 tensor expected, got {getattr(lengths, 'dtype', type(lengths))}")
    if lengths.shape != q.shape[:1]:
        fail_shapes("lengths", lengths.shape, "q", q.shape)
    if lengths.device != q.device:
        raise ValueError(f"lengths: {tuple(lengths.shape)} on {lengths.device}, q: {tuple(q.shape)} on {q.device}")


def _check_factors(alpha: float, scale: float | None) -> None:
    if not 1 <= alpha <= 2:
        raise ValueError(f"alpha: {alpha} is outside 1 (softmax) to 2 (sparsemax)")
    if scale is not None and not abs(scale) < float("inf"):
        raise ValueError(f"scale: {scale} is not finite")


def _check_backend(backend: str | None, q: Tensor) -> None:
    if backend not in (None, *BACKENDS):
        raise ValueError(f"backend: {backend!r}, but there are {BACKENDS}")
    if q.device.type not in DEVICES:
        raise NotImplementedError(f"block-sparse entmax attention has no kernel for {q.device}; only for {DEVICES}")
    if q.dtype == torch.float64 and (backend == "triton" or (backend is None and q.is_cuda)):
        raise ValueError(
            f"backend: 'triton' computes in float32, q of shape {tuple(q.shape)} is float64; take 'gather'"
        )


def _check_numbers(q: Tensor, k: Tensor, v: Tensor, lengths: Tensor | None) -> None:
    """What needs a look at values, and on a GPU a wait for them."""
    name = first_not_finite(q=q, k=k, v=v)
    if name is not None:
        raise ValueError(f"{name} of shape {tuple({'q': q, 'k': k, 'v': v}[name].shape)}: NaN or infinite entries")
    if lengths is not None and ((lengths < 0) | (lengths > q.shape[2])).any():
        raise ValueError(
            f"lengths: {lengths.tolist()} of shape {tuple(lengths.shape)}, outside 0 to n of q {tuple(q.shape)}"
        )
