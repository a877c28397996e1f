"""Small batches with ragged lengths, and the double loop that every predictor's twin shares."""

from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

BATCH, HEADS, DIMENSION = 3, 2, 4


class Case(NamedTuple):
    """A batch whose padding holds NaN; in float64, so that twins in Python floats compare alike."""

    q: Tensor
    k: Tensor
    lengths: list[int]
    causal: bool

    def predict(self, predictor) -> Tensor:
        return predictor.predict(self.q, self.k, lengths=torch.tensor(self.lengths), causal=self.causal)

    def looped(self, edge: Callable[[int, int, int, int], bool]) -> Tensor:
        """Ask `edge(b, h, i, j)` for every visible pair."""
        batch, heads, n, _ = self.q.shape
        expected = torch.zeros(batch, heads, n, n, dtype=torch.bool)
        for b in range(batch):
            for h in range(heads):
                for i in range(self.lengths[b]):
                    for j in range(i + 1 if self.causal else self.lengths[b]):
                        expected[b, h, i, j] = edge(b, h, i, j)
        return expected


def make_case(n: int, lengths: list[int], causal: bool, seed: int = 0) -> Case:
    generator = torch.Generator().manual_seed(seed)
    shape = (len(lengths), HEADS, n, DIMENSION)
    q, k = (torch.randn(shape, generator=generator, dtype=torch.float64) for _ in range(2))
    for b, length in enumerate(lengths):
        q[b, :, length:] = k[b, :, length:] = torch.nan
    return Case(q, k, lengths, causal)


@pytest.fixture(params=["bidirectional", "causal"])
def causal(request) -> bool:
    return request.param == "causal"


@pytest.fixture(params=[[1, 1, 1], [2, 1, 2], [7, 3, 6], [16, 9, 1]], ids=lambda lengths: f"n{max(lengths)}")
def case(request, causal) -> Case:
    return make_case(max(request.param), request.param, causal)


@pytest.fixture
def centroids() -> Tensor:
    """`[H, 5, R]`."""
    generator = torch.Generator().manual_seed(1)
    return torch.randn(HEADS, 5, DIMENSION, generator=generator, dtype=torch.float64)
