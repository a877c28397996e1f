"""Judge two claims of AdaSplash-2 on a GPU, and time our kernel beside it; write one JSON file.

python benchmarks/adasplash_claims.py [--output FILE] [--seconds 120]

The claims are those of the abstract of "AdaSplash-2: Faster Differentiable Sparse Attention" (arXiv 2604.15180).

*Speed*: it "matches or improves per-step training time relative to FlashAttention-2 when block sparsity is moderate-to-high
(e.g., > 60 %)". A step is the forward and the backward pass, causal, replayed from a CUDA graph. FlashAttention-2 is PyTorch's
flash backend. The block sparsity is AdaSplash-2's own: the share of its causal tiles of 64 x 64 pairs that its mask leaves out.
The claim *holds* if AdaSplash-2 takes at most as long at every setting above 60 %, *fails* if at none, and else *depends on the
setting*.

*Iterations*: its histogram "reduces the number of iterations needed to compute tau to typically 1--2". The claim *holds* if
with two iterations the relative error of its output against float64 is at most twice that of our kernel on all inputs, *fails*
if on at most half of them, and else *depends on the input*. One iteration, the package's default, is reported beside it.

Inputs have topics: a block of keys has one, and a block of queries attends to a few, so that tiles of other topics get no
weight. The second claim is also measured on random inputs of three scales. Without CUDA, the script prints one line and exits
with status 2.
"""

import argparse
import json
import re
import sys
import time
from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path

import torch
from attention_peers import (
    ADASPLASH_SETTINGS,
    ADASPLASH_SIZES,
    HEADS,
    TOKENS,
    compile_adasplash,
    compile_in_parallel,
    random_inputs,
    sdpa,
)
from gpu_clock import first_line, timed
from hardware import hardware
from torch import Tensor
from torch.nn.attention import SDPBackend

from sparselib.kernels import BlockMask
from sparselib.kernels.block_operator import attend
from sparselib.kernels.reference import block_sparse_entmax_attention_reference

#: Tokens of a tile of AdaSplash-2's mask.
TILE = 64
TOPICS = 40
#: Topics that a query block attends to, for block sparsities of about 60, 80, 90 and 95 %.
ATTENDED = (15, 8, 4, 2)
#: Entry of a topic in queries and keys. Scores of other topics lie more than 1 below, where no weight can be.
AMPLITUDE = 10.0
LEAST_SPARSITY = 0.6
ITERATIONS = (1, 2)
#: The largest accepted error, as a multiple of our kernel's.
MOST_ERROR = 2.0
#: Standard deviations of random queries and keys.
SCALES = (1.0, 2.0, 4.0)
#: Length and heads at which outputs are compared with float64: a size that AdaSplash-2 is compiled for.
CHECKED, CHECKED_HEADS = 8192, 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, help="default: benchmarks/results/adasplash-<GPU name>.json")
    parser.add_argument("--seconds", type=float, default=120, help="start no setting after this many seconds")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        print("benchmarks/adasplash_claims.py needs a CUDA device, and none is available")
        sys.exit(2)
    from attention import write

    name = re.sub(r"\W+", "-", torch.cuda.get_device_name()).lower()
    output = arguments.output or Path(__file__).parent / "results" / f"adasplash-{name}.json"
    deadline = time.monotonic() + arguments.seconds
    compile_in_parallel(
        partial(compile_adasplash, *size, part) for size, part in product(ADASPLASH_SIZES, range(ADASPLASH_SETTINGS))
    )
    report = {"hardware": hardware(), "times": [], "errors": [], "stopped_early": False}
    for part, measurements in (("times", times()), ("errors", errors())):
        for row in measurements:
            print(json.dumps(row), flush=True)
            report[part].append(row)
            write(report | {"verdicts": verdicts(report)}, output)
            if time.monotonic() > deadline:
                report["stopped_early"] = True
                break
    write(report | {"verdicts": verdicts(report)}, output)
    print(f"wrote {output}")


