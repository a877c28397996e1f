"""Rules that compute a sample of the scores: antidiagonals (XAttention), and the last queries (MInference)."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import pad

from sparselib.checks import Lengths, at_least
from sparselib.masks import visible_pairs
from sparselib.predictors import Needs


@dataclass(frozen=True)
class XAttention:
    """Blocks by the sums of every `stride`-th antidiagonal (Xu et al. 2025, Algorithm 1): the fewest that have a `mass`.

    Queries and keys are taken `stride` at a time, keys in reverse, so that one product of the long vectors is the sum of an
    antidiagonal of ``stride x stride`` scores. Its softmax over all groups of keys, added up within blocks, ranks the blocks of
    each row. `block` is a multiple of `stride`. The block of the query itself is always kept, as in the reference code.
    """

    needs: ClassVar[Needs] = Needs(prefix=True)

    mass: float
    block: int = 16
    stride: int = 4

    def __post_init__(self) -> None:
        at_least("stride", self.stride, 1)
        if self.block % self.stride or self.block < 1:
            raise ValueError(f"block must be a multiple of stride {self.stride}, got {self.block}")
        if not 0 < self.mass <= 1:
            raise ValueError(f"mass must be in (0, 1], got {self.mass}")

    def predict(self, q: Tensor, k: Tensor, *, lengths: Lengths = None, causal: bool = False) -> Tensor:
        """``[B, H, n, D]`` twice -> ``Bool[B, H, n, n]``."""
        n, size = q.shape[2], q.shape[3]
        visible = visible_pairs(q.shape[0], n, n, lengths, causal, q.device)
        real = visible.any(2)[..., None]
        missing = -n % self.block
        q, k = (pad(x.masked_fill(~real, 0.0), (0, 0, 0, missing)).unflatten(2, (-1, self.stride)) for x in (q, k))
        scores = q.flatten(3) @ k.flip(3).flatten(3).mT / (size**0.5 * self.stride)  # [B, H, n / S, n / S]
        seen = pad(visible, (0, missing, 0, missing))
        groups = seen.unflatten(3, (-1, self.stride)).any(4).unflatten(2, (-1, self.stride)).any(3)
        weights = scores.masked_fill(~groups, -torch.inf).softmax(-1).nan_to_num(0.0)
        per = self.block // self.stride
        of_blocks = weights.unflatten(3, (-1, per)).sum(4).unflatten(2, (-1, per)).sum(3)  # [B, H, N, N]
        ordered, order = of_blocks.sort(dim=-1, descending=True, stable=True)
        before = ordered.cumsum(-1) - ordered
        kept = (before < self.mass * of_blocks.sum(-1, keepdim=True)) & (ordered > 0)
        chosen = torch.zeros_like(kept).scatter_(-1, order, kept) | torch.eye(kept.shape[-1], dtype=torch.bool)
        tokens = chosen.repeat_interleave(self.block, 2).repeat_interleave(self.block, 3)[..., :n, :n]
        return tokens & visible


@dataclass(frozen=True)
class VerticalSlash:
    """Columns and diagonals with most of the weight of some queries (MInference, Jiang et al. 2024, Algorithm 2).

    Softmax of the last `sample` queries says which `columns` keys and which `diagonals` offsets all queries attend to. A model
    that sees the future too has no last queries that have seen everything: there they are spread over the sentence.
    """

    needs: ClassVar[Needs] = Needs(prefix=True)

    columns: int
    diagonals: int
    sample: int = 64

    def __post_init__(self) -> None:
        for name in ("columns", "diagonals", "sample"):
            at_least(name, getattr(self, name), 1)

    def predict(self, q: Tensor, k: Tensor, *, lengths: Lengths = None, causal: bool = False) -> Tensor:
        """``[B, H, n, D]`` twice -> ``Bool[B, H, n, n]``."""
        n, size = q.shape[2], q.shape[3]
        visible = visible_pairs(q.shape[0], n, n, lengths, causal, q.device)
        rows = sampled_rows(n, self.sample, causal).to(q.device)
        scores = (q[:, :, rows] @ k.mT / size**0.5).masked_fill(~visible[:, :, rows], -torch.inf)
        weights = scores.softmax(-1).nan_to_num(0.0)  # [B, H, S, n]
        offset = rows[:, None] - torch.arange(n, device=q.device) + n - 1  # 0 .. 2n - 2
        of_offsets = weights.new_zeros(*weights.shape[:2], 2 * n - 1)
        of_offsets.index_add_(2, offset.flatten(), weights.flatten(2))
        columns = _largest(weights.sum(2), self.columns)[:, :, None]
        every = torch.arange(n, device=q.device)[:, None] - torch.arange(n, device=q.device) + n - 1
        diagonals = _largest(of_offsets, self.diagonals)[:, :, every]
        return (columns | diagonals) & visible


def sampled_rows(length: int, sample: int, causal: bool) -> Tensor:
    """The last queries of a decoder; of an encoder, as many at even distances."""
    count = min(sample, length)
    return torch.arange(length - count, length) if causal else torch.linspace(0, length - 1, count).round().long()


def _largest(weights: Tensor, count: int) -> Tensor:
    """True at the `count` largest of each row that are not 0."""
    chosen = weights.topk(min(count, weights.shape[-1])).indices
    return torch.zeros_like(weights, dtype=torch.bool).scatter_(-1, chosen, True) & (weights > 0)
