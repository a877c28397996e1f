"""Time decoding from the pages that EntmaxKV's rule selects, on a GPU, against all keys; print a JSON row per setting.

python benchmarks/page_selection.py [--seconds 60] > benchmarks/results/page_selection.jsonl

The rule is that of "EntmaxKV: Support-Aware Decoding for Entmax Attention" (arXiv 2605.21649), as its package applies it:
scores of a page are taken to be normal, with the mean and variance that follow from the means and variances of its keys, and
tau is the threshold of n normal scores. A page is visited if a high quantile of its largest score exceeds tau, less a margin.
Query heads that share keys visit the pages of each of them. One new token has 131,072 tokens in its cache: 32 heads, 8 key
heads, D = 128, bfloat16, pages of 16 and 64 tokens. Keys are independent, or drift: neighbours have a correlation of 0.95.

`kept` is the share of the exact weights that lies in visited pages. Times are replayed from a CUDA graph, with a cold L2 cache.
Without CUDA, the script prints one line and exits with status 2.
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import product
from statistics import NormalDist

import torch
from decoding import DIMENSION, KEY_HEADS, measured, random_inputs
from hardware import hardware
from torch import Tensor

from sparselib import entmax15
from sparselib.kernels import BlockMask, block_sparse_entmax_decode

LENGTH = 131_072
PAGES = (16, 64)
#: Scales of the queries. Larger ones have fewer keys with weight.
SCALES = (1.0, 3.0)
CORRELATION = 0.95
NEWTON_STEPS = 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60, help="start no setting after this many seconds")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        print("benchmarks/page_selection.py needs a CUDA device, and none is available")
        sys.exit(2)
    deadline = time.monotonic() + arguments.seconds
    print(json.dumps(hardware()), flush=True)
    for keys, scale in product(("independent", "drifting"), SCALES):
        for row in at_setting(keys, scale):
            print(json.dumps(row), flush=True)
        if time.monotonic() > deadline:
            print(json.dumps({"stopped_early": True}))
            return


def at_setting(keys: str, scale: float) -> Iterator[dict]:
    """Yield the rows of one distribution of keys and scale of queries: all keys, then each page size."""
    q, k, v = random_inputs(LENGTH, 1)
    q = q * scale
    if keys == "drifting":
        k = drifting(k)
    setting = {"n": LENGTH, "batch": 1, "keys": keys, "scale": scale}
    sdpa = partial(torch.nn.functional.scaled_dot_product_attention, q, k, v, enable_gqa=True)
    yield measured("sdpa", sdpa, setting, LENGTH)
    full = partial(block_sparse_entmax_decode, q, k, v)
    yield measured("ours, all keys", full, setting, LENGTH, 1.5)
    grouped = q.float().unflatten(1, (KEY_HEADS, -1)).squeeze(3)
    weights = entmax15(grouped @ k.float().mT * DIMENSION**-0.5)  # [1, G, h, n]
    support = (weights > 0).double().mean().item()
    for size in PAGES:
        statistics = page_statistics(k, size)
        select = compiled_selection(size)
        visited = select(grouped, *statistics)
        mask = mask_of(visited, size)
        share = visited.double().mean().item()
        row = setting | {
            "page": size,
            "share": share,
            "support": support,
            "kept": (weights.unflatten(-1, (-1, size)).sum(-1) * visited[:, :, None]).sum(-1).mean().item(),
            "error": relative_error(block_sparse_entmax_decode(q, k, v, mask), full()),
        }
        visits = round(share * LENGTH)
        yield row | measured("select", partial(select, grouped, *statistics), setting, visits, 1.5)
        yield row | measured(
            "ours, selected pages", partial(block_sparse_entmax_decode, q, k, v, mask), setting, visits, 1.5
        )

        def both(q=q, k=k, v=v, grouped=grouped, statistics=statistics, size=size, select=select) -> Tensor:
            return block_sparse_entmax_decode(q, k, v, mask_of(select(grouped, *statistics), size))

        yield row | measured("select and decode", both, setting, visits, 1.5)


def drifting(k: Tensor) -> Tensor:
    """Return keys of the same variance in which neighbours are correlated."""
    lag = torch.arange(256, device=k.device)
    filter_ = (CORRELATION**lag * math.sqrt(1 - CORRELATION**2)).flip(0).view(1, 1, -1)
    rows = torch.nn.functional.pad(k.float().mT.flatten(0, 2)[:, None], (len(lag) - 1, 0))
    return torch.nn.functional.conv1d(rows, filter_).view(*k.mT.shape).mT.contiguous().to(k.dtype)


def page_statistics(k: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Return means and variances ``[B, G, P, D]`` of the keys of each page, which a cache keeps up to date."""
    variance, mean = torch.var_mean(k.float().unflatten(2, (-1, size)), 3, correction=0)
    return mean.to(k.dtype), variance.to(k.dtype)


