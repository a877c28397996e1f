"""Compile the Triton kernels for Hopper (sm_90) without a GPU, and print what became of each: a JSON object per kernel.

python compile_for_hopper.py DTYPE DIMENSION ALPHA CAUSAL BLOCK, with TRITON_INTERPRET unset.
"""

import json
import sys

import torch
from triton.backends.compiler import GPUTarget
from triton.runtime import driver

from sparselib.kernels import BlockMask, triton_backward, triton_forward
from sparselib.kernels.lists import BlockLists, without_future
from sparselib.kernels.tile_sizes import tile_sizes


class Hopper:
    """As much of a driver as the compiler asks for."""

    def get_current_target(self):
        return GPUTarget("cuda", 90, 32)

    def get_current_device(self):
        return 0

    def get_current_stream(self, device=None):
        return 0

    def get_active_torch_device(self):
        return torch.device("cpu")


class Compiling:
    """Stands for a kernel: a launch compiles it and runs nothing."""

    def __init__(self, kernel):
        self.kernel = kernel

    def __getitem__(self, grid):
        def compile_it(*arguments, **options):
            compiled = self.kernel.warmup(*arguments, grid=grid, **options)
            ptx = compiled.asm["ptx"]
            product = next((name for name in ("wgmma", "mma.sync") if name in ptx), "fma")
            found = {"kernel": self.kernel.fn.__name__, "bytes": len(compiled.asm["cubin"]), "product": product}
            print(json.dumps(found), flush=True)

        return compile_it


def main(dtype: str, dimension: str, alpha: str, causal: str, block: str) -> None:
    driver.set_active(Hopper())
    triton_forward._forward = Compiling(triton_forward._forward)
    for name in ("_gradient_of_queries", "_gradients_of_keys"):
        setattr(triton_backward, name, Compiling(getattr(triton_backward, name)))
    size, width = int(block), int(dimension)
    x = torch.zeros(1, 2, 256, width, dtype=getattr(torch, dtype))
    blocks = 256 // size
    mask = BlockMask.from_dense(torch.ones(1, 1, blocks, blocks, dtype=torch.bool), size, 256)
    lists = BlockLists(*mask.lists()[0], mask.block_size)
    rules = {"alpha": float(alpha), "scale": 0.125, "causal": causal == "True"}
    if rules["causal"]:
        lists = without_future(lists)
    sizes = tile_sizes(mask.block_size, width, x.dtype)
    output, tau, alive = triton_forward.forward(x, x, x, lists, None, sizes, precise=False, **rules)
    triton_backward.backward(x, x, x, x, output, tau, alive, lists, None, sizes, **rules)


if __name__ == "__main__":
    main(*sys.argv[1:])
