"""From the settings of heads to the blocks that they visit, without a number for each pair of tokens."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad

from sparselib.checks import at_least
from sparselib.control import BlockGraph
from sparselib.huggingface.heads import Setting
from sparselib.huggingface.layers import Layer
from sparselib.kernels import BlockMask
from sparselib.predictors import Clustering, share_a_bucket


def visited_blocks(layers: Sequence[Layer], size: int) -> BlockGraph:
    """For every layer, the blocks of ``size`` tokens that hold a pair which its heads predict.

    Raises ``ValueError`` for heads that are predicted by distances, and a size below 1.
    """
    at_least("size", size, 1)
    for number, layer in enumerate(layers):
        if any(one.family == "distance" for one in layer.chosen):
            raise ValueError(
                f"layer {number} has heads that are predicted by distances, which know no blocks:"
                ' sparsify with predictors=("kmeans", "window")'
            )

    def blocks(number: int, q: Tensor, k: Tensor, lengths: Tensor | None) -> BlockMask | None:
        layer = layers[number]
        if layer.projection is None or all(one.family == "dense" for one in layer.chosen):
            return None
        return _of_layer(layer, size, q, k, lengths)

    return blocks


@torch.no_grad()
def _of_layer(layer: Layer, size: int, q: Tensor, k: Tensor, lengths: Tensor | None) -> BlockMask:
    projection = layer.projection.to(q.device)
    length, groups = q.shape[2], q.shape[1] // k.shape[1]
    q, k = projection(q.float()), projection(k.float().repeat_interleave(groups, dim=1))
    count = -(-length // size)
    visited = torch.zeros(*q.shape[:2], count, count, dtype=torch.bool, device=q.device)
    for head, one in enumerate(layer.chosen):
        visited[:, head] = _of_window(one, size, count, q.device)
        if one.family == "kmeans":
            centroids = layer.centroids[one.clusters][head : head + 1].to(q.device)
            buckets = Clustering(centroids, one.top_k).assign(q[:, head : head + 1], k[:, head : head + 1], lengths)
            visited[:, head] |= share_a_bucket(*(_of_blocks(x, size, count) for x in buckets))[:, 0]
    return BlockMask.from_dense(visited, size, length)


def _of_window(one: Setting, size: int, count: int, device: torch.device) -> Tensor:
    """Blocks that hold a pair of the window, or all of them for a dense head: ``Bool[N, N]``."""
    if one.family == "dense":
        return torch.ones(count, count, dtype=torch.bool, device=device)
    if one.window == 0:
        return torch.zeros(count, count, dtype=torch.bool, device=device)
    block = torch.arange(count, device=device)
    offset = (block - block[:, None]) * size
    # Offsets between tokens of two blocks reach size - 1 further to both sides; the window is that of sliding_window.
    return (offset - (size - 1) <= one.window // 2) & (offset + size - 1 > -((one.window + 1) // 2))


def _of_blocks(buckets: Tensor, size: int, count: int) -> Tensor:
    """Which buckets the tokens of each block are in: ``Bool[B, H, n, C]`` -> ``Bool[B, H, N, C]``."""
    missing = count * size - buckets.shape[2]
    return pad(buckets, (0, 0, 0, missing)).unflatten(2, (count, size)).any(dim=3)