@cache
def compiled_selection(size: int) -> Callable:
    """Return :func:`selected_pages` for pages of this size, compiled."""
    return torch.compile(partial(selected_pages, size=size), dynamic=False)


def selected_pages(q: Tensor, mean: Tensor, variance: Tensor, size: int) -> Tensor:
    """Return which pages ``[B, G, P]`` the rule selects for queries ``[B, G, h, D]``; the last page always."""
    scale = DIMENSION**-0.5
    mu = (q.to(mean.dtype) @ mean.mT).float() * scale  # [B, G, h, P]
    square = (q.square().to(mean.dtype) @ variance.mT).float() * scale**2
    between, middle = torch.var_mean(mu, -1, correction=0)
    sigma = (square.mean(-1) + between).sqrt().clamp_min(1e-6)
    deviation = square.sqrt()
    is_narrow = sigma.mean() < 1.5
    quantile = torch.where(is_narrow, *(NormalDist().inv_cdf(x ** (1 / size)) for x in (0.99, 0.995)))
    tau = 2 * normal_threshold(middle / 2, sigma / 2, mean.shape[2] * size)  # in units of scores, for alpha = 1.5
    typical = (mu + 1.5 * deviation).mean(-1)
    margin = torch.maximum(
        torch.where(is_narrow, 0.01, 0.05) * sigma.mean() * sigma, 0.2 * (tau - typical).clamp_min(0)
    )
    chosen = (mu + quantile * deviation > (tau - margin)[..., None]).any(2)
    last = torch.arange(mean.shape[2], device=q.device) == mean.shape[2] - 1
    return chosen | last


def normal_threshold(mean: Tensor, deviation: Tensor, n: int) -> Tensor:
    """Return the t at which ``n`` normal values x have ``n E[(x - t)_+ ** 2] = 1``, by Newton's method in the logarithm.

    With ``z = (t - mean) / deviation``, the expectation is ``deviation ** 2 * g(z)``. Here
    ``g(z) = (1 + z ** 2) Q(z) - z phi(z)``, phi is the normal density and Q its upper tail.
    """
    target = -(n * deviation.square()).log()
    z = torch.ones_like(deviation)
    for _ in range(NEWTON_STEPS):
        density = (-0.5 * z * z).exp() / math.sqrt(2 * math.pi)
        tail = 0.5 * torch.erfc(z / math.sqrt(2))
        level = ((1 + z * z) * tail - z * density).clamp_min(1e-12)
        z = (z + (level.log() - target) * level / (2 * (density - z * tail)).clamp_min(1e-12)).clamp(-5, 5)
    return mean + deviation * z


def mask_of(visited: Tensor, size: int) -> BlockMask:
    """Return the block mask of pages ``[B, G, P]``, without waiting for the GPU."""
    place = torch.where(visited, visited.cumsum(-1) - 1, visited.shape[-1])
    numbers = torch.arange(visited.shape[-1], dtype=torch.int32, device=visited.device).expand_as(place)
    indices = numbers.new_zeros(*visited.shape[:2], visited.shape[-1] + 1).scatter_(-1, place, numbers)
    counts = visited.sum(-1, dtype=torch.int32)
    return BlockMask.unchecked(counts[..., None], indices[:, :, None, :-1], (1, size), (1, visited.shape[-1] * size))


def relative_error(x: Tensor, exact: Tensor) -> float:
    return ((x - exact).float().norm() / exact.float().norm()).item()


if __name__ == "__main__":
    main()
