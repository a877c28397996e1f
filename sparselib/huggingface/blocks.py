"""The blocks that hold the pairs of heads' settings, without memory for each pair of tokens."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad

from sparselib.checks import integer_at_least
from sparselib.control import BlockGraph
from sparselib.huggingface.heads import BLOCKS, OWN, Setting
from sparselib.huggingface.layers import Layer
from sparselib.huggingface.nearest import Nearest
from sparselib.kernels import BlockMask
from sparselib.predictors import Clustering, share_a_bucket


def visited_blocks(layers: Sequence[Layer], size: int) -> BlockGraph:
    """Return, for every layer, the blocks of `size` tokens that contain any pair predicted by its heads.

    Raise ``ValueError`` for heads predicted by distances or as blocks of another size, and for a size below 1.
    """
    integer_at_least("size", size, 1)
    for number, layer in enumerate(layers):
        if any(setting.family in ("distance", OWN) for setting in layer.chosen):
            raise ValueError(
                "`predictors` must not include distance or your own for blocks, but these predict heads of layer "
                f'{number}; sparsify with predictors=("kmeans", "window") or predictors=("blocks",)'
            )
        if other := {setting.size for setting in layer.chosen if setting.family == BLOCKS} - {size}:
            raise ValueError(f"`size` must be {other.pop()}, for which layer {number} was tuned, got {size}")

    def blocks(number: int, q: Tensor, k: Tensor, lengths: Tensor | None) -> BlockMask | None:
        layer = layers[number]
        if layer.projection is None or all(setting.family == "dense" for setting in layer.chosen):
            return None
        return _layer_blocks(layer, size, q, k, lengths)

    return blocks


@torch.no_grad()
def _layer_blocks(layer: Layer, size: int, q: Tensor, k: Tensor, lengths: Tensor | None) -> BlockMask:
    """Return the blocks of one layer, head by head."""
    projection = layer.projection.to(q.device)
    queries, keys, groups = q.shape[2], k.shape[2], q.shape[1] // k.shape[1]
    q, k = projection(q.float()), projection(k.float().repeat_interleave(groups, dim=1))
    key_starts = torch.arange(0, keys, size, device=q.device)
    rows, starts, ends = size, key_starts[None], None
    if queries != keys:  # a cache holds earlier tokens too, and may have unused places behind the queries
        ends = torch.full((len(q),), keys, device=q.device) if lengths is None else lengths
        rows, lengths = min(size, queries), None
        starts = (ends - queries)[:, None] + torch.arange(0, queries, rows, device=q.device)
    visited = torch.zeros(*q.shape[:2], starts.shape[1], len(key_starts), dtype=torch.bool, device=q.device)
    for head, setting in enumerate(layer.chosen):
        visited[:, head] = _window_blocks(setting, starts, rows, key_starts, size)
        if setting.family == "kmeans":
            centroids = layer.centroids[setting.clusters][head : head + 1].to(q.device)
            predictor = Clustering(centroids, setting.top_k)
            buckets = predictor.assign(q[:, head : head + 1], k[:, head : head + 1], lengths)
            by_block = (pad(x, (0, 0, 0, -x.shape[2] % size)).unflatten(2, (-1, size)).any(dim=3) for x in buckets)
            visited[:, head] |= share_a_bucket(*by_block)[:, 0]
    if nearest := [head for head, setting in enumerate(layer.chosen) if setting.family == BLOCKS]:
        shares = torch.tensor([layer.chosen[head].share for head in nearest])
        visited[:, nearest] = Nearest(shares, size).blocks(q[:, nearest], k[:, nearest], lengths)
    if ends is not None:
        visited &= (key_starts < ends[:, None])[:, None, None]
    return BlockMask.from_dense(visited, (rows, size), (queries, keys))


def _window_blocks(setting: Setting, starts: Tensor, rows: int, key_starts: Tensor, size: int) -> Tensor:
    """Return the blocks ``Bool[B, N, K]`` that contain a pair of the window, or all of them for a dense head.

    Blocks of `rows` queries begin at ``starts [B, N]``, and blocks of `size` keys at ``key_starts [K]``.
    """
    offset = key_starts - starts[..., None]
    if setting.family == "dense":
        return torch.ones_like(offset, dtype=torch.bool)
    if setting.window == 0:
        return torch.zeros_like(offset, dtype=torch.bool)
    # Offsets between tokens of two blocks reach further on both sides. The limits are those of sliding_window.
    return (offset - (rows - 1) <= setting.window // 2) & (offset + size - 1 > -((setting.window + 1) // 2))
