"""Time attention over packed sequences of different lengths on a GPU, against PyTorch's; print a JSON row per setting.

python benchmarks/packed.py > benchmarks/results/packed.jsonl

Lengths are drawn from a log-normal distribution, so that a few sequences are long. PyTorch's `varlen_attn` reads the packed
tensors and visits all blocks. Ours copies the sequences into a padded tensor, and blocks are random. Without CUDA, the script
prints one line and exits with status 2.
"""

import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product

import torch
from attention_peers import DIMENSIONS, HEADS, random_mask
from gpu_clock import timed
from hardware import hardware
from torch import Tensor

from sparselib.kernels import block_sparse_entmax_varlen

SEQUENCES, BLOCK, DENSITIES, ALPHAS = 16, 64, (1.0, 0.1), (1.5, 1.0)
#: Median length, and the standard deviation of its logarithm.
SETTINGS = ((1024, 0.5), (4096, 0.5), (1024, 1.0))


def main() -> None:
    if not torch.cuda.is_available():
        print("benchmarks/packed.py needs a CUDA device, and none is available")
        sys.exit(2)
    print(json.dumps(hardware()), flush=True)
    for (median, spread), dimension in product(SETTINGS, DIMENSIONS):
        for row in at_lengths(median, spread, dimension):
            print(json.dumps(row), flush=True)


def at_lengths(median: int, spread: float, dimension: int) -> Iterator[dict]:
    """Yield the rows of one distribution of lengths, for the forward pass and for both passes."""
    generator = torch.Generator().manual_seed(0)
    lengths = (median * (spread * torch.randn(SEQUENCES, generator=generator)).exp()).long().clamp_min(1)
    longest, total = int(lengths.max()), int(lengths.sum())
    bounds = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)]).to("cuda", torch.int32)
    draw = partial(torch.randn, total, HEADS, dimension, device="cuda", dtype=torch.bfloat16)
    inputs = [draw(requires_grad=True) for _ in range(3)]
    upstream = draw()
    setting = {"median": median, "spread": spread, "longest": longest, "total": total, "dimension": dimension}
    ours = partial(block_sparse_entmax_varlen, cu_seqlens=bounds, longest=longest)
    functions = {("varlen_attn", 1.0, 1.0): partial(dense, bounds, longest)}
    for density, alpha in product(DENSITIES, ALPHAS):
        mask = random_mask(longest, BLOCK, density) if density < 1 else None
        functions["ours", density, alpha] = partial(ours, block_mask=mask, alpha=alpha)
    for (name, density, alpha), function in functions.items():
        for part, run in passes(function, inputs, upstream).items():
            row = {"attention": name, "density": density, "alpha": alpha, "part": part}
            yield setting | row | timed(run)


def dense(bounds: Tensor, longest: int, *inputs: Tensor) -> Tensor:
    """Compute PyTorch's attention within each sequence."""
    from torch.nn.attention.varlen import varlen_attn

    return varlen_attn(*inputs, bounds, bounds, longest, longest)


def passes(function: Callable, inputs: list[Tensor], upstream: Tensor) -> dict[str, Callable]:
    """Return calls of the forward pass and of both passes."""
    return {
        "forward": lambda: function(*(x.detach() for x in inputs)),
        "both": lambda: torch.autograd.grad(function(*inputs), inputs, upstream),
    }


if __name__ == "__main__":
    main()
