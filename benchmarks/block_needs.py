"""Which blocks of keys the heads of a model need, and which of them a sparsified model visits."""

from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import PreTrainedModel

from sparselib.control import LayerCall
from sparselib.huggingface import Sparsified
from sparselib.huggingface.gold import gold_rule

#: Tokens per block.
BLOCK = 64
#: Query blocks per head, evenly spaced, in which needed keys are counted.
SAMPLED = 8


@dataclass(frozen=True)
class Needs:
    """Sampled query blocks of one layer: needed keys by key block ``[H, S, K]``, and which blocks are visible and visited."""

    counts: Tensor
    visible: Tensor
    visited: Tensor

    @property
    def share(self) -> Tensor:
        """Share of the visible blocks that are visited: ``[H]``."""
        return (self.visited & self.visible).sum((1, 2)) / self.visible.sum((1, 2))

    @property
    def recall(self) -> Tensor:
        """Share of the needed keys in visited blocks: ``[H]``."""
        return (self.counts * self.visited).sum((1, 2)) / self.counts.sum((1, 2))

    def best_share(self, recall: float) -> Tensor:
        """Smallest share of the visible blocks that contains this share of the needed keys: ``[H]``."""
        found = self.counts.flatten(1).sort(1, descending=True).values.cumsum(1)
        return ((found < recall * found[:, -1:]).sum(1) + 1) / self.visible.sum((1, 2))


@torch.no_grad()
def needs_of(model: PreTrainedModel, sparse: Sparsified, ids: Tensor, gold: str, causal: bool) -> list[Needs]:
    """Count, in each layer of the dense model, the needed keys by blocks, and find the blocks that `sparse` visits.

    Parameters
    ----------
    model : PreTrainedModel
    sparse : Sparsified
        The tuned model.
    ids : Tensor
        Token ids ``[1, n]``.
    gold : str
        The keys that a head needs, as for `sparsify`.
    causal : bool
        Whether the model is a decoder.
    """
    with sparse.to_blocks(BLOCK):
        blocks = sparse.control.active_mode.blocks
    needed, layers = gold_rule(gold), []
    n = ids.shape[1]
    count, sampled = n // BLOCK, torch.linspace(0, n // BLOCK - 1, SAMPLED).round().long().unique()
    rows = (sampled[:, None] * BLOCK + torch.arange(BLOCK)).flatten()
    visible = rows[:, None] >= torch.arange(n) if causal else torch.ones(len(rows), n, dtype=torch.bool)

    def observe(layer: int, q: Tensor, k: Tensor, lengths: Tensor | None) -> None:
        mask, heads = blocks(layer, q, k, lengths), q.shape[1]
        call = LayerCall(layer, q[:, :, rows], k.repeat_interleave(heads // k.shape[1], 1), visible[None, None])
        by_block = (x.unflatten(-2, (-1, BLOCK)).unflatten(-1, (-1, BLOCK)) for x in (needed(call)[0], visible[None]))
        counts, shown = (x.sum((-3, -1)) for x in by_block)
        dense = torch.ones(1, 1, count, count, dtype=torch.bool) if mask is None else mask.to_dense()
        layers.append(Needs(counts, shown.expand_as(counts) > 0, dense[0].expand(heads, -1, -1)[:, sampled]))

    with sparse.control.visiting(observe):
        model.base_model(input_ids=ids)
    return layers
