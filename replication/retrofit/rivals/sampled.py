"""Selection rules that sample scores: antidiagonals (XAttention) or the last queries (MInference)."""

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
    """Predictor of the fewest blocks that reach a `mass`, ranked by antidiagonal sums (Xu et al. 2025, Algorithm 1).

    Groups of `stride` queries and of `stride` keys are concatenated, keys in reverse. One product of two long vectors is
    then the sum of an antidiagonal of ``stride x stride`` scores. The softmax of these sums over all key groups, summed
    within blocks, ranks the blocks of each row. The query's own block is always kept, as in the reference code.

    Attributes
    ----------
    mass : float
        Share of the weight that the selected blocks must reach, in (0, 1].
    block : int
        Tokens per block, a multiple of `stride`.
    stride : int
        Queries and keys per group.
    """

    needs: ClassVar[Needs] = Needs(prefix=True)

    mass: float
    block: int = 16
    stride: int = 4

    def __post_init__(self) -> None:
        at_least("stride", self.stride, 1)
        if self.block % self.stride or self.block < 1:
            raise ValueError(f"`block` must be a multiple of `stride` {self.stride}, got {self.block}")
        if not 0 < self.mass <= 1:
            raise ValueError(f"`mass` must be in (0, 1], got {self.mass}")

    def predict(self, q: Tensor, k: Tensor, *, lengths: Lengths = None, causal: bool = False) -> Tensor:
        """Return the selected pairs ``Bool[B, H, n, n]`` of queries and keys ``[B, H, n, D]``."""
        n, size = q.shape[2], q.shape[3]
        visible = visible_pairs(q.shape[0], n, n, lengths, causal, q.device)
        real = visible.any(2)[..., None]
        missing = -n % self.block
        q, k = (pad(x.masked_fill(~real, 0.0), (0, 0, 0, missing)).unflatten(2, (-1, self.stride)) for x in (q, k))
        scores = q.flatten(3) @ k.flip(3).flatten(3).mT / (size**0.5 * self.stride)  # [B, H, n / S, n / S]
        padded = pad(visible, (0, missing, 0, missing))
        groups = padded.unflatten(3, (-1, self.stride)).any(4).unflatten(2, (-1, self.stride)).any(3)
        weights = scores.masked_fill(~groups, -torch.inf).softmax(-1).nan_to_num(0.0)
        groups_per_block = self.block // self.stride
        block_weights = weights.unflatten(3, (-1, groups_per_block)).sum(4).unflatten(2, (-1, groups_per_block)).sum(3)
        ordered, order = block_weights.sort(dim=-1, descending=True, stable=True)
        before = ordered.cumsum(-1) - ordered
        kept = (before < self.mass * block_weights.sum(-1, keepdim=True)) & (ordered > 0)
        chosen = torch.zeros_like(kept).scatter_(-1, order, kept) | torch.eye(kept.shape[-1], dtype=torch.bool)
        tokens = chosen.repeat_interleave(self.block, 2).repeat_interleave(self.block, 3)[..., :n, :n]
        return tokens & visible


@dataclass(frozen=True)
class VerticalSlash:
    """Predictor of the columns and diagonals with most weight for sampled queries (MInference, Jiang et al. 2024, Algorithm 2).

    The softmax weights of the last `sample` queries select `columns` keys and `diagonals` offsets for all queries. In
    bidirectional models the last queries are not the best informed, so the sampled queries are spread over the sentence.
    """

    needs: ClassVar[Needs] = Needs(prefix=True)

    columns: int
    diagonals: int
    sample: int = 64

    def __post_init__(self) -> None:
        for name in ("columns", "diagonals", "sample"):
            at_least(name, getattr(self, name), 1)

    def predict(self, q: Tensor, k: Tensor, *, lengths: Lengths = None, causal: bool = False) -> Tensor:
        """Return the selected pairs ``Bool[B, H, n, n]`` of queries and keys ``[B, H, n, D]``."""
        n, size = q.shape[2], q.shape[3]
        visible = visible_pairs(q.shape[0], n, n, lengths, causal, q.device)
        rows = sampled_rows(n, self.sample, causal).to(q.device)
        scores = (q[:, :, rows] @ k.mT / size**0.5).masked_fill(~visible[:, :, rows], -torch.inf)
        weights = scores.softmax(-1).nan_to_num(0.0)  # [B, H, S, n]
        offset = rows[:, None] - torch.arange(n, device=q.device) + n - 1  # 0 .. 2n - 2
        offset_weights = weights.new_zeros(*weights.shape[:2], 2 * n - 1)
        offset_weights.index_add_(2, offset.flatten(), weights.flatten(2))
        columns = _largest(weights.sum(2), self.columns)[:, :, None]
        all_offsets = torch.arange(n, device=q.device)[:, None] - torch.arange(n, device=q.device) + n - 1
        diagonals = _largest(offset_weights, self.diagonals)[:, :, all_offsets]
        return (columns | diagonals) & visible


def sampled_rows(length: int, sample: int, causal: bool) -> Tensor:
    """Return the last ``sample`` positions of a causal model, or as many evenly spaced positions of a bidirectional one."""
    count = min(sample, length)
    return torch.arange(length - count, length) if causal else torch.linspace(0, length - 1, count).round().long()


def _largest(weights: Tensor, count: int) -> Tensor:
    """Return a mask of the `count` largest weights of each row, excluding zeros."""
    chosen = weights.topk(min(count, weights.shape[-1])).indices
    return torch.zeros_like(weights, dtype=torch.bool).scatter_(-1, chosen, True) & (weights > 0)
