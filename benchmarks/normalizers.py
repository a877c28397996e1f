"""Time of normalisers and whole attentions on a CPU, forward and backward.

The first table compares ours with the entmax package in one run, and counts differences between the supports. The second shows
whole attentions, including ``q @ k.T`` and the product with v, as multiples of softmax attention.

Run: python benchmarks/normalizers.py
"""

from collections.abc import Callable
from functools import partial
from statistics import median
from time import perf_counter

import entmax
import torch
from torch import Tensor

from replication.files.provenance import hardware
from sparselib import attention, entmax15, sparsemax, topk_softmax
from sparselib import entmax as entmax_alpha

SHAPES = [(16, 4, 128, 128), (4, 12, 512, 512)]
#: One alpha per head, as for learned alphas.
ALPHAS = {heads: torch.linspace(1.1, 1.9, heads).view(-1, 1, 1) for _, heads, _, _ in SHAPES}
PAIRS = {
    "entmax15": (entmax15, entmax.entmax15),
    "sparsemax": (sparsemax, entmax.sparsemax),
    "alphas": (
        lambda x: entmax_alpha(x, ALPHAS[x.shape[1]]),
        lambda x, dim: entmax.entmax_bisect(x, ALPHAS[x.shape[1]], dim=dim),
    ),
}
#: Shape ``[B, H, n, D]`` of q, k and v, and the number of keys that top-k attention keeps.
ATTENTION_SHAPE, TOP_K = (4, 8, 512, 64), 8
SOFTMAX = partial(torch.softmax, dim=-1)
ATTENTIONS = {
    "softmax": SOFTMAX,
    f"top-{TOP_K}": partial(topk_softmax, k=TOP_K),
    "entmax15": entmax15,
    "sparsemax": sparsemax,
}


def seconds(function: Callable[[Tensor], Tensor], scores: Tensor, gradient: Tensor) -> float:
    """Return the time of one forward and backward pass."""
    start = perf_counter()
    function(scores).backward(gradient)
    elapsed = perf_counter() - start
    scores.grad = None
    return elapsed


def compare(ours: Callable, peer: Callable, shape: tuple[int, ...], rounds: int = 9) -> tuple[float, float, float, int]:
    """Return both median times in milliseconds, the median ratio of adjacent runs, and the number of support differences."""
    generator = torch.Generator().manual_seed(0)
    scores = (2 * torch.randn(shape, generator=generator)).requires_grad_()
    gradient = torch.randn(shape, generator=generator)
    for function in (ours, peer):
        seconds(function, scores, gradient)
    pairs = [(seconds(ours, scores, gradient), seconds(peer, scores, gradient)) for _ in range(rounds)]
    differing = int(((ours(scores) > 0) != (peer(scores) > 0)).sum())
    our_time, peer_time = (1e3 * median(column) for column in zip(*pairs, strict=True))
    return our_time, peer_time, median(b / a for a, b in pairs), differing


def compare_attentions(rounds: int = 9) -> dict[str, tuple[float, float]]:
    """Return the median milliseconds of whole attentions, and the median ratio to softmax attention in the same round."""
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(ATTENTION_SHAPE, generator=generator).requires_grad_() for _ in range(3)]
    times: dict[str, list[float]] = {name: [] for name in ATTENTIONS}
    for _ in range(1 + rounds):
        for name, normalizer in ATTENTIONS.items():
            start = perf_counter()
            output, _ = attention(*inputs, normalizer=normalizer)
            torch.autograd.grad(output, inputs, torch.ones_like(output))
            times[name].append(perf_counter() - start)
    times = {name: values[1:] for name, values in times.items()}  # without the warm-up
    return {
        name: (1e3 * median(values), median(a / b for a, b in zip(values, times["softmax"], strict=True)))
        for name, values in times.items()
    }


def main() -> None:
    print(f"{hardware()}, torch {torch.__version__}, {torch.get_num_threads()} threads; forward + backward, medians")
    print(f"{'':12}{'shape':>20}{'ours, ms':>10}{'entmax, ms':>12}{'ratio':>7}   differences of the supports")
    for name, (ours, package) in PAIRS.items():
        for shape in SHAPES:
            our_time, peer_time, ratio, differing = compare(ours, lambda x, f=package: f(x, dim=-1), shape)
            entries = torch.Size(shape).numel()
            print(f"{name:12}{shape!s:>20}{our_time:10.1f}{peer_time:12.1f}{ratio:7.1f}   {differing} of {entries}")
    print(f"\nattention {ATTENTION_SHAPE}{'ms':>10}{'of softmax':>12}")
    for name, (milliseconds, ratio) in compare_attentions().items():
        print(f"{name:26}{milliseconds:10.1f}{ratio:12.2f}")


if __name__ == "__main__":
    main()
