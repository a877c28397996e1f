"""How precisely PyTorch multiplies matrices of float32 while a model is trained."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def matmul_precision(precision: str) -> Iterator[None]:
    """Inside, products are as precise as ``highest``, ``high`` or ``medium`` are to PyTorch.

    With ``medium``, factors are rounded to bfloat16 where the processor is faster for it, and nothing else is: weights, sums
    and what lies between layers stay in float32.

    Raises ``RuntimeError`` if there is no such precision.

    >>> with matmul_precision("medium"):
    ...     torch.get_float32_matmul_precision()
    'medium'
    >>> torch.get_float32_matmul_precision()
    'highest'
    """
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
