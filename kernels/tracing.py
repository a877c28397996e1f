"""Whether a tensor has values that eager code may branch on."""

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor


def is_traced(x: Tensor) -> bool:
    """Return whether a compiler or ``torch.export`` traces this call, or the tensor has no data."""
    return torch.compiler.is_compiling() or isinstance(x, FakeTensor) or x.is_meta


def is_transformed(x: Tensor) -> bool:
    """Return whether a tensor belongs to ``torch.vmap``, ``torch.func`` or batched gradients."""
    functorch = torch._C._functorch
    return functorch.is_functorch_wrapped_tensor(x) or functorch.is_legacy_batchedtensor(x)