def topical_inputs(n: int, dimension: int, attended: int, *, batch: int, heads: int = HEADS) -> list[Tensor]:
    """Return q, k and v in bfloat16; queries attend to keys of `attended` topics, one of them that of their tile."""
    inputs = random_inputs(n, dimension, batch=batch, heads=heads)
    generator = torch.Generator("cuda").manual_seed(2)
    order = torch.rand(batch, heads, n // TILE, TOPICS, generator=generator, device="cuda")
    of_keys = torch.randint(TOPICS, (batch, heads, n // TILE, 1), generator=generator, device="cuda")
    rank = order.scatter_(-1, of_keys, -1.0).argsort(-1).argsort(-1)
    chosen = [rank < attended, of_keys == torch.arange(TOPICS, device="cuda")]
    with torch.no_grad():
        for x, topics in zip(inputs, chosen, strict=False):
            x[..., :TOPICS] = AMPLITUDE * topics.repeat_interleave(TILE, 2)
    return inputs


def times() -> Iterator[dict]:
    """Yield the times of both passes at each size and sparsity: AdaSplash-2, PyTorch's flash attention, and ours."""
    from adasplash import adasplash2

    for (n, dimension), attended in product(ADASPLASH_SIZES, ATTENDED):
        inputs = topical_inputs(n, dimension, attended, batch=TOKENS // n)
        size = {"n": n, "batch": TOKENS // n, "heads": HEADS, "dimension": dimension, "attended": attended}
        try:
            mask, size["sparsity"] = tiles_of(adasplash2(*inputs))
        except Exception as error:  # A failing peer must not stop the other measurements.
            yield size | {"attention": "adasplash-2", "milliseconds": None, "error": first_line(error)}
            continue
        runs = {
            "adasplash-2": adasplash2,
            "flash": partial(sdpa, SDPBackend.FLASH_ATTENTION, True),
            "ours": lambda *x: attend(*x, causal=True)[0],
            "ours, its tiles": lambda *x, mask=mask: attend(*x, mask, causal=True)[0],
        }
        upstream = torch.randn_like(inputs[0])
        for name, run in runs.items():
            both = partial(both_passes, run, inputs, upstream)
            yield size | {"attention": name} | timed(both)


def both_passes(run, inputs: list[Tensor], upstream: Tensor) -> None:
    torch.autograd.grad(run(*inputs), inputs, upstream)


def tiles_of(output: Tensor) -> tuple[BlockMask, float]:
    """Return the tiles that AdaSplash-2 visited for an output ``[B, H, n, D]``, and the share that it left out."""
    bits = output.grad_fn.saved_tensors[-1]
    tiles = output.shape[2] // TILE
    visited = (bits[..., None] >> torch.arange(32, device=bits.device) & 1).flatten(-2).bool()[:, :, :tiles, :tiles]
    visited = visited.tril()
    share = visited.sum().item() / (visited[..., 0, 0].numel() * tiles * (tiles + 1) / 2)
    return BlockMask.from_dense(visited, TILE, output.shape[2]), 1 - share


def errors() -> Iterator[dict]:
    """Yield relative errors of outputs against float64, for AdaSplash-2 after one and two iterations and for ours."""
    from adasplash import adasplash2

    dimensions = sorted({dimension for n, dimension in ADASPLASH_SIZES if n == CHECKED})
    for dimension, (kind, value) in product(
        dimensions, [("topics", x) for x in ATTENDED] + [("scale", x) for x in SCALES]
    ):
        if kind == "topics":
            inputs = topical_inputs(CHECKED, dimension, value, batch=1, heads=CHECKED_HEADS)
        else:
            q, k, v = random_inputs(CHECKED, dimension, batch=1, heads=CHECKED_HEADS)
            inputs = [q * value**0.5, k * value**0.5, v]
        inputs = [x.detach() for x in inputs]
        exact = block_sparse_entmax_attention_reference(*(x.double() for x in inputs), None, causal=True)[0]
        row = {"n": CHECKED, "dimension": dimension, kind: value}
        runs = {f"adasplash-2, {i}": partial(adasplash2, niter=i) for i in ITERATIONS}
        for name, run in (runs | {"ours": lambda *x: attend(*x, causal=True)[0]}).items():
            try:
                row[name] = ((run(*inputs).double() - exact).norm() / exact.norm()).item()
            except Exception as error:  # A failing peer must not stop the other measurements.
                row[f"error of {name}"] = first_line(error)
        yield row


def verdicts(report: dict) -> list[dict]:
    """Return each claim's verdict by the rule of the module's description, with what it was judged on.

    A claim without any measurement is *untested*.
    """
    ratios = []
    by_setting = {}
    for row in report["times"]:
        by_setting.setdefault((row["n"], row["dimension"], row["attended"]), {})[row["attention"]] = row
    for (n, dimension, _), rows in by_setting.items():
        pair = [rows.get(name, {}).get("replayed") for name in ("flash", "adasplash-2")]
        if None not in pair and rows["flash"]["sparsity"] > LEAST_SPARSITY:
            setting = {"n": n, "dimension": dimension, "sparsity": rows["flash"]["sparsity"]}
            ratios.append(setting | {"ratio": pair[0] / pair[1], "met": pair[0] >= pair[1]})
    last = f"adasplash-2, {ITERATIONS[-1]}"
    compared = [row for row in report["errors"] if last in row and "ours" in row]
    accurate = [row | {"met": row[last] <= MOST_ERROR * row["ours"]} for row in compared]
    return [
        {"claim": "speed", "verdict": _verdict(ratios, 0, "depends on the setting"), "judged": ratios},
        {
            "claim": "iterations",
            "verdict": _verdict(accurate, len(accurate) // 2, "depends on the input"),
            "judged": accurate,
        },
    ]


def _verdict(judged: list[dict], most_of_a_failure: int, else_: str) -> str:
    met = sum(row["met"] for row in judged)
    if not judged:
        return "untested"
    if met == len(judged):
        return "holds"
    return "fails" if met <= most_of_a_failure else else_


if __name__ == "__main__":
    main()
