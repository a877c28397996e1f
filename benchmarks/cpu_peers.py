"""Time attention on a CPU against PyTorch's: block-sparse against FlexAttention with the same blocks, dense against softmax.

python benchmarks/cpu_peers.py [--rounds 7] [--threads 1 2] > benchmarks/results/cpu_peers.json

All take turns in each round, and the first round is not counted. FlexAttention is compiled, computes softmax, and has no
backward pass on a CPU. Processor time is robust against other work on the machine if there is one thread. With several threads,
block-sparse attention is also timed while another process keeps one core busy.
"""

import argparse
import json
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median

import torch
from block_sparse_cpu import random_problem
from torch import Tensor
from torch.nn.attention.flex_attention import flex_attention
from torch.nn.functional import scaled_dot_product_attention

from sparselib.dense_attention import attention
from sparselib.kernels import BlockMask, block_sparse_entmax_attention
from sparselib.kernels.block_operator import attend

HEADS, DIMENSION, BLOCK, DENSITY = 8, 64, 128, 0.125
LENGTHS, DENSE_LENGTHS = (2048, 4096, 8192), (512, 1024, 4096)
#: Keys in decoding, and calls that are timed together.
DECODED, CALLS = 8192, 20
#: Factors of the scores for supports from under 1 to 100 % of this number of keys.
SUPPORT_LENGTH, SCALES = 1024, (0.5, 0.19, 0.125, 0.063, 0.039, 0.03, 0.0235, 0.015, 0.01, 0.001)
#: Tokens of a batch in dense attention.
TOKENS = 4096
#: Absolute tolerance between our softmax and FlexAttention's.
TOLERANCE = 1e-5

Contenders = dict[str, Callable[[], object]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7, help="timed rounds after the first (default: 7)")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="numbers of threads (default: 1 2)")
    arguments = parser.parse_args()
    rows = []
    for threads in arguments.threads:
        torch.set_num_threads(threads)
        for n in LENGTHS:
            functions = block_sparse(n)
            rows += timed("sparse", n, functions, arguments.rounds)
            if threads > 1:
                with busy_core():
                    disturbed = {name: functions[name] for name in ("entmax", "softmax", "FlexAttention")}
                    rows += timed("busy core", n, disturbed, arguments.rounds)
        for n in DENSE_LENGTHS:
            functions, share = over_all_pairs(n)
            rows += timed("dense", n, functions, arguments.rounds, support=share)
        rows += timed("decoding", DECODED, one_query(DECODED), arguments.rounds)
        for scale in SCALES:
            functions, share = over_all_pairs(SUPPORT_LENGTH, scale)
            rows += timed("supports", SUPPORT_LENGTH, functions, arguments.rounds, support=share)
    report = {"machine": machine(), "rounds": arguments.rounds, "density": DENSITY, "rows": rows}
    print(json.dumps(report, indent=1))


def timed(part: str, n: int, functions: Contenders, rounds: int, **more: object) -> list[dict]:
    """Return a row per contender with the median milliseconds of a call: of the clock, and of all threads' processor time."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in functions}
    for _ in range(rounds + 1):
        for name, function in functions.items():
            start = time.perf_counter(), time.process_time()
            function()
            times[name].append((time.perf_counter() - start[0], time.process_time() - start[1]))
    rows = []
    for name, pairs in times.items():
        wall, processor = (1e3 * median(x) for x in zip(*pairs[1:], strict=True))
        row = {"part": part, "n": n, "threads": torch.get_num_threads(), "attention": name, **more}
        rows.append(row | {"milliseconds": wall, "cpu_milliseconds": processor})
        print(rows[-1], file=sys.stderr)
    return rows


@contextmanager
def busy_core() -> Iterator[None]:
    """Keep one core busy with another process."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        try:
            yield
        finally:
            process.kill()


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


def over_all_pairs(n: int, scale: float | None = None) -> tuple[Contenders, float]:
    """Return both passes of dense attention, and the mean share of the keys that have weight under entmax."""
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(max(1, TOKENS // n), HEADS, n, DIMENSION, generator=generator) for _ in range(3)]
    entmax = partial(block_sparse_entmax_attention, scale=scale)
    some = [x[:1, :1] for x in inputs]
    share = (attention(*some, scale=scale)[1] > 0).double().mean().item()
    peer = both_passes(partial(scaled_dot_product_attention, scale=scale), inputs)
    return {"entmax": both_passes(entmax, inputs), "SDPA": peer}, share


def one_query(n: int) -> Contenders:
    """Return calls of attention of one query, as in decoding."""
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, HEADS, size, DIMENSION, generator=generator) for size in (1, n, n))
    functions = {"entmax": attend, "SDPA": scaled_dot_product_attention}
    return {name: partial(repeat, partial(function, q, k, v)) for name, function in functions.items()}


def repeat(function: Callable[[], object]) -> None:
    """Call a function that alone is too short to be timed."""
    for _ in range(CALLS):
        function()


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
