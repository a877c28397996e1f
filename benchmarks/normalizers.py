"""1.5-entmax forward + backward on CPU: ours against the entmax package's, in one run, and whether the supports agree.

Run: python benchmarks/normalizers.py
"""

from collections.abc import Callable
from statistics import median
from time import perf_counter

import entmax
import torch
from torch import Tensor

from sparselib import entmax15, sparsemax
from sparselib.storage import hardware

SHAPES = [(16, 4, 128, 128), (4, 12, 512, 512)]
PAIRS = {
    "entmax15": (entmax15, entmax.entmax15),
    "sparsemax": (sparsemax, entmax.sparsemax),
}


def seconds(function: Callable[[Tensor], Tensor], scores: Tensor, gradient: Tensor) -> float:
    start = perf_counter()
    function(scores).backward(gradient)
    elapsed = perf_counter() - start
    scores.grad = None
    return elapsed


def compare(ours: Callable, peer: Callable, shape: tuple[int, ...], rounds: int = 9) -> tuple[float, float, float, int]:
    """Median milliseconds of both, the median ratio of neighbouring runs, and in how many places the supports differ."""
    generator = torch.Generator().manual_seed(0)
    scores = (2 * torch.randn(shape, generator=generator)).requires_grad_()
    gradient = torch.randn(shape, generator=generator)
    for function in (ours, peer):
        seconds(function, scores, gradient)
    pairs = [(seconds(ours, scores, gradient), seconds(peer, scores, gradient)) for _ in range(rounds)]
    differing = int(((ours(scores) > 0) != (peer(scores) > 0)).sum())
    mine, theirs = (1e3 * median(column) for column in zip(*pairs, strict=True))
    return mine, theirs, median(b / a for a, b in pairs), differing


def main() -> None:
    print(f"{hardware()}, torch {torch.__version__}, {torch.get_num_threads()} threads; forward + backward, medians")
    print(f"{'':12}{'shape':>20}{'ours, ms':>10}{'entmax, ms':>12}{'ratio':>7}   supports that differ")
    for name, (ours, package) in PAIRS.items():
        for shape in SHAPES:
            mine, theirs, ratio, differing = compare(ours, lambda x, f=package: f(x, dim=-1), shape)
            print(
                f"{name:12}{shape!s:>20}{mine:10.1f}{theirs:12.1f}{ratio:7.1f}   {differing} of {torch.Size(shape).numel()}"
            )


if __name__ == "__main__":
    main()
