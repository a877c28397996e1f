"""The estimate of a threshold after each tile is close to the threshold of the processed keys."""

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
    """Store the estimate after each tile, ``[steps, ROWS]``, for scores ``[ROWS, steps * TILE]``."""
    row = tl.arange(0, ROWS)
    tau = tl.full([ROWS], LOWEST, tl.float32)
    level = tl.zeros([ROWS], tl.float32)
    slope = tl.zeros([ROWS], tl.float32)
    largest = tl.full([ROWS], LOWEST, tl.float32)
    for step in range(0, steps):
        x = tl.load(x_ptr + row[:, None] * steps * TILE + step * TILE + tl.arange(0, TILE)[None, :])
        tau, level, slope, largest = online_step(tau, level, slope, largest, x, factor, power, KIND)
        tl.store(tau_ptr + step * ROWS + row, tau)


def scores(order: str) -> torch.Tensor:
    """Return rows of scores of different sizes, with hidden keys and a constant row."""
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
def test_the_estimate_is_close_after_every_tile(alpha, order):
    x = scores(order)
    steps = x.shape[1] // TILE
    tau = torch.empty(steps, len(x), device=DEVICE)
    _sweep[(1,)](x.to(DEVICE), tau, steps, 1.0, 1 / (alpha - 1), ROWS=len(x), TILE=TILE, KIND=kind_of(alpha))
    for step, estimate in enumerate(tau.cpu(), start=1):
        processed = x[:, : step * TILE].double()
        shift = processed.amax(-1, keepdim=True)
        nonempty = shift[:, 0] > -torch.inf
        relative = processed[nonempty] - shift[nonempty]
        exact = (threshold(relative, alpha, torch.empty_like(relative)) + shift[nonempty]).squeeze(-1)
        assert (estimate[~nonempty] == LOWEST.value).all()
    # The threshold is 1 below the largest score at most.
    assert (exact - estimate).abs().max() < 0.75
    assert (exact - estimate).abs().median() < 0.13
    if alpha <= 1.5:
        assert (exact - estimate).abs().median() < 0.03
