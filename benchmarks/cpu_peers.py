"""Time attention on a CPU against PyTorch's: block-sparse against FlexAttention with the same blocks, dense against softmax.

python benchmarks/cpu_peers.py [--rounds 7] > benchmarks/results/cpu_peers.json

All take turns in each round, and the first round is not counted. FlexAttention is compiled, computes softmax, and has no
backward pass on a CPU.
"""

import argparse
import json
import platform
import re
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import torch
from block_sparse_cpu import random_problem
from torch import Tensor
from torch.nn.attention.flex_attention import flex_attention
from torch.nn.functional import scaled_dot_product_attention
from torch.profiler import ProfilerActivity, profile

from sparselib.dense_attention import attention
from sparselib.kernels import BlockMask, block_sparse_entmax_attention
from sparselib.kernels.operator import attend

HEADS, DIMENSION, BLOCK, DENSITY = 8, 64, 128, 0.125
LENGTHS, DENSE_LENGTHS = (2048, 4096, 8192), (128, 512, 1024)
#: Tokens of a batch in dense attention.
TOKENS = 4096
#: Absolute tolerance between our softmax and FlexAttention's.
TOLERANCE = 1e-5

Contenders = dict[str, Callable[[], object]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7, help="timed rounds after the first (default: 7)")
    parser.add_argument(
        "--profile", action="store_true", help="print where our time goes at n = 4,096, and time nothing"
    )
    arguments = parser.parse_args()
    if arguments.profile:
        print_profiles()
        return
    sparse = [row for n in LENGTHS for row in timed(n, block_sparse(n), arguments.rounds)]
    dense = [row for n in DENSE_LENGTHS for row in timed(n, over_all_pairs(n), arguments.rounds)]
    report = {"machine": machine(), "rounds": arguments.rounds, "density": DENSITY, "sparse": sparse, "dense": dense}
    print(json.dumps(report, indent=1))


def print_profiles() -> None:
    """Print the operations that take the most time in block-sparse softmax and entmax."""
    inputs, mask = sparse_problem(4096)
    for name, alpha in (("softmax", 1.0), ("entmax", 1.5)):
        run = partial(attend, *inputs, mask, alpha=alpha)
        run()
        with profile(activities=[ProfilerActivity.CPU]) as profiled:
            run()
        operations = sorted(profiled.key_averages(), key=lambda of: -of.self_cpu_time_total)
        total = sum(of.self_cpu_time_total for of in operations)
        print(f"{name}: {total / 1e3:.0f} ms while profiled")
        for of in operations[:12]:
            print(f"{of.self_cpu_time_total / total:6.1%} {of.count:6d} calls  {of.key}")


def timed(n: int, functions: Contenders, rounds: int) -> list[dict]:
    """Return a row per contender with the median milliseconds of a call."""
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(rounds + 1):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            times[name].append(time.perf_counter() - start)
    return [{"n": n, "attention": name, "milliseconds": 1e3 * median(times[name][1:])} for name in functions]


def sparse_problem(n: int) -> tuple[list[Tensor], BlockMask]:
    """Return q, k and v without gradients, and a mask of the diagonal and random blocks for each head."""
    leaves, mask = random_problem(n, DENSITY, heads=HEADS, block=BLOCK)
    return [x.detach() for x in leaves], mask


def block_sparse(n: int) -> Contenders:
    """Return attention over random blocks, and SDPA over all; raise ValueError if FlexAttention computes something else."""
    inputs, mask = sparse_problem(n)
    torch.compiler.reset()  # after a few recompilations, it would silently run uncompiled
    flex = partial(torch.compile(flex_attention, dynamic=False), *inputs, block_mask=mask.to_flex())
    softmax = partial(attend, *inputs, mask, alpha=1.0)
    if (apart := (flex() - softmax()[0]).abs().max().item()) > TOLERANCE:
        raise ValueError(f"flex_attention: differs by {apart:.2g} from softmax over the same blocks")
    return {
        "entmax": partial(block_sparse_entmax_attention, *inputs, mask),
        "entmax, both passes": both_passes(lambda *x: block_sparse_entmax_attention(*x, mask), inputs),
        "softmax": softmax,
        "FlexAttention": flex,
        "SDPA": partial(scaled_dot_product_attention, *inputs),
    }


def over_all_pairs(n: int) -> Contenders:
    """Return both passes of dense attention: entmax, softmax with the same operations, and SDPA."""
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(TOKENS // n, HEADS, n, DIMENSION, generator=generator) for _ in range(3)]
    softmax = partial(torch.softmax, dim=-1)
    return {
        "entmax": both_passes(lambda *x: attention(*x)[0], inputs),
        "softmax": both_passes(lambda *x: attention(*x, normalizer=softmax)[0], inputs),
        "SDPA": both_passes(scaled_dot_product_attention, inputs),
    }


def both_passes(function: Callable[..., Tensor], inputs: list[Tensor]) -> Callable[[], object]:
    """Return a function that runs the forward and the backward pass."""
    leaves = [x.clone().requires_grad_() for x in inputs]
    upstream = torch.ones_like(inputs[0])
    return lambda: torch.autograd.grad(function(*leaves), leaves, upstream)


def machine() -> dict:
    """Return the processor's name, the number of threads, and versions."""
    names = re.findall(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), flags=re.MULTILINE)
    return {
        "processor": names[0] if names else platform.processor(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


if __name__ == "__main__":
    main()
