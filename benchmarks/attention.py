"""Check and time block-sparse entmax attention on a GPU, most important sizes first, and write one JSON file.

python benchmarks/attention.py [--output FILE] [--seconds 300]

The baselines run in the same process on the same tensors: PyTorch's SDPA (flash and cuDNN), FlexAttention with the same blocks,
AdaSplash-1 (`pip install adasplash`; adasplash_claims.py measures version 2), and dense entmax in PyTorch if its scores fit in
memory. Masks consist of random blocks and the diagonal, and are built outside the timed calls. Calls are timed twice: launched
from Python, and, up to 50 ms, replayed from a CUDA graph, which excludes the host's time. Without CUDA, the script prints one
line and exits with status 2.
"""

import argparse
import importlib.util
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path

import torch
from attention_limits import DENSITY, break_even_points, compared_with_targets, prediction_shares, with_limits
from attention_peers import (
    BLOCKS,
    COMPILED_LENGTHS,
    DIMENSIONS,
    FLEX_BLOCK,
    FLEX_DENSITY,
    HEADS,
    TOKENS,
    compile_in_parallel,
    compile_ours,
    compile_peers,
    flex,
    prediction,
    random_inputs,
    random_mask,
    sdpa,
)
from gpu_clock import median_milliseconds, timed
from hardware import hardware
from torch.nn.attention import SDPBackend

from sparselib import attention, entmax15
from sparselib.kernels import block_sparse_entmax_attention
from sparselib.kernels.block_operator import attend
from sparselib.kernels.reference import block_sparse_entmax_attention_reference

LENGTHS = (8192, 32_768, 2048, 131_072, 4096, 16_384)  # most important first, in case time runs out
OTHER_DENSITIES = (0.05, 0.2)
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
    compile_in_parallel(
        partial(compile_ours, *setting) for setting in product(DIMENSIONS, (1.5, 1.0), (False, True), BLOCKS)
    )
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
    """Yield all rows, most important first."""
    compile_peers()
    for measurements in (at_a_tenth, compiled_peers):
        yield from at_sizes(measurements, COMPILED_LENGTHS)
    yield from at_sizes(at_a_tenth, [n for n in LENGTHS if n not in COMPILED_LENGTHS])
    yield from at_sizes(at_other_densities, LENGTHS)
    yield from at_sizes(other_peers, LENGTHS)


def at_sizes(measurements: Callable, lengths: tuple[int, ...]) -> Iterator[dict]:
    """Yield the rows of these measurements at all sizes."""
    for n, dimension, causal in product(lengths, DIMENSIONS, (False, True)):
        inputs = random_inputs(n, dimension, batch=max(1, TOKENS // n))
        size = {"n": n, "batch": len(inputs[0]), "heads": HEADS, "dimension": dimension, "causal": causal}
        yield from measurements(inputs, size)


def at_a_tenth(inputs: list[torch.Tensor], size: dict) -> Iterator[dict]:
    """Yield ours at a tenth of the blocks, and PyTorch's flash attention."""
    for block in reversed(BLOCKS):
        yield from ours(inputs, size, block, DENSITY)
    if not size["causal"]:
        yield from ours(inputs, size, FLEX_BLOCK, FLEX_DENSITY, "ours, softmax", alpha=1.0)
    dense = size | {"block": None, "density": 1.0}
    yield from measured("sdpa", partial(sdpa, SDPBackend.FLASH_ATTENTION, size["causal"]), inputs, dense)


def compiled_peers(inputs: list[torch.Tensor], size: dict) -> Iterator[dict]:
    """Yield FlexAttention and the prediction."""
    if not size["causal"]:
        mask = random_mask(size["n"], FLEX_BLOCK, FLEX_DENSITY)
        setting = size | {"block": FLEX_BLOCK, "density": FLEX_DENSITY, "listed_density": mask.density}
        yield from measured("flex", flex(mask), inputs, setting)
        predict, (q, k) = prediction(size["n"], size["dimension"]), (x.detach() for x in inputs[:2])
        row = size | {"block": BLOCKS[0], "attention": "sparsefinder-v2", "part": "prediction", "density": None}
        yield row | timed(lambda: predict(q, k))


def at_other_densities(inputs: list[torch.Tensor], size: dict) -> Iterator[dict]:
    """Yield ours with fewer and more of the blocks, and with all of them."""
    for block, density in product(BLOCKS, OTHER_DENSITIES):
        yield from ours(inputs, size, block, density)
    if size["n"] <= DENSE_MOST:
        yield from ours(inputs, size, BLOCKS[0], 1.0)


def other_peers(inputs: list[torch.Tensor], size: dict) -> Iterator[dict]:
    """Yield the dense baselines without a target, and ours with number checks, which wait for the GPU."""
    causal, n = size["causal"], size["n"]
    functions = {"sdpa-cudnn": partial(sdpa, SDPBackend.CUDNN_ATTENTION, causal)}
    if n <= DENSE_MOST:
        functions["ours, checked"] = lambda *x: block_sparse_entmax_attention(*x, causal=causal, check=True)
    if n <= DENSE_ENTMAX_MOST:
        position = torch.arange(n, device="cuda")
        allowed = position <= position[:, None] if causal else None
        functions["entmax"] = lambda q, k, v: attention(q, k, v, allowed, normalizer=entmax15)[0]
    if n <= FIRST_ADASPLASH_MOST and importlib.util.find_spec("adasplash"):
        from adasplash import adasplash_v1

        functions["adasplash-1"] = partial(adasplash_v1, alpha=1.5, is_causal=causal)
    for name, function in functions.items():
        yield from measured(name, function, inputs, size | {"block": None, "density": 1.0})


def ours(
    inputs: list[torch.Tensor], size: dict, block: int, density: float, name: str = "ours", **rules: float
) -> Iterator[dict]:
    """Yield the rows of block-sparse attention over random blocks, or over all blocks without a mask."""
    setting = size | {"block": block, "density": density}
    mask = None
    if density < 1:
        mask = random_mask(size["n"], block, density)
        setting["listed_density"] = mask.density
    run = partial(attend, block_mask=mask, causal=size["causal"], **rules)
    yield from measured(name, lambda *x: run(*x)[0], inputs, setting)


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


if __name__ == "__main__":
    main()
