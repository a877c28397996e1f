"""Argument checks that the public functions share; each error message starts with the argument's name."""

import math
from collections.abc import Sequence
from numbers import Integral

import torch
from torch import Tensor

from .support_library import obstacle
from .threshold import NEAR_SOFTMAX, SMALLEST_EXCESS
from .tracing import is_traced

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
BACKENDS = ("gather", "support", "triton")
DEVICES = ("cpu", "cuda")
#: Largest head dimension, the same on every device.
MOST_DIMENSIONS = 256


def first_not_finite(**tensors: Tensor) -> str | None:
    """Return the name of the first tensor with a NaN or infinite entry.

    Parameters
    ----------
    **tensors : Tensor
        Tensors of one dtype and device, by argument name. On a GPU, the function waits for the device once.

    Returns
    -------
    str or None
        The argument's name; None if all entries are finite.
    """
    named = {name: x.detach() for name, x in tensors.items() if x.numel()}
    if not named:
        return None
    extremes = torch.stack([extreme for x in named.values() for extreme in torch.aminmax(x)]).tolist()
    finite = [
        math.isfinite(low) and math.isfinite(high) for low, high in zip(extremes[::2], extremes[1::2], strict=True)
    ]
    return next((name for name, passed in zip(named, finite, strict=True) if not passed), None)


def pair(name: str, value: int | Sequence[int]) -> tuple[int, int]:
    """Return one value for queries and one for keys.

    Parameters
    ----------
    name : str
        The argument's name, for the error message.
    value : int or two ints
        Positive; one integer stands for both.

    Returns
    -------
    tuple of int
        Two positive integers.

    Raises
    ------
    ValueError
        If `value` is neither an integer nor two, or is below 1.
    """
    both = (value, value) if isinstance(value, Integral) else tuple(value)
    if len(both) != 2 or not all(isinstance(x, Integral) and x >= 1 for x in both):
        raise ValueError(f"`{name}` must be a positive integer or two of them (queries, keys), got {value}")
    return int(both[0]), int(both[1])


def autocast(*tensors: Tensor) -> list[Tensor]:
    """Cast tensors to the dtype of ``torch.autocast`` where it is enabled on their device.

    Parameters
    ----------
    *tensors : Tensor
        Float64 tensors stay as they are, as in PyTorch's own operators.

    Returns
    -------
    list of Tensor
        The tensors in the order of the arguments.
    """
    return [
        x.to(torch.get_autocast_dtype(x.device.type))
        if x.device.type in DEVICES and torch.is_autocast_enabled(x.device.type) and x.dtype in DTYPES[:3]
        else x
        for x in tensors
    ]


def check_tensors(q: Tensor, k: Tensor, v: Tensor) -> None:
    """Check that queries, keys and values match in shape, dtype and device.

    Parameters
    ----------
    q, k, v : Tensor ``[B, H, Q, D]``, ``[B, G, K, D]``, ``[B, G, K, E]``
        Queries, keys and values.

    Raises
    ------
    ValueError
        If a shape, dtype or device does not match, or a head dimension is outside 1 to 256.
    """
    for name, x in (("q", q), ("k", k), ("v", v)):
        if x.ndim != 4:
            raise ValueError(f"`{name}` must have shape (B, H, n, D), got {tuple(x.shape)}")
        if x.dtype not in DTYPES:
            raise ValueError(f"`{name}` must be float16, bfloat16, float32 or float64, got {x.dtype}; convert it first")
        if x.dtype != q.dtype:
            raise ValueError(f"`{name}` must have the dtype of `q` ({q.dtype}), got {x.dtype}; convert one of them")
        check_same_device(name, x.device, q)
        if not 1 <= x.shape[-1] <= MOST_DIMENSIONS:
            raise ValueError(
                f"`{name}` must have a head dimension from 1 to {MOST_DIMENSIONS}, got shape {tuple(x.shape)}; "
                "use more, smaller heads"
            )
    if k.shape[0] != q.shape[0] or k.shape[-1] != q.shape[-1]:
        raise ValueError(
            f"`k` must match `q` of shape {tuple(q.shape)} in batch size and head dimension, got shape {tuple(k.shape)}"
        )
    if k.shape[1] == 0 or q.shape[1] % k.shape[1]:
        raise ValueError(
            f"`k` must have a number of heads that divides the {q.shape[1]} heads of `q`, got shape {tuple(k.shape)}"
        )
    if v.shape[:3] != k.shape[:3]:
        raise ValueError(
            f"`v` must match `k` of shape {tuple(k.shape)} in batch size, heads and length, got shape {tuple(v.shape)}"
        )


def check_same_device(name: str, device: torch.device, q: Tensor) -> None:
    """Check that an argument is on the queries' device.

    Parameters
    ----------
    name : str
        The argument's name, for the error message.
    device : torch.device
        The argument's device.
    q : Tensor
        Queries.

    Raises
    ------
    ValueError
        If the devices differ.
    """
    if device != q.device:
        raise ValueError(f"`{name}` must be on the device of `q` ({q.device}), got {device}; move it with `.to()`")


