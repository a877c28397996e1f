"""Registers and loop costs of the Triton kernels compiled for Hopper (sm_90), without a GPU.

python benchmarks/kernel_instructions.py                                     settings of benchmarks/attention.py, as a table
python benchmarks/kernel_instructions.py DTYPE DIMENSION ALPHA CAUSAL BLOCK  one setting, a JSON object per kernel

Loop costs are counted, not timed. The table shows a loop's instructions per pair of a query and a key in its tile, the clocks
that a multiprocessor needs at least to issue them (four per clock, for 32 threads each), and the clocks of its matrix products
(4096 operations per clock in half precision). Overlap is never perfect, so these numbers are lower bounds, useful to compare
versions.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path

os.environ.pop("TRITON_INTERPRET", None)

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.runtime import driver

from sparselib.kernels import BlockMask, triton_backward, triton_forward, triton_lists
from sparselib.kernels.lists import BlockLists
from sparselib.kernels.tile_sizes import tile_sizes

SETTINGS = [("bfloat16", d, alpha, False, block) for d in (64, 128) for block in (64, 128) for alpha in (1.5, 1.0)]
KERNELS = {
    triton_forward: ("_forward",),
    triton_backward: ("_gradient_of_queries", "_gradients_of_keys"),
    triton_lists: ("_cut", "_tiles_of_marks"),
}
#: The purpose of each of a kernel's loops, in program order, and the matrix products per step.
LOOPS = {
    ("_forward", True): (("estimate", 1), ("refine", 1), ("weigh", 2)),
    ("_forward", False): (("weigh", 2),),
    ("_gradient_of_queries", True): (("dq", 4),),
    ("_gradient_of_queries", False): (("dq", 3),),
    ("_gradients_of_keys", True): (("dk, dv", 4),),
    ("_gradients_of_keys", False): (("dk, dv", 4),),
}
TOOLS = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"
LANES_PER_CLOCK, OPERATIONS_PER_CLOCK = 128, 4096


class Hopper:
    """The part of a driver that the compiler needs."""

    def get_current_target(self):
        return GPUTarget("cuda", 90, 32)

    def get_current_device(self):
        return 0

    def get_current_stream(self, device=None):
        return 0

    def get_active_torch_device(self):
        return torch.device("cpu")


class Compiling:
    """Replaces a kernel: a launch compiles it and passes its name and the compiled kernel to a function, without running it."""

    def __init__(self, kernel: triton.JITFunction, record: Callable) -> None:
        self.kernel, self.record = kernel, record

    def __getitem__(self, grid):
        return lambda *arguments, **options: self.record(
            self.kernel.fn.__name__, self.kernel.warmup(*arguments, grid=grid, **options)
        )


def main() -> None:
    driver.set_active(Hopper())
    if len(sys.argv) > 1:
        dtype, dimension, alpha, causal, block = sys.argv[1:]
        for row in compiled(dtype, int(dimension), float(alpha), causal == "True", int(block)):
            print(json.dumps(row))
        return
    print(f"triton {version('triton')}, sm_90; clocks of one multiprocessor per 1000 query-key pairs\n")
    print("dimension  alpha  block  loop      registers  spilled  instructions / pair  clocks: issue  products")
    for dtype, dimension, alpha, causal, block in SETTINGS:
        for row in compiled(dtype, dimension, alpha, causal, block):
            for loop in row["loops"]:
                numbers = f"{row['registers']:9}  {row['spilled_bytes']:7}  {loop['instructions']:19.1f}"
                clocks = f"{loop['issue_clocks']:13.0f}  {loop['product_clocks']:8.0f}"
                print(f"{dimension:9}  {alpha:5}  {block:5}  {loop['name']:8}  {numbers}  {clocks}", flush=True)


def compiled(dtype: str, dimension: int, alpha: float, causal: bool, block: int) -> list[dict]:
    """Compile one setting; return a row per kernel: ``kernel, product, shared_bytes, registers, spilled_bytes, loops``."""
    rows = []
    x = torch.zeros(1, 2, 256, dimension, dtype=getattr(torch, dtype))
    mask = BlockMask.from_dense(torch.ones(1, 1, 256 // block, 256 // block, dtype=torch.bool), block, 256)
    lists = BlockLists(*mask.lists()[0], mask.block_size)
    sizes = tile_sizes(mask.block_size, dimension, x.dtype)
    tiles = {
        "_forward": (sizes.row_tile * sizes.key_step, sizes.row_warps),
        "_gradient_of_queries": (sizes.row_tile * sizes.gradient_key_step, sizes.row_warps),
        "_gradients_of_keys": (sizes.key_tile * sizes.row_step, sizes.key_warps),
    }

    def record(name: str, kernel) -> None:
        product = next((x for x in ("wgmma", "mma.sync") if x in kernel.asm["ptx"]), "fma")
        row = {
            "kernel": name,
            "product": product,
            "shared_bytes": kernel.metadata.shared,
            **resources(kernel.asm["cubin"]),
        }
        names = LOOPS[name, alpha != 1] if product == "wgmma" else ()
        lengths = inner_loops(kernel.asm["cubin"]) if names else ()
        pairs, warps = tiles[name] if names else (1, 1)
        row["loops"] = [
            {
                "name": loop,
                "instructions": length * 32 * warps / pairs,
                "issue_clocks": 1000 * length * 32 * warps / pairs / LANES_PER_CLOCK,
                "product_clocks": 1000 * products * 2 * dimension / OPERATIONS_PER_CLOCK,
            }
            for (loop, products), length in zip(names, lengths, strict=True)
        ]
        rows.append(row)

    originals = {(module, name): getattr(module, name) for module, names in KERNELS.items() for name in names}
    rules = {"alpha": alpha, "scale": 0.125, "causal": causal}
    try:
        for (module, name), kernel in originals.items():
            setattr(module, name, Compiling(kernel, record))
        lists = triton_lists.both_lists(lists, lists, causal) if causal else lists
        output, tau, alive = triton_forward.forward(x, x, x, lists, None, sizes, precise=False, **rules)
        triton_backward.backward(x, x, x, x, output, tau, alive, lists, None, sizes, **rules)
    finally:
        for (module, name), kernel in originals.items():
            setattr(module, name, kernel)
    return rows


def resources(binary: bytes) -> dict:
    """Return the registers per thread, and the bytes of stack that the compiler spills to."""
    usage = run("cuobjdump", "--dump-resource-usage", binary)
    registers, stack = re.search(r"REG:(\d+) STACK:(\d+)", usage).groups()
    return {"registers": int(registers), "spilled_bytes": int(stack)}


def inner_loops(binary: bytes) -> list[int]:
    """Return the instructions of each innermost loop with a matrix product, in program order."""
    instructions, labels = [], {}
    for line in run("nvdisasm", "-c", binary).splitlines():
        if label := re.match(r"\s*(\.L_x_\d+):", line):
            labels[label[1]] = len(instructions)
        elif instruction := re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(.*?);", line):
            instructions.append(instruction[1])
    loops = list(backward_branches(instructions, labels))
    inner = [(a, b) for a, b in loops if not any(a <= c and d <= b and (a, b) != (c, d) for c, d in loops)]
    return [b - a + 1 for a, b in inner if any("GMMA" in instruction for instruction in instructions[a:b])]


def backward_branches(instructions: list[str], labels: dict[str, int]) -> Iterator[tuple[int, int]]:
    """Iterate over the first and last instruction of each loop, ascending; ignore branches to themselves, which are padding."""
    loops = []
    for last, instruction in enumerate(instructions):
        target = re.search(r"\bBRA\b.*\((\.L_x_\d+)\)", instruction)
        if target and labels[target[1]] < last:
            loops.append((labels[target[1]], last))
    return iter(sorted(loops))


def run(tool: str, *arguments: str | bytes) -> str:
    """Return the output of one of the compiler's tools for a binary, the last argument."""
    *options, binary = arguments
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(binary)
        file.flush()
        command = [str(TOOLS / tool), *options, file.name]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    main()
