"""Complaints about arguments: all of them name the argument and both shapes."""

import math
from collections.abc import Sequence
from typing import NoReturn

import torch
from torch import Tensor

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
BACKENDS = ("gather", "triton")
DEVICES = ("cpu", "cuda")
#: Largest head dimension, the same on every device.
MOST_DIMENSIONS = 256


def fail_shapes(name: str, shape: Sequence, other: str, other_shape: Sequence) -> NoReturn:
    """Refuse two shapes that do not fit.

    Raises
    ------
    ValueError
        Always.
    """
    raise ValueError(f"{name} of shape {_spelt(shape)} does not fit {other} of shape {_spelt(other_shape)}")


def _spelt(shape: Sequence) -> str:
    return f"({', '.join(map(str, shape))})"


def first_not_finite(**tensors: Tensor) -> str | None:
    """The name of the first of some tensors of one dtype that has a NaN or infinite entry; a GPU is waited for once."""
    named = {name: x.detach() for name, x in tensors.items() if x.numel()}
    if not named:
        return None
    extremes = torch.stack([extreme for x in named.values() for extreme in torch.aminmax(x)]).tolist()
    finite = [
        math.isfinite(low) and math.isfinite(high) for low, high in zip(extremes[::2], extremes[1::2], strict=True)
    ]
    return next((name for name, passed in zip(named, finite, strict=True) if not passed), None)


def pair(name: str, value: int | Sequence[int]) -> tuple[int, int]:
    """`value` for queries and for keys: two positive integers.

    Raises
    ------
    ValueError
        If it is neither an integer nor two, or below 1.
    """
    both = (value, value) if isinstance(value, int) else tuple(value)
    if len(both) != 2 or not all(isinstance(x, int) and x >= 1 for x in both):
        raise ValueError(f"{name}: a positive integer or two (queries, keys) expected, got {value}")
    return both


def autocast(*tensors: Tensor) -> list[Tensor]:
    """In the dtype of the ``torch.autocast`` of their device, if there is one; float64 stays, as in PyTorch's operators."""
    return [
        x.to(torch.get_autocast_dtype(x.device.type))
        if x.device.type in DEVICES and torch.is_autocast_enabled(x.device.type) and x.dtype in DTYPES[:3]
        else x
        for x in tensors
    ]


def check_tensors(q: Tensor, k: Tensor, v: Tensor) -> None:
    """Refuse queries, keys and values whose shapes, dtypes or devices do not fit."""
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


def check_factors(alpha: float, scale: float | None) -> None:
    """Refuse an alpha outside 1 to 2, and a scale that is not finite."""
    if not 1 <= alpha <= 2:
        raise ValueError(f"alpha: {alpha} is outside 1 (softmax) to 2 (sparsemax)")
    if scale is not None and not abs(scale) < float("inf"):
        raise ValueError(f"scale: {scale} is not finite")


def check_backend(backend: str | None, q: Tensor) -> None:
    """Refuse a backend that is unknown, or that has no kernel for q."""
    if backend not in (None, *BACKENDS):
        raise ValueError(f"backend: {backend!r}, but there are {BACKENDS}")
    if q.device.type not in DEVICES:
        raise NotImplementedError(f"block-sparse entmax attention has no kernel for {q.device}; only for {DEVICES}")
    if q.dtype == torch.float64 and (backend == "triton" or (backend is None and q.is_cuda)):
        raise ValueError(
            f"backend: 'triton' computes in float32, q of shape {tuple(q.shape)} is float64; take 'gather'"
        )


def check_lengths(lengths: Tensor | None, q: Tensor) -> None:
    """Refuse lengths that are not an integer for each sequence of q."""
    if lengths is None:
        return
    if not isinstance(lengths, Tensor) or lengths.dtype not in (torch.int32, torch.int64):
        raise ValueError(f"lengths: int32 or int64 tensor expected, got {getattr(lengths, 'dtype', type(lengths))}")
    if lengths.shape != q.shape[:1]:
        fail_shapes("lengths", lengths.shape, "q", q.shape)
    if lengths.device != q.device:
        raise ValueError(f"lengths: {tuple(lengths.shape)} on {lengths.device}, q: {tuple(q.shape)} on {q.device}")
