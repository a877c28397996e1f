"""Sharpness of the certificate: blocks that exact block-sparse entmax attention visits, and blocks that contain an edge.

The keys have four structures, from the worst case (independent keys, where nearly every block contains an edge of some query)
to the best case (one cluster per block). Each is also certified on exactly the blocks of its edges, as a perfect predictor
would select them.

python benchmarks/certificate.py --length 4096
"""

import argparse
import time

import torch
from torch import Tensor

from sparselib.kernels import BlockMask
from sparselib.kernels.block_operator import attend
from sparselib.kernels.certificate import Certificate, certify, exact

DIMENSION, BLOCK = 64, 64


def random_inputs(keys: str, n: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return q, k and v of one head. Clusters are as far apart as independent keys of twice the norm."""
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, 1, n, DIMENSION, generator=generator) for _ in range(3))
    if keys == "independent":
        return q, k, v
    if keys == "drifting":
        walk = torch.randn(n, DIMENSION, generator=generator).cumsum(0)
        walk = 2 * (walk - walk.mean(0)) / walk.std(0)
        return walk + q / 4, walk + k / 4, v
    centres = 2 * torch.randn(n // BLOCK, DIMENSION, generator=generator)
    cluster = torch.arange(n) // BLOCK
    if keys == "clusters, two to a block":
        cluster = cluster // 2 * 2 + torch.arange(n) % 2
    return centres[torch.randperm(n // BLOCK, generator=generator)[cluster]] + q / 2, centres[cluster] + k / 2, v


def blocks_of_edges(q: Tensor, k: Tensor, tau: Tensor) -> BlockMask:
    """Return the blocks that contain an edge for alpha = 1.5, computed for one query block at a time."""
    edges = [
        (rows @ k.mT / (2 * DIMENSION**0.5) > threshold[..., None]).unflatten(-1, (-1, BLOCK)).any(-1).any(-2)
        for rows, threshold in zip(q.split(BLOCK, 2), tau.split(BLOCK, 2), strict=True)
    ]
    return BlockMask.from_dense(torch.stack(edges, 2), BLOCK, q.shape[2])


def timed(function, *arguments) -> tuple[float, tuple]:
    """Return the time and the result of a second call."""
    function(*arguments)
    start = time.perf_counter()
    result = function(*arguments)
    return time.perf_counter() - start, result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--length", type=int, default=4096, help="number of tokens (default: 4096)")
    n = parser.parse_args().length
    print(f"n = {n}, one head, D = {DIMENSION}, blocks of {BLOCK}, alpha = 1.5, {torch.get_num_threads()} threads")
    print(
        "keys                        edges in  exact visits  rounds  exact ms  dense ms | certified on the edges' blocks"
    )
    for keys in ("independent", "drifting", "clusters, two to a block", "clusters"):
        q, k, v = random_inputs(keys, n)
        dense_seconds, (_, tau) = timed(attend, q, k, v)
        seconds, (_, _, certificate) = timed(exact, attend, q, k, v)
        edge_blocks = blocks_of_edges(q, k, tau)
        perfect: Certificate = certify(q, k, attend(q, k, v, edge_blocks)[1], edge_blocks)
        print(
            f"{keys:26s} {edge_blocks.density:9.1%} {certificate.share:13.1%} {certificate.rounds:7d} {seconds * 1e3:9.0f}"
            f" {dense_seconds * 1e3:9.0f} | {perfect.rows.double().mean():.1%} of rows"
        )


if __name__ == "__main__":
    main()
