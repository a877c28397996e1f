"""The compiled library of the support backend, and what it can compute.

The compiled file is a C library without Python or PyTorch inside, so one file serves every version of them, and it compiles in
seconds in an empty build environment. There is one for each kind of processor. An installation without a C++ compiler has none.
"""

import ctypes
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

from .threshold import NEAR_SOFTMAX, SMALLEST_EXCESS
from .tracing import is_traced

#: Builds, best first, for each capability that PyTorch detects or reads from ATEN_CPU_CAPABILITY.
BUILDS = {"AVX512": ("avx512", "avx2", "portable"), "AVX2": ("avx2", "portable")}


class Strides(ctypes.Structure):
    """Strides of a tensor ``[B, H, n, D]`` whose rows are contiguous."""

    _fields_ = [(name, ctypes.c_int64) for name in ("batch", "head", "row")]


def _fields(names: str, of: type) -> list[tuple[str, type]]:
    return [(name, of) for name in names.split()]


class Problem(ctypes.Structure):
    """The struct of the same name in ``support_problem.h``."""

    _fields_ = [
        *_fields("q k v grad", ctypes.c_void_p),
        *_fields("q_strides k_strides v_strides grad_strides", Strides),
        *_fields("batch heads kv_heads queries keys width value_width", ctypes.c_int64),
        *_fields("counts indices", ctypes.c_void_p),
        *_fields("counts_batch counts_head list_width q_block k_block", ctypes.c_int64),
        *_fields("lengths mask", ctypes.c_void_p),
        ("mask_strides", Strides),
        *_fields("causal threads parts keep", ctypes.c_int64),
        *_fields("power factor scale", ctypes.c_float),
        *_fields("output tau rest kept memory kept_j kept_u dq dk dv", ctypes.c_void_p),
    ]


@cache
def library() -> ctypes.CDLL | None:
    """Return the compiled library for this processor.

    Returns
    -------
    ctypes.CDLL or None
        None if the package was installed without a compiler, or was not compiled again after a change of the sources.
    """
    for build in BUILDS.get(torch.backends.cpu.get_cpu_capability(), ("portable",)):
        if (path := Path(__file__).with_name(f"support_{build}.so.1")).exists():
            loaded = ctypes.CDLL(str(path))
            loaded.support_size.restype = loaded.support_tiles.restype = ctypes.c_int64
            return loaded if loaded.support_size() == ctypes.sizeof(Problem) else None
    return None


def obstacle(q: Tensor, alpha: float) -> str | None:
    """Return why the support backend cannot compute an attention.

    Parameters
    ----------
    q : Tensor
        Queries.
    alpha : float
        From 1 to 2.

    Returns
    -------
    str or None
        What `backend` must be instead and why; None if there is no obstacle.
    """
    if q.device.type != "cpu":
        return f"'triton' or 'gather' for a `q` on {q.device}, because 'support' runs on a CPU"
    if q.dtype == torch.float64:
        return "'gather' for a float64 `q`, because 'support' computes in float32"
    if SMALLEST_EXCESS <= alpha - 1 < NEAR_SOFTMAX - 1:
        return f"'gather' for an alpha between 1 and {NEAR_SOFTMAX}, got {alpha}"
    if library() is None:
        return (
            "'gather' or None, because this installation has no compiled 'support' for this processor; install a C++ "
            "compiler, and then this package again"
        )
    return None


def default_backend(q: Tensor, alpha: float) -> str:
    """Return the device's fastest backend that supports a call; compilers trace the operations of gather.

    Parameters
    ----------
    q : Tensor
        Queries.
    alpha : float
        From 1 to 2.

    Returns
    -------
    str
        ``"triton"``, ``"support"`` or ``"gather"``.
    """
    if q.is_cuda:
        return "triton"
    return "gather" if is_traced(q) or obstacle(q, alpha) else "support"
