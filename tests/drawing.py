"""Numbers at random, from a seed: the same in every run."""

import torch
from torch import Tensor


def drawn(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    """Standard normal numbers."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def drawn_in_turn(*shapes: tuple[int, ...], seed: int = 0, dtype: torch.dtype = torch.float32) -> tuple[Tensor, ...]:
    """Standard normal numbers of several shapes, all of them different."""
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(shape, generator=generator, dtype=dtype) for shape in shapes)


def drawn_mask(*shape: int, density: float, seed: int = 0) -> Tensor:
    """Bool, of which this share is True."""
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed)) < density
