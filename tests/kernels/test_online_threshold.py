"""The threshold's lower bound after one sweep: never above the threshold of the keys seen, and close to it."""

import pytest
import torch

from sparselib.kernels.threshold import threshold

triton = pytest.importorskip("triton")
tl = triton.language

from sparselib.kernels.triton_entmax import LOWEST, kind_of, online_step  # noqa: E402

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
TILE = 16


@triton.jit
def _sweep(x_ptr, tau_ptr, steps, factor, power, ROWS: tl.constexpr, TILE: tl.constexpr, KIND: tl.constexpr):
    """The bound after each tile, ``[steps, ROWS]``, of scores ``[ROWS, steps * TILE]``."""
    row = tl.arange(0, ROWS)
    tau = tl.full([ROWS], LOWEST, tl.float32)
    norm = tl.zeros([ROWS], tl.float32)
    slope = tl.zeros([ROWS], tl.float32)
    largest = tl.full([ROWS], LOWEST, tl.float32)
    for step in range(0, steps):
        x = tl.load(x_ptr + row[:, None] * steps * TILE + step * TILE + tl.arange(0, TILE)[None, :])
        tau, norm, slope, largest = online_step(tau, norm, slope, largest, x, factor, power, KIND)
        tl.store(tau_ptr + step * ROWS + row, tau)


def scores(order: str) -> torch.Tensor:
    x = torch.randn(32, 320, generator=torch.Generator().manual_seed(0)) * torch.logspace(-2, 1.5, 32)[:, None]
    x[:, 40:60] = -torch.inf
    x[3] = 7.0
    x[4, :32] = -torch.inf
    return (
        x.sort(-1).values
        if order == "ascending"
        else x.sort(-1, descending=True).values
        if order == "descending"
        else x
    )


@pytest.mark.parametrize("order", ["random", "ascending", "descending"])
@pytest.mark.parametrize("alpha", [1.1, 1.25, 1.5, 1.75, 2])
def test_the_bound_holds_after_every_tile(alpha, order):
    x = scores(order)
    steps = x.shape[1] // TILE
    tau = torch.empty(steps, len(x), device=DEVICE)
    _sweep[(1,)](x.to(DEVICE), tau, steps, 1.0, 1 / (alpha - 1), ROWS=len(x), TILE=TILE, KIND=kind_of(alpha))
    for step, found in enumerate(tau.cpu(), start=1):
        seen = x[:, : step * TILE].double()
        shift = seen.amax(-1, keepdim=True)
        known = shift[:, 0] > -torch.inf
        relative = seen[known] - shift[known]
        exact = (threshold(relative, alpha, torch.empty_like(relative)) + shift[known]).squeeze(-1)
        assert (found[~known] == LOWEST.value).all()
        assert (found[known] <= exact + 1e-6 * exact.abs().clamp_min(1)).all()
    assert (exact - found).max() < 0.7
    assert (exact - found).median() < 0.1
