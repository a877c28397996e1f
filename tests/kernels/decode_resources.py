"""What the compiler makes of the kernels of decoding for Hopper: a JSON object per kernel; benchmarks/ has to be importable.

python tests/kernels/decode_resources.py DTYPE DIMENSION ALPHA BLOCK  (a block of 0: no list)
"""

import json
import sys

import torch
from kernel_instructions import Compiling, Hopper, resources
from triton.runtime import driver

from sparselib.kernels import triton_decode
from sparselib.kernels.lists import dense


def main() -> None:
    dtype, dimension, alpha, block = getattr(torch, sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
    driver.set_active(Hopper())
    for name in ("_scores", "_thresholds", "_weigh"):
        setattr(triton_decode, name, Compiling(getattr(triton_decode, name), told))
    q = torch.zeros(2, 8, 1, dimension, dtype=dtype)
    cache = torch.zeros(2, 2, 960, dimension, dtype=dtype)
    lists = dense((1, 960 // block), block, False, q.device) if block else None
    lengths = torch.zeros(2, dtype=torch.int64)
    triton_decode.decode(q, cache, cache, lists, lengths, alpha=alpha, scale=0.125)


def told(name: str, kernel) -> None:
    product = next((x for x in ("wgmma", "mma.sync", "fma.rn.f32") if x in kernel.asm["ptx"]), None)
    row = {"kernel": name, "product": None if name == "_thresholds" else product.removesuffix(".rn.f32")}
    print(json.dumps(row | {"shared_bytes": kernel.metadata.shared, **resources(kernel.asm["cubin"])}))


if __name__ == "__main__":
    main()
