"""A gate that learns which blocks hold weight (after SeerAttention, Gao et al. 2024): pooled queries and keys, projected."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import kl_div, pad

from sparselib.checks import Lengths
from sparselib.dense_attention import attention_weights
from sparselib.masks import visible_pairs
from sparselib.normalizers import Normalizer
from sparselib.predictors import Needs
from sparselib.projections import Batch


@dataclass(frozen=True, eq=False)
class Gate:
    """The `count` blocks of `block` keys with the largest scores of each block of queries.

    Queries of a block are averaged; of its keys, the means, maxima and minima are put together (section 3.1). ``of_queries``
    ``[H, D, R]`` and ``of_keys`` ``[H, 3 D, R]`` are learned by :func:`fit_gate`.
    """

    needs: ClassVar[Needs] = Needs()

    of_queries: Tensor
    of_keys: Tensor
    block: int
    count: int

    def predict(self, q: Tensor, k: Tensor, *, lengths: Lengths = None, causal: bool = False) -> Tensor:
        """``[B, H, n, D]`` twice -> ``Bool[B, H, n, n]``."""
        n = q.shape[2]
        visible = visible_pairs(q.shape[0], n, n, lengths, causal, q.device)
        scores, seen = block_scores(q, k, visible, self.of_queries, self.of_keys, self.block)
        last = scores.topk(min(self.count, scores.shape[-1])).values[..., -1:]
        chosen = (scores >= last) & seen
        tokens = chosen.repeat_interleave(self.block, 2).repeat_interleave(self.block, 3)[..., :n, :n]
        return tokens & visible


def block_scores(
    q: Tensor, k: Tensor, visible: Tensor, of_queries: Tensor, of_keys: Tensor, block: int
) -> tuple[Tensor, Tensor]:
    """Scores ``[B, H, N, N]``, ``-inf`` where no pair of two blocks is visible, and where one is."""
    missing = -q.shape[2] % block
    real = visible.any(2)[..., None]
    count = pad(real, (0, 0, 0, missing)).unflatten(2, (-1, block)).sum(3).clamp_min(1)
    q, zeros = (pad(x.masked_fill(~real, 0.0), (0, 0, 0, missing)).unflatten(2, (-1, block)) for x in (q, k))
    low, high = (
        pad(k.masked_fill(~real, fill), (0, 0, 0, missing), value=fill).unflatten(2, (-1, block))
        for fill in (torch.inf, -torch.inf)
    )
    pooled = [zeros.sum(3) / count, high.amax(3), low.amin(3)]
    keys = torch.cat([x.nan_to_num(0.0, 0.0, 0.0) for x in pooled], dim=-1) @ of_keys
    scores = (q.sum(3) / count) @ of_queries @ keys.mT / of_queries.shape[-1] ** 0.5
    seen = pad(visible, (0, missing, 0, missing)).unflatten(3, (-1, block)).any(4).unflatten(2, (-1, block)).any(3)
    return scores.masked_fill(~seen, -torch.inf), seen


def fit_gate(
    batches: Iterable[Batch],
    normalizer: Normalizer,
    *,
    block: int,
    count: int,
    dimension: int,
    epochs: int,
    learning_rate: float,
    seed: int,
) -> Gate:
    """The gate of one layer, learned with Adam to give blocks the share of the weight that their largest pair has.

    The target are the model's own weights, of its `normalizer`, the largest in each block, scaled to add up to 1 (section 3.2).
    """
    generator = torch.Generator().manual_seed(seed)
    weights: list[Tensor] = []
    for _ in range(epochs):
        for batch in batches:
            if not weights:
                heads, size = batch.q.shape[1], batch.q.shape[3]
                shapes = (heads, size, dimension), (heads, 3 * size, dimension)
                weights = [
                    (torch.randn(shape, generator=generator) * shape[1] ** -0.5).requires_grad_() for shape in shapes
                ]
                optimizer = torch.optim.Adam(weights, lr=learning_rate)
            scores, seen = block_scores(batch.q, batch.k, batch.visible, *weights, block)
            target = _largest_share(batch, normalizer, block)
            rows = seen.any(-1).expand(target.shape[:3])
            loss = kl_div(scores.log_softmax(-1)[rows].nan_to_num(0.0, 0.0, 0.0), target[rows], reduction="batchmean")
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    if not weights:
        raise ValueError("batches: there is none to learn from")
    return Gate(*(x.detach() for x in weights), block, count)


@torch.no_grad()
def _largest_share(batch: Batch, normalizer: Normalizer, block: int) -> Tensor:
    """``[B, H, N, N]``; rows add up to 1, or to 0 where nothing is visible."""
    missing = -batch.q.shape[2] % block
    weights = attention_weights(batch.q, batch.k, batch.visible, normalizer=normalizer)
    weights = pad(weights, (0, missing, 0, missing))
    largest = weights.unflatten(3, (-1, block)).amax(4).unflatten(2, (-1, block)).amax(3)
    return largest / largest.sum(-1, keepdim=True).clamp_min(1e-12)
