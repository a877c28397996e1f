"""Check and time block-sparse entmax attention on a GPU in five minutes, and write one JSON file.

python benchmarks/attention.py [--output FILE] [--seconds 300]

The baselines run in the same process on the same tensors: PyTorch's SDPA (flash and cuDNN), FlexAttention with the same blocks,
AdaSplash (`pip install adasplash`; version 2 is causal only), and dense entmax in PyTorch if its scores fit in memory. Masks
consist of random blocks and the diagonal, and are built outside the timed calls. Every call is timed twice: launched from
Python, and replayed from a CUDA graph, which excludes the host's time. Without CUDA, the script prints one line and exits with
status 2.
"""

import argparse
import json
import multiprocessing
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import product
from pathlib import Path

import torch
from attention_limits import break_even_points, compared_with_targets, prediction_shares, with_limits
from hardware import hardware
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from replication.timing.contenders import untrained_prediction
from sparselib import attention, entmax15
from sparselib.kernels import BlockMask, block_sparse_entmax_attention
from sparselib.kernels.operator import attend
from sparselib.kernels.reference import block_sparse_entmax_attention_reference

TOKENS, HEADS = 32_768, 16
LENGTHS = (8192, 32_768, 2048, 131_072, 4096, 16_384)  # most important first, in case time runs out
DIMENSIONS = (64, 128)
BLOCKS = (64, 128)
DENSITIES = (0.1, 0.05, 0.2, 1.0)
FLEX_DENSITY, FLEX_BLOCK = 0.1, 128  # smaller blocks are not supported
FLEX_LENGTHS = (8192, 32_768)  # compilation takes many seconds per length
DENSE_ENTMAX_MOST = 2048
#: Dense attention by ours takes seconds beyond this length.
DENSE_MOST = 32_768
#: These calls wait for the GPU. Capturing them fails and leaves PyTorch's random generator unusable.
NOT_CAPTURED = ("ours, checked", "adasplash-1")
FIRST_ADASPLASH_MOST = 8192


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, help="default: benchmarks/results/attention-<GPU name>.json")
    parser.add_argument("--seconds", type=float, default=300, help="start no measurement after this many seconds")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        print("benchmarks/attention.py needs a CUDA device, and none is available")
        sys.exit(2)
    name = re.sub(r"\W+", "-", torch.cuda.get_device_name()).lower()
    output = arguments.output or Path(__file__).parent / "results" / f"attention-{name}.json"
    deadline = time.monotonic() + arguments.seconds
    compile_all()
    report = {"hardware": hardware(), "correctness": [], "chip": chip(), "rows": [], "stopped_early": False}
    for part, measurements in (("correctness", correctness()), ("rows", timings())):
        for row in measurements:
            print(json.dumps(row), flush=True)
            report[part].append(row)
            write(report, output)
            if time.monotonic() > deadline:
                report["stopped_early"] = True
                break
    write(report | conclusions(report), output)
    print(f"wrote {output}")


def write(report: dict, path: Path) -> None:
    """Write the report so far, atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(report, indent=1) + "\n")
    os.replace(partial, path)


def conclusions(report: dict) -> dict:
    """Return the rows with their limits, and the comparisons computed from them."""
    timed = [row for row in report["rows"] if row["part"] in ("forward", "both")]
    limited = with_limits(timed, report["chip"]["bf16_flops_per_second"])
    other_rows = [row for row in report["rows"] if row not in timed or row["milliseconds"] is None]
    return {
        "rows": limited + other_rows,
        "targets": compared_with_targets(limited),
        "prediction": prediction_shares(report["rows"]),
        "break_even": break_even_points(limited),
    }


def compile_all() -> None:
    """Compile each kernel in its own process into the shared cache, because Triton's compiler uses only one core."""
    settings = list(product(DIMENSIONS, (1.5, 1.0), (False, True), BLOCKS))
    with multiprocessing.get_context("spawn").Pool(min(len(settings), os.cpu_count() or 1)) as pool:
        pool.starmap(compile_one, settings)


def compile_one(dimension: int, alpha: float, causal: bool, block: int) -> None:
    """Compile both passes for one setting, with and without a mask."""
    inputs = random_inputs(1024, dimension, batch=1)
    for mask in (random_mask(1024, block, 0.5), None):
        output = attend(*inputs, mask, alpha=alpha, causal=causal)[0]
        torch.autograd.grad(output, inputs, torch.randn_like(output))
    torch.cuda.synchronize()


