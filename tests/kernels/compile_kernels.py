"""Compile the kernels for Hopper and print a JSON list of kernels per setting. benchmarks/ must be importable.

python tests/kernels/compile_kernels.py SETTING...

A setting is a JSON list: DTYPE, DIMENSION, ALPHA, CAUSAL and BLOCK for attention, or DTYPE, DIMENSION, ALPHA, BLOCK and PAGE
for decoding. A block of 0 means decoding without a list, a page of 0 a cache without pages. One process compiles all settings,
because importing the compiler takes long.
"""

import json
import sys

import torch
from kernel_instructions import Compiling, Hopper, compiled, resources
from triton.runtime import driver

from sparselib.kernels import triton_decode
from sparselib.kernels.lists import dense

NAMES = ("_scores", "_thresholds", "_weigh")
KERNELS = {name: getattr(triton_decode, name) for name in NAMES}


def decoding(dtype: str, dimension: int, alpha: float, block: int, page: int) -> list[dict]:
    """Compile the decoding kernels and return a row for each."""
    rows = []

    def record(name: str, kernel) -> None:
        product = next((x for x in ("wgmma", "mma.sync", "fma.rn.f32") if x in kernel.asm["ptx"]), None)
        row = {"kernel": name, "product": None if name == "_thresholds" else product.removesuffix(".rn.f32")}
        rows.append(row | {"shared_bytes": kernel.metadata.shared, **resources(kernel.asm["cubin"])})

    for name, kernel in KERNELS.items():
        setattr(triton_decode, name, Compiling(kernel, record))
    q = torch.zeros(2, 8, 1, dimension, dtype=getattr(torch, dtype))
    cache = torch.zeros(2, 2, page or 960, dimension, dtype=q.dtype)
    pages = torch.zeros(2, 960 // page, dtype=torch.int32) if page else None
    lists = dense((1, 960 // block), block, False, q.device) if block else None
    lengths = torch.zeros(2, dtype=torch.int64)
    triton_decode.decode(q, cache, cache, lists, lengths, pages, alpha=alpha, scale=0.125)
    return rows


if __name__ == "__main__":
    driver.set_active(Hopper())
    for setting in map(json.loads, sys.argv[1:]):
        print(json.dumps(compiled(*setting) if isinstance(setting[3], bool) else decoding(*setting)))
