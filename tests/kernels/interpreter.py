"""Triton's interpreter, which runs the kernels on tensors of a CPU."""

import pytest
import torch


def require_interpreter(backend: str = "triton") -> None:
    """Skip a test of this backend on a CPU without Triton, or with a GPU, where the kernels are compiled."""
    if backend == "triton":
        pytest.importorskip("triton")
        if torch.cuda.is_available():
            pytest.skip("with a GPU, the kernels are compiled and take no tensors of a CPU")