def check_factors(alpha: float, scale: float | Tensor | None, heads: int) -> None:
    """Check alpha and the scale of the scores.

    Parameters
    ----------
    alpha : float
        From 1 to 2.
    scale : float or Tensor, optional
        Any finite number, or a tensor with one number or one for each head. Numbers in a tensor are not checked.
    heads : int
        Heads of the queries.

    Raises
    ------
    ValueError
        If `alpha` is outside 1 to 2 or a tensor that the kernels would treat as a constant, or `scale` is not finite or has
        another shape.
    """
    if isinstance(alpha, Tensor) and (alpha.requires_grad or alpha.numel() != 1):
        raise ValueError(
            f"`alpha` must be one number without a gradient, got a tensor of shape {tuple(alpha.shape)} with requires_grad="
            f"{alpha.requires_grad}; detach it, and call the function once for each head"
        )
    if not 1 <= alpha <= 2:
        raise ValueError(f"`alpha` must be from 1 (softmax) to 2 (sparsemax), got {alpha}")
    if isinstance(scale, Tensor):
        if scale.shape not in ((), (1,), (heads,)):
            raise ValueError(
                f"`scale` must be a number, or a tensor of shape () or ({heads},), the heads of `q`, got {tuple(scale.shape)}"
            )
    elif scale is not None and not abs(scale) < float("inf"):
        raise ValueError(f"`scale` must be finite, got {scale}")


def scaled(q: Tensor, scale: Tensor) -> Tensor:
    """Multiply the queries by a scale per head, so that the scale has a gradient.

    Parameters
    ----------
    q : Tensor ``[B, H, Q, D]``
        Queries.
    scale : Tensor ``[]``, ``[1]`` or ``[H]``
        Factors of the scores.

    Returns
    -------
    Tensor ``[B, H, Q, D]``
        In the dtype of `q`.
    """
    return (q * scale.reshape(-1, 1, 1)).to(q.dtype)


def check_backend(backend: str | None, q: Tensor, alpha: float, backends: Sequence[str] = BACKENDS) -> None:
    """Check that a backend exists and supports the queries' dtype and device, and alpha.

    Parameters
    ----------
    backend : str, optional
        One of `backends`; None selects the device's default.
    q : Tensor
        Queries.
    alpha : float
        From 1 to 2.
    backends : sequence of str
        Backends that the caller has.

    Raises
    ------
    ValueError
        If the backend is unknown, or is ``"triton"`` or ``"support"`` and `q` is float64 or alpha is near 1.
        If the backend is ``"support"``, and is not compiled or a compiler traces the call.
    NotImplementedError
        If `q` is neither on a CPU nor on a CUDA device.
    """
    if backend not in (None, *backends):
        raise ValueError(f"`backend` must be one of {', '.join(map(repr, backends))} or None, got {backend!r}")
    if q.device.type not in DEVICES:
        raise NotImplementedError(f"`q` must be on a CPU or CUDA device, got {q.device}; no other device has a kernel")
    if backend == "support" and (
        remedy := "'gather' or None under torch.compile" if is_traced(q) else obstacle(q, alpha)
    ):
        raise ValueError(f"`backend` must be {remedy}, got {backend!r}")
    if backend != "triton" and not (backend is None and q.is_cuda):
        return
    if SMALLEST_EXCESS <= alpha - 1 < NEAR_SOFTMAX - 1:
        raise ValueError(
            f"`alpha` must be 1 or at least {NEAR_SOFTMAX} for the backend 'triton', which computes in float32, got {alpha}; "
            "use 1, or backend='gather'"
        )
    if q.dtype == torch.float64:
        raise ValueError(
            f"`backend` must be 'gather' for a float64 `q`, because 'triton' computes in float32, got {backend!r}"
        )


def check_lengths(lengths: Tensor | None, q: Tensor) -> None:
    """Check the type, shape and device of sequence lengths, but not their values.

    Parameters
    ----------
    lengths : int Tensor ``[B]``, optional
        Tokens of each sequence.
    q : Tensor ``[B, H, Q, D]``
        Queries.

    Raises
    ------
    ValueError
        If `lengths` is not an int32 or int64 tensor of the batch size on the device of `q`.
    """
    if lengths is None:
        return
    check_integers("lengths", lengths)
    if lengths.shape != q.shape[:1]:
        raise ValueError(f"`lengths` must have shape ({q.shape[0]},), the batch size, got {tuple(lengths.shape)}")
    check_same_device("lengths", lengths.device, q)


def check_integers(name: str, x: object) -> None:
    """Check that an argument is an integer tensor.

    Parameters
    ----------
    name : str
        The argument's name, for the error message.
    x : object
        The argument.

    Raises
    ------
    ValueError
        If `x` is not an int32 or int64 tensor.
    """
    if not isinstance(x, Tensor) or x.dtype not in (torch.int32, torch.int64):
        raise ValueError(f"`{name}` must be an int32 or int64 tensor, got {getattr(x, 'dtype', type(x))}")
