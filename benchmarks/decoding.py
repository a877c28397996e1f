"""Time decoding on a GPU, one new token per sequence over its cache, against SDPA and FlexAttention.

python benchmarks/decoding.py [--seconds 110] > benchmarks/results/decoding.jsonl

The script prints a JSON row per setting, with the median time of a call from Python, and of the same call replayed from a CUDA
graph, both with a cold L2 cache. Blocks are random and shared by all heads. SDPA reads all keys. `bytes` counts the keys and
values in visited blocks. Without CUDA, the script prints one line and exits with status 2.
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import product

import torch
from gpu_clock import first_line
from hardware import hardware

from sparselib.kernels import BlockMask, block_sparse_entmax_decode

HEADS, KEY_HEADS, DIMENSION, BLOCK = 32, 8, 128, 128
LENGTHS = (32_768, 131_072, 4096)  # most important first, in case time runs out
BATCHES = (1, 16)
DENSITIES = (1.0, 0.25, 0.1)
ALPHAS = (1.5, 1.0)
#: Tokens per page; vLLM's default is 16.
PAGES = (16, 64)
#: Queries per block in FlexAttention's masks; the new token is the first of them.
FLEX_QUERIES = 128


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=110, help="start no setting after this many seconds")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        print("benchmarks/decoding.py needs a CUDA device, and none is available")
        sys.exit(2)
    deadline = time.monotonic() + arguments.seconds
    print(json.dumps(hardware()), flush=True)
    print(json.dumps(correctness()), flush=True)
    for n, batch in product(LENGTHS, BATCHES):
        for row in at_size(n, batch):
            print(json.dumps(row), flush=True)
            if time.monotonic() > deadline:
                print(json.dumps({"stopped_early": True}))
                return


def random_inputs(n: int, batch: int) -> list[torch.Tensor]:
    """Return random queries, and a cache of random keys and values, in bfloat16."""
    generator = torch.Generator("cuda").manual_seed(0)
    draw = partial(torch.randn, generator=generator, device="cuda", dtype=torch.bfloat16)
    caches = [draw(batch, KEY_HEADS, n, DIMENSION) for _ in range(2)]
    return [draw(batch, HEADS, 1, DIMENSION), *caches]


def random_mask(n: int, density: float) -> BlockMask:
    """Return a mask of random blocks for all sequences and heads; their number is rounded up."""
    blocks = -(-n // BLOCK)
    generator = torch.Generator("cuda").manual_seed(1)
    order = torch.randperm(blocks, generator=generator, device="cuda")
    visited = torch.zeros(1, 1, 1, blocks, dtype=torch.bool, device="cuda")
    visited[..., order[: math.ceil(density * blocks)]] = True
    return BlockMask.from_dense(visited, (1, BLOCK), (1, n))


def in_pages(caches: list[torch.Tensor], size: int) -> tuple[list[torch.Tensor], torch.Tensor]:
    """Return pools whose pages have the caches' parts in random order, and the page table."""
    batch, _, n, _ = caches[0].shape
    generator = torch.Generator("cuda").manual_seed(2)
    table = torch.randperm(batch * n // size, generator=generator, device="cuda")
    order = table.argsort()
    pools = [x.unflatten(2, (-1, size)).transpose(1, 2).flatten(0, 1)[order] for x in caches]
    return pools, table.view(batch, -1)


def correctness() -> dict:
    """Return the largest errors in bfloat16, of both backends and of pages, against the gather backend in float64."""
    inputs, mask = random_inputs(4096, 2), random_mask(4096, 0.25)
    row = {"part": "correctness"}
    for alpha in ALPHAS:
        run = partial(block_sparse_entmax_decode, block_mask=mask, alpha=alpha)
        exact = run(*(x.double() for x in inputs), backend="gather")
        row[f"alpha={alpha}"] = {
            backend: (run(*inputs, backend=backend) - exact).abs().max().item() for backend in ("triton", "gather")
        }
        for size in PAGES:
            pools, table = in_pages(inputs[1:], size)
            error = (run(inputs[0], *pools, pages=table) - exact).abs().max().item()
            row[f"alpha={alpha}"][f"pages of {size}"] = error
    return row


def at_size(n: int, batch: int) -> Iterator[dict]:
    """Yield the rows of one size: ours at each density and alpha, without a list, in pages, and the baselines."""
    inputs = random_inputs(n, batch)
    setting = {"n": n, "batch": batch, "heads": HEADS, "key_heads": KEY_HEADS, "dimension": DIMENSION}
    sdpa = partial(torch.nn.functional.scaled_dot_product_attention, *inputs, enable_gqa=True)
    yield measured("sdpa", sdpa, setting, n)
    for alpha in ALPHAS:
        yield measured("ours, no list", partial(block_sparse_entmax_decode, *inputs, alpha=alpha), setting, n, alpha)
    for size in PAGES:
        pools, table = in_pages(inputs[1:], size)
        run = partial(block_sparse_entmax_decode, inputs[0], *pools, pages=table)
        yield measured(f"ours, pages of {size}", run, setting, n, 1.5)
    for density in DENSITIES:
        mask = random_mask(n, density)
        keys = int(mask.kv_num_blocks.sum()) * BLOCK
        for alpha in ALPHAS:
            ours = partial(block_sparse_entmax_decode, *inputs, mask, alpha=alpha)
            yield measured("ours", ours, setting, keys, alpha)
        yield measured("flex", partial(flex, mask, *inputs), setting, keys)


@cache
def compiled_flex() -> Callable:
    """Return compiled FlexAttention."""
    from torch.nn.attention.flex_attention import flex_attention

    return torch.compile(flex_attention, dynamic=False)


@cache
def flex_mask(mask: BlockMask):
    """Return a FlexAttention mask of the same blocks, all full, padded so that all densities share a compilation."""
    from torch.nn.attention.flex_attention import BlockMask as FlexMask

    indices = torch.zeros(1, 1, 1, mask.blocks[1], dtype=torch.int32, device="cuda")
    indices[..., : mask.kv_indices.shape[-1]] = mask.kv_indices
    no_blocks = torch.zeros_like(mask.kv_num_blocks)
    lists = (no_blocks, torch.zeros_like(indices), mask.kv_num_blocks, indices)
    return FlexMask.from_kv_blocks(*lists, BLOCK_SIZE=(FLEX_QUERIES, BLOCK), seq_lengths=mask.length)


def flex(mask: BlockMask, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Compute FlexAttention over the blocks of a mask."""
    return compiled_flex()(q, k, v, block_mask=flex_mask(mask), enable_gqa=True)


def measured(name: str, run: Callable, setting: dict, keys: int, alpha: float = 1.0) -> dict:
    """Return a row with the times of a call, or with the error of a call that fails."""
    from triton.testing import do_bench

    size = 2 * 2 * keys * setting["batch"] * KEY_HEADS * DIMENSION
    row = setting | {"attention": name, "alpha": alpha, "density": keys / setting["n"], "bytes": size}
    median = partial(do_bench, warmup=10, rep=50, return_mode="median")
    try:
        with torch.no_grad():
            run()
            row["microseconds"] = 1000 * median(run)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                run()
            row["graph_microseconds"] = 1000 * median(graph.replay)
    except Exception as error:  # A failing baseline must not stop the other measurements.
        row["error"] = first_line(error)
    return row


if __name__ == "__main__":
    main()
