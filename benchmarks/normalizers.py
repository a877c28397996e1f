"""Normalisers forward + backward on CPU, in one run: ours against the entmax package's, and whether the supports agree; then
whole attentions, q k^T and the product with v included, as multiples of softmax's.

Run: python benchmarks/normalizers.py
"""

from collections.abc import Callable
from functools import partial
from statistics import median
from time import perf_counter

import entmax
import torch
from torch import Tensor

from replication.files.storage import hardware
from sparselib import attention, entmax15, sparsemax, topk_softmax
from sparselib import entmax as entmax_alpha

SHAPES = [(16, 4, 128, 128), (4, 12, 512, 512)]
#: One alpha for each of the heads, as learned ones are.
ALPHAS = {heads: torch.linspace(1.1, 1.9, heads).view(-1, 1, 1) for _, heads, _, _ in SHAPES}
PAIRS = {
    "entmax15": (entmax15, entmax.entmax15),
    "sparsemax": (sparsemax, entmax.sparsemax),
    "alphas": (
        lambda x: entmax_alpha(x, ALPHAS[x.shape[1]]),
        lambda x, dim: entmax.entmax_bisect(x, ALPHAS[x.shape[1]], dim=dim),
    ),
}
#: Of q, k and v ``[B, H, n, D]``, and the keys that top-k attention keeps.
ATTENTION_SHAPE, TOP_K = (4, 8, 512, 64), 8
SOFTMAX = partial(torch.softmax, dim=-1)
ATTENTIONS = {
    "softmax": SOFTMAX,
    f"top-{TOP_K}": partial(topk_softmax, k=TOP_K),
    "entmax15": entmax15,
    "sparsemax": sparsemax,
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


def compare_attentions(rounds: int = 9) -> dict[str, tuple[float, float]]:
    """Median milliseconds of whole attentions, and the median of their ratios to softmax attention in the same round."""
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(ATTENTION_SHAPE, generator=generator).requires_grad_() for _ in range(3)]
    times: dict[str, list[float]] = {name: [] for name in ATTENTIONS}
    for _ in range(1 + rounds):
        for name, normalizer in ATTENTIONS.items():
            start = perf_counter()
            output, _ = attention(*inputs, normalizer=normalizer)
            torch.autograd.grad(output, inputs, torch.ones_like(output))
            times[name].append(perf_counter() - start)
    counted = {name: found[1:] for name, found in times.items()}
    return {
        name: (1e3 * median(found), median(a / b for a, b in zip(found, counted["softmax"], strict=True)))
        for name, found in counted.items()
    }


def main() -> None:
    print(f"{hardware()}, torch {torch.__version__}, {torch.get_num_threads()} threads; forward + backward, medians")
    print(f"{'':12}{'shape':>20}{'ours, ms':>10}{'entmax, ms':>12}{'ratio':>7}   supports that differ")
    for name, (ours, package) in PAIRS.items():
        for shape in SHAPES:
            mine, theirs, ratio, differing = compare(ours, lambda x, f=package: f(x, dim=-1), shape)
            print(
                f"{name:12}{shape!s:>20}{mine:10.1f}{theirs:12.1f}{ratio:7.1f}   {differing} of {torch.Size(shape).numel()}"
            )
    print(f"\nattention {ATTENTION_SHAPE}{'ms':>10}{'of softmax':>12}")
    for name, (milliseconds, ratio) in compare_attentions().items():
        print(f"{name:26}{milliseconds:10.1f}{ratio:12.2f}")


if __name__ == "__main__":
    main()
