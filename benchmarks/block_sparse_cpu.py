"""Time and memory of block-sparse entmax attention on a CPU, forward and backward, against dense entmax in the same run.

python benchmarks/block_sparse_cpu.py --length 4096 --density 0.1
"""

import argparse
import re
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import torch

from sparselib.dense_attention import attention
from sparselib.kernels import BlockMask, block_sparse_entmax_attention

HEADS, DIMENSION, BLOCK = 4, 64, 64


def random_problem(
    length: int, density: float, *, heads: int = HEADS, block: int = BLOCK
) -> tuple[list[torch.Tensor], BlockMask]:
    """Return random q, k and v, and a mask of the diagonal and random blocks for each head."""
    generator = torch.Generator().manual_seed(0)
    leaves = [torch.randn(1, heads, length, DIMENSION, generator=generator).requires_grad_() for _ in range(3)]
    blocks = -(-length // block)
    dense = torch.rand(1, heads, blocks, blocks, generator=generator) < (density * blocks - 1) / (blocks - 1)
    return leaves, BlockMask.from_dense(dense | torch.eye(blocks, dtype=torch.bool), block, length)


def seconds(name: str, leaves: list[torch.Tensor], mask: BlockMask) -> float:
    """Return the time of one forward and backward pass."""
    start = time.perf_counter()
    output = attention(*leaves)[0] if name == "dense" else block_sparse_entmax_attention(*leaves, mask)
    torch.autograd.grad(output.sum(), leaves)
    return time.perf_counter() - start


def peak_kilobytes() -> int:
    """Return the peak memory of this process (Linux only). The peak from getrusage would include the parent's."""
    return int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1])


def peak_megabytes(name: str, arguments: argparse.Namespace) -> float:
    """Return how much one forward and backward pass increases the peak memory of a new process."""
    sizes = ["--length", str(arguments.length), "--density", str(arguments.density)]
    result = subprocess.run(
        [sys.executable, __file__, *sizes, "--memory-of", name], capture_output=True, text=True, check=True
    )
    return float(result.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--length", type=int, default=4096, help="number of tokens (default: 4096)")
    parser.add_argument("--density", type=float, default=0.1, help="share of visited blocks (default: 0.1)")
    parser.add_argument("--repeats", type=int, default=5, help="timed rounds after the warm-up (default: 5)")
    parser.add_argument(
        "--memory-of", choices=["dense", "block-sparse"], help="print only this attention's memory in MiB"
    )
    arguments = parser.parse_args()
    leaves, mask = random_problem(arguments.length, arguments.density)
    if arguments.memory_of:
        before = peak_kilobytes()
        seconds(arguments.memory_of, leaves, mask)
        print((peak_kilobytes() - before) / 1024)
        return
    times: dict[str, list[float]] = {"dense": [], "block-sparse": []}
    for _ in range(
        arguments.repeats + 1
    ):  # Both take turns, so that disturbances affect both. The first round is a warm-up.
        for name, values in times.items():
            values.append(seconds(name, leaves, mask))
    medians = {name: median(values[1:]) for name, values in times.items()}
    print(f"n = {arguments.length}, {mask.density:.1%} of the blocks, {torch.get_num_threads()} threads")
    for name, value in medians.items():
        print(f"{name:13s} {value * 1e3:9.1f} ms {peak_megabytes(name, arguments):9.1f} MB")
    print(f"block-sparse is {medians['dense'] / medians['block-sparse']:.2f} times as fast")


if __name__ == "__main__":
    main()
