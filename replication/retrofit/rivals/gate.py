"""Learned gate over blocks of pooled, projected queries and keys (after SeerAttention, Gao et al. 2024)."""

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
    """Predictor of the `count` key blocks with the largest scores for each query block.

    The queries of a block are averaged. Its keys are pooled by mean, maximum and minimum, which are concatenated (section 3.1).

    Attributes
    ----------
    query_weights : Tensor ``[H, D, R]``
        Projection of pooled queries, trained by :func:`fit_gate`.
    key_weights : Tensor ``[H, 3 D, R]``
        Projection of pooled keys, trained by :func:`fit_gate`.
    block : int
        Tokens per block.
    count : int
        Key blocks per query block.
    """

    needs: ClassVar[Needs] = Needs()

    query_weights: Tensor
    key_weights: Tensor
    block: int
    count: int

    def predict(self, q: Tensor, k: Tensor, *, lengths: Lengths = None, causal: bool = False) -> Tensor:
        """Return the selected pairs ``Bool[B, H, n, n]`` of queries and keys ``[B, H, n, D]``."""
        n = q.shape[2]
        visible = visible_pairs(q.shape[0], n, n, lengths, causal, q.device)
        scores, visible_blocks = block_scores(q, k, visible, self.query_weights, self.key_weights, self.block)
        last = scores.topk(min(self.count, scores.shape[-1])).values[..., -1:]
        chosen = (scores >= last) & visible_blocks
        tokens = chosen.repeat_interleave(self.block, 2).repeat_interleave(self.block, 3)[..., :n, :n]
        return tokens & visible


def block_scores(
    q: Tensor, k: Tensor, visible: Tensor, query_weights: Tensor, key_weights: Tensor, block: int
) -> tuple[Tensor, Tensor]:
    """Return the scores of all block pairs, and which block pairs contain a visible token pair.

    Returns
    -------
    scores : Tensor ``[B, H, N, N]``
        Scores, ``-inf`` for block pairs without a visible token pair.
    visible_blocks : Bool Tensor
        True for block pairs with a visible token pair.
    """
    missing = -q.shape[2] % block
    real = visible.any(2)[..., None]
    count = pad(real, (0, 0, 0, missing)).unflatten(2, (-1, block)).sum(3).clamp_min(1)
    q, zeros = (pad(x.masked_fill(~real, 0.0), (0, 0, 0, missing)).unflatten(2, (-1, block)) for x in (q, k))
    low, high = (
        pad(k.masked_fill(~real, fill), (0, 0, 0, missing), value=fill).unflatten(2, (-1, block))
        for fill in (torch.inf, -torch.inf)
    )
    pooled = [zeros.sum(3) / count, high.amax(3), low.amin(3)]
    keys = torch.cat([x.nan_to_num(0.0, 0.0, 0.0) for x in pooled], dim=-1) @ key_weights
    scores = (q.sum(3) / count) @ query_weights @ keys.mT / query_weights.shape[-1] ** 0.5
    visible_blocks = (
        pad(visible, (0, missing, 0, missing)).unflatten(3, (-1, block)).any(4).unflatten(2, (-1, block)).any(3)
    )
    return scores.masked_fill(~visible_blocks, -torch.inf), visible_blocks


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
    """Train the gate of one layer with Adam to predict the distribution of attention weight over blocks.

    The target is the largest weight in each block, scaled so that each row sums to 1 (section 3.2).

    Parameters
    ----------
    batches : iterable of Batch
        Queries and keys of the layer; iterated once per epoch.
    normalizer : Normalizer
        The model's normaliser, which defines the target weights.
    block, count : int
        Tokens per block, and key blocks per query block.
    dimension : int
        Output size of the projections.
    epochs : int
        Passes over the batches.
    learning_rate : float
        Learning rate of Adam.
    seed : int
        Seed of the initial weights.

    Returns
    -------
    Gate
        The trained gate.

    Raises
    ------
    ValueError
        If ``batches`` is empty.
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
            scores, visible_blocks = block_scores(batch.q, batch.k, batch.visible, *weights, block)
            target = _largest_share(batch, normalizer, block)
            rows = visible_blocks.any(-1).expand(target.shape[:3])
            loss = kl_div(scores.log_softmax(-1)[rows].nan_to_num(0.0, 0.0, 0.0), target[rows], reduction="batchmean")
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    if not weights:
        raise ValueError("`batches` must contain at least one batch, got none")
    return Gate(*(x.detach() for x in weights), block, count)


@torch.no_grad()
def _largest_share(batch: Batch, normalizer: Normalizer, block: int) -> Tensor:
    """Return the target ``[B, H, N, N]``, whose rows sum to 1, or to 0 where nothing is visible."""
    missing = -batch.q.shape[2] % block
    weights = attention_weights(batch.q, batch.k, batch.visible, normalizer=normalizer)
    weights = pad(weights, (0, missing, 0, missing))
    largest = weights.unflatten(3, (-1, block)).amax(4).unflatten(2, (-1, block)).amax(3)
    return largest / largest.sum(-1, keepdim=True).clamp_min(1e-12)