def chip() -> dict:
    """Measure the rate of bfloat16 products, and the bytes that a copy reads and writes per second."""
    size = 8192
    x, y = (torch.randn(size, size, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    source = torch.empty(1 << 30, device="cuda", dtype=torch.uint8)
    target = torch.empty_like(source)
    return {
        "bf16_flops_per_second": 2e3 * size**3 / median_milliseconds(lambda: x @ y),
        "copy_bytes_per_second": 2e3 * source.numel() / median_milliseconds(lambda: target.copy_(source)),
    }


def median_milliseconds(function: Callable) -> float:
    """Return the median time of a call from Python."""
    from triton.testing import do_bench

    return do_bench(function, warmup=20, rep=60, return_mode="median")


def replayed_milliseconds(function: Callable) -> float:
    """Return the median time of a call replayed from a CUDA graph."""
    from triton.testing import do_bench_cudagraph

    return do_bench_cudagraph(function, rep=40, return_mode="median")


def random_inputs(n: int, dimension: int, *, batch: int, heads: int = HEADS) -> list[torch.Tensor]:
    """Return random q, k and v in bfloat16."""
    generator = torch.Generator("cuda").manual_seed(0)
    shape = (batch, heads, n, dimension)
    return [
        torch.randn(shape, generator=generator, device="cuda", dtype=torch.bfloat16).requires_grad_() for _ in range(3)
    ]


def random_mask(n: int, block: int, density: float, *, heads: int = HEADS) -> BlockMask:
    """Return a mask of the diagonal and random blocks for each head, of this total density or at least the diagonal's."""
    blocks = -(-n // block)
    probability = (density * blocks - 1) / (blocks - 1)
    generator = torch.Generator("cuda").manual_seed(1)
    chosen = torch.rand(1, heads, blocks, blocks, generator=generator, device="cuda") < probability
    return BlockMask.from_dense(chosen | torch.eye(blocks, device="cuda", dtype=torch.bool), block, n)


def correctness() -> Iterator[dict]:
    """Yield the largest errors of output and gradients, for ours and for the reference in bfloat16, against float64."""
    settings = (
        (64, 1.5, False, 64),
        (128, 1.5, True, 64),
        (128, 1.5, False, 128),
        (64, 1.5, True, None),
        (64, 1.25, False, 16),
        (64, 2.0, False, 128),
        (128, 1.0, True, 64),
    )
    for dimension, alpha, causal, block in settings:
        inputs = random_inputs(1000, dimension, batch=2, heads=4)
        mask = block and random_mask(1000, block, 0.3, heads=4)
        upstream = torch.randn_like(inputs[0])

        def results(function, leaves, upstream=upstream, mask=mask, **rules):
            output = function(*leaves, mask, **rules)[0]
            return output, *torch.autograd.grad(output, leaves, upstream.to(output.dtype))

        rules = {"alpha": alpha, "causal": causal}
        reference = block_sparse_entmax_attention_reference
        exact = results(reference, [x.detach().double().requires_grad_() for x in inputs], **rules)
        row = {"dimension": dimension, "alpha": alpha, "causal": causal, "block": block}
        for name, function in (("ours", attend), ("pytorch", reference)):
            actual = results(function, inputs, **rules)
            errors = [(x.double() - y).abs().max().item() for x, y in zip(actual, exact, strict=True)]
            row[name] = dict(zip(("output", "dq", "dk", "dv"), errors, strict=True))
        row["passed"] = all(row["ours"][x] <= 2 * row["pytorch"][x] for x in row["ours"])
        yield row


def timings() -> Iterator[dict]:
    """Yield all rows, most important sizes first; each size has ours at every density and the baselines."""
    for n, dimension, causal in product(LENGTHS, DIMENSIONS, (False, True)):
        yield from at_size(n, dimension, causal)


def at_size(n: int, dimension: int, causal: bool) -> Iterator[dict]:
    """Yield the rows of one size."""
    batch = max(1, TOKENS // n)
    inputs = random_inputs(n, dimension, batch=batch)
    size = {"n": n, "batch": batch, "heads": HEADS, "dimension": dimension, "causal": causal}
    for block, density in product(BLOCKS, DENSITIES):
        setting = size | {"block": block, "density": density}
        mask = None
        if density < 1:
            mask = random_mask(n, block, density)
            setting["listed_density"] = mask.density
        elif block != BLOCKS[0] or n > DENSE_MOST:
            continue
        run = partial(attend, block_mask=mask, causal=causal)
        yield from measured("ours", lambda *x, run=run: run(*x)[0], inputs, setting)
        if (block, density) == (FLEX_BLOCK, FLEX_DENSITY) and not causal:
            yield from measured("ours, softmax", lambda *x, run=run: run(*x, alpha=1.0)[0], inputs, setting)
            if n in FLEX_LENGTHS:
                yield from measured("flex", flex(mask), inputs, setting)
    if not causal:
        yield from predictions(inputs, size | {"block": 64})
    size |= {"block": None, "density": 1.0}
    for name, function in peers(causal, n).items():
        yield from measured(name, function, inputs, size)


def predictions(inputs: list[torch.Tensor], setting: dict) -> Iterator[dict]:
    """Yield the time of Sparsefinder's version 2, compiled, with 16 clusters that each select a tenth of the blocks."""
    q, k = (x.detach() for x in inputs[:2])
    block = setting["block"]
    rule = {"clusters": 16, "count": max(1, round(0.1 * q.shape[2] / block)), "seed": 0, "device": "cuda"}
    predict = untrained_prediction(*q.shape[1::2], block, **rule, compiled=True)
    row = setting | {"attention": "sparsefinder-v2", "part": "prediction", "density": None}
    yield row | timed(lambda: predict(q, k))


def flex(mask: BlockMask) -> Callable:
    """Return FlexAttention with these blocks; the first call compiles it, so `timed` records a failure."""

    @cache
    def compiled() -> Callable:
        from torch.nn.attention.flex_attention import flex_attention

        torch.compiler.reset()  # after a few recompilations, it would silently run uncompiled
        return partial(torch.compile(flex_attention, dynamic=False), block_mask=mask.to_flex())

    return lambda q, k, v: compiled()(q, k, v)


def peers(causal: bool, n: int) -> dict[str, Callable]:
    """Return the dense baselines by name, and ours with number checks, which wait for the GPU."""

    def sdpa(backend: SDPBackend, *inputs: torch.Tensor) -> torch.Tensor:
        with sdpa_kernel(backend):
            return scaled_dot_product_attention(*inputs, is_causal=causal)

    functions = {
        "sdpa": partial(sdpa, SDPBackend.FLASH_ATTENTION),
        "sdpa-cudnn": partial(sdpa, SDPBackend.CUDNN_ATTENTION),
    }
    if n <= DENSE_MOST:
        functions["ours, checked"] = lambda *x: block_sparse_entmax_attention(*x, causal=causal, check=True)
    if n <= DENSE_ENTMAX_MOST:
        position = torch.arange(n, device="cuda")
        allowed = position <= position[:, None] if causal else None
        functions["entmax"] = lambda q, k, v: attention(q, k, v, allowed, normalizer=entmax15)[0]
    try:
        import adasplash
    except ImportError:
        return functions
    if n <= FIRST_ADASPLASH_MOST:
        functions["adasplash-1"] = lambda q, k, v: adasplash.adasplash_v1(q, k, v, alpha=1.5, is_causal=causal)
    if causal:
        functions["adasplash-2"] = adasplash.adasplash_v2
    return functions


def measured(name: str, function: Callable, inputs: list[torch.Tensor], setting: dict) -> Iterator[dict]:
    """Yield a row for the forward pass, and one for both passes."""
    upstream = torch.randn_like(inputs[0])
    captured = name not in NOT_CAPTURED
    passes = {
        "forward": lambda: function(*(x.detach() for x in inputs)),
        "both": lambda: torch.autograd.grad(function(*inputs), inputs, upstream),
    }
    for part, run in passes.items():
        yield setting | {"attention": name, "part": part} | timed(run, captured)


def timed(run: Callable, captured: bool = True) -> dict:
    """Return milliseconds from Python and replayed, and megabytes, or the error of a call that fails."""
    row = {"milliseconds": None, "replayed": None, "megabytes": None}
    try:
        run()  # compiles, and allocates persistent memory
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        run()
        row["megabytes"] = (torch.cuda.max_memory_allocated() - before) / 2**20
        row["milliseconds"] = median_milliseconds(run)
        if captured:
            row["replayed"] = replayed_milliseconds(run)
    except Exception as error:  # A failing baseline must not stop the other measurements.
        row["error"] = f"{type(error).__name__}: {error}"[:300]
    return row


if __name__ == "__main__":
    main()
