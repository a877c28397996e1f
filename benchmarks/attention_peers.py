"""What benchmarks/attention.py compares: inputs, masks, peers, and their compilation in parallel processes."""

import importlib
import multiprocessing
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from itertools import product

import torch
from attention_limits import DENSITY
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from replication.timing.contenders import untrained_prediction
from sparselib.kernels import BlockMask
from sparselib.kernels.block_operator import attend

TOKENS, HEADS = 32_768, 16
DIMENSIONS = (64, 128)
BLOCKS = (64, 128)
FLEX_DENSITY, FLEX_BLOCK = DENSITY, 128  # smaller blocks are not supported
#: FlexAttention compiles for each length, which takes many seconds.
COMPILED_LENGTHS = (8192, 32_768)
#: Lengths and dimensions of AdaSplash-2, which compiles for each of them and takes longer.
ADASPLASH_SIZES = ((8192, 64), (8192, 128), (32_768, 64))
#: AdaSplash-2 tries this many settings of each kernel, which as many processes compile.
ADASPLASH_SETTINGS = 6


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


def sdpa(backend: SDPBackend, causal: bool, *inputs: torch.Tensor) -> torch.Tensor:
    """Compute PyTorch's attention with one of its backends."""
    with sdpa_kernel(backend):
        return scaled_dot_product_attention(*inputs, is_causal=causal)


def prediction(n: int, dimension: int) -> Callable:
    """Return Sparsefinder's version 2, compiled, with 16 clusters that each select a tenth of the blocks."""
    rule = {"clusters": 16, "count": max(1, round(DENSITY * n / BLOCKS[0])), "seed": 0, "device": "cuda"}
    return untrained_prediction(HEADS, dimension, BLOCKS[0], **rule, compiled=True)


def flex(mask: BlockMask) -> Callable:
    """Return FlexAttention with these blocks; the first call compiles it, so `timed` records a failure."""

    @cache
    def compiled() -> Callable:
        from torch.nn.attention.flex_attention import flex_attention

        torch.compiler.reset()  # after a few recompilations, it would silently run uncompiled
        return partial(torch.compile(flex_attention, dynamic=False), block_mask=mask.to_flex())

    return lambda q, k, v: compiled()(q, k, v)


def compile_in_parallel(jobs: Iterable[Callable[[], None]]) -> None:
    """Run each job in its own process, which compiles kernels into the shared caches: Triton's compiler uses only one core."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), context, max_tasks_per_child=1) as pool:
        for future in [pool.submit(job) for job in jobs]:
            future.result()


def compile_ours(dimension: int, alpha: float, causal: bool, block: int) -> None:
    """Compile both passes for one setting, with and without a mask."""
    inputs = random_inputs(1024, dimension, batch=1)
    for mask in (random_mask(1024, block, 0.5), None):
        output = attend(*inputs, mask, alpha=alpha, causal=causal)[0]
        torch.autograd.grad(output, inputs, torch.randn_like(output))
    torch.cuda.synchronize()


def compile_peers() -> None:
    """Compile FlexAttention and the prediction for the sizes that they are measured at."""
    sizes = list(product(COMPILED_LENGTHS, DIMENSIONS))
    compile_in_parallel(partial(job, *size) for job in (compile_flex, compile_prediction) for size in sizes)


def compile_flex(n: int, dimension: int) -> None:
    """Compile FlexAttention's forward pass, and both passes."""
    run, inputs = flex(random_mask(n, FLEX_BLOCK, FLEX_DENSITY)), random_inputs(n, dimension, batch=TOKENS // n)
    for leaves in ([x.detach() for x in inputs], inputs):
        run_once(run, leaves)


def compile_prediction(n: int, dimension: int) -> None:
    """Compile the prediction of blocks."""
    q, k, _ = random_inputs(n, dimension, batch=TOKENS // n)
    prediction(n, dimension)(q.detach(), k.detach())


def compile_adasplash(n: int, dimension: int, part: int) -> None:
    """Compile a part of the settings that AdaSplash-2 tries."""
    from triton.runtime.autotuner import Autotuner

    module = importlib.import_module("adasplash.adasplash_v2")
    for kernel in vars(module).values():
        if isinstance(kernel, Autotuner):
            kernel.configs = kernel.configs[part::ADASPLASH_SETTINGS]
    run_once(partial(module.sparse_attn, niter=1), random_inputs(n, dimension, batch=TOKENS // n))


def run_once(function: Callable, inputs: list[torch.Tensor]) -> None:
    """Run a peer's forward pass, and its backward pass if inputs need gradients; the measurement records a failure."""
    try:
        output = function(*inputs)
        if output.requires_grad:
            torch.autograd.grad(output, inputs, torch.randn_like(output))
    except Exception as error:
        print(f"not compiled in advance: {type(error).__name__}: {error}"[:300], flush=True)
