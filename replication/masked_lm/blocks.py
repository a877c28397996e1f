"""An entmax masked language model that visits predicted blocks only: what it loses, and how long it takes (section 6.1)."""

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from statistics import median

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from tqdm import tqdm
from transformers import PreTrainedModel

from replication.masked_lm.evaluation import MaskedText, mean_nats, sequence_losses
from replication.masked_lm.random_blocks import RandomBlocks
from replication.timing.clock import repeated_seconds
from sparselib.blocks import ClusteredBlocks, NearestBlocks
from sparselib.blocks.chunks import Chunks
from sparselib.blocks.fixed import MOST_FIXED_BLOCKS
from sparselib.blocks.graph import PredictedBlocks, unite
from sparselib.control import AttentionControl, BlockGraph
from sparselib.dense_attention import attention, gold_graph
from sparselib.kernels import BlockMask, block_sparse_entmax_attention
from sparselib.metrics import recall, sparsity
from sparselib.projections import Projection


@dataclass(frozen=True)
class Variant:
    """One way to choose blocks: its method, K, the number of clusters (0 without any) and alpha, as the tables have them.

    ``graph`` None is the model as it is: dense attention in PyTorch.
    """

    method: str
    count: int
    clusters: int
    alpha: float
    graph: BlockGraph | None

    @property
    def row(self) -> dict[str, object]:
        return {"method": self.method, "count": self.count, "clusters": self.clusters, "alpha": self.alpha}


def variants(
    model: PreTrainedModel,
    length: int,
    chunks: Chunks,
    counts: list[int],
    clusters: list[int],
    metric: str,
    projections: list[Projection],
    centroids: list[dict[str, Tensor]],
    seed: int,
) -> Iterator[Variant]:
    """All methods of Figures 7 and 13 at every K of ``counts`` for sequences of ``length`` tokens.

    A K with which window, global and K more blocks would be all blocks is left out: there is nothing to choose then.
    """
    blocks = chunks.count(length)
    projections = [projection.to(model.device) for projection in projections]
    learned = partial(PredictedBlocks, projections, chunks=chunks)
    yield Variant("full", blocks, 0, 1.5, None)
    for count in counts:
        if count + MOST_FIXED_BLOCKS >= blocks:
            continue
        yield Variant("sparsefinder-v1", count, 0, 1.5, learned([NearestBlocks(count, metric)] * len(projections)))
        for number in clusters:
            predictors = [ClusteredBlocks(of_layer[f"kmeans-{number}"], count) for of_layer in centroids]
            yield Variant("sparsefinder-v2", count, number, 1.5, learned(predictors))
        masks = _random_masks(model, length, chunks, count, len(projections), seed)
        for method, alpha in (("bigbird", 1.5), ("bigbird-softmax", 1.0)):
            yield Variant(method, count, 0, alpha, lambda layer, q, k, lengths, masks=masks: masks[layer])


def _random_masks(
    model: PreTrainedModel, length: int, chunks: Chunks, count: int, layers: int, seed: int
) -> list[BlockMask]:
    """BigBird's blocks, drawn once for every layer and head, and kept, as the reference code does."""
    shape = torch.empty(1, model.config.num_attention_heads, chunks.count(length), 0, device=model.device)
    drawn = (RandomBlocks(count, seed + layer).predict(shape, shape) for layer in range(layers))
    return [unite(predicted, chunks.size, length) for predicted in drawn]


def evaluate_blocks(
    model: PreTrainedModel,
    control: AttentionControl,
    text: MaskedText,
    chunks: Chunks,
    chosen: Iterator[Variant],
    batch_size: int,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Perplexity with every layer visiting predicted blocks only, a row for each variant; and the losses of every sequence.

    ``attended`` is the mean number of key blocks that a query block visits, ``density`` their share, and ``recall`` the share
    found of the gold blocks: those with an edge, by the hidden states that the missing blocks below have already changed.
    """
    blocks = chunks.count(text.inputs.shape[1])
    rows, every_loss = [], []
    for variant in tqdm(chosen, desc="blocks", unit="variant", mininterval=5):
        point = {"block_size": chunks.size} | variant.row
        if variant.graph is None:
            losses, measured = sequence_losses(model, text, batch_size), {"recall": 1.0, "density": 1.0}
        else:
            losses, measured = _evaluate(model, control, text, chunks, variant, batch_size)
        rows.append(point | {"nats": mean_nats(losses)} | measured)
        every_loss.append(pd.DataFrame(point, index=losses.index).join(losses))
    table = pd.DataFrame(rows)
    table["attended"] = table["density"] * blocks
    table["perplexity"] = np.exp(table["nats"])
    return table, pd.concat(every_loss, ignore_index=True)


def _evaluate(
    model: PreTrainedModel,
    control: AttentionControl,
    text: MaskedText,
    chunks: Chunks,
    variant: Variant,
    batch_size: int,
) -> tuple[pd.DataFrame, dict[str, float]]:
    recalls, sparsities = [], []

    def watched(layer, q, k, lengths):
        mask = variant.graph(layer, q, k, lengths)
        gold = chunks.blocks(gold_graph(q, k))
        visited = mask.to_dense().expand_as(gold)
        recalls.append(recall(visited, gold).flatten())
        sparsities.append(sparsity(visited).flatten())
        return mask

    with control.visiting(watched, variant.alpha):
        losses = sequence_losses(model, text, batch_size)
    return losses, {"recall": torch.cat(recalls).mean().item(), "density": 1 - torch.cat(sparsities).mean().item()}


@torch.no_grad()
def time_blocks(
    model: PreTrainedModel,
    control: AttentionControl,
    inputs: Tensor,
    chunks: Chunks,
    chosen: Iterator[Variant],
    repeats: int,
) -> pd.DataFrame:
    """Seconds per sequence of one batch ``[B, n]``, a row for each variant: medians of ``repeats`` rounds after one to warm up.

    ``prediction_seconds`` and ``attention_seconds`` are those of all layers, on the queries and keys of the model as it is;
    ``model_seconds`` those of a whole forward pass, prediction included, and ``model_repeats`` what these are the median of.
    ``full-kernel`` is the kernel visiting every block: on some machines it is a faster full model than ``full``.
    """
    model.eval()
    inputs = inputs.to(model.device)
    layers = _queries_and_keys(model, control, inputs)
    every_block = Variant("full-kernel", chunks.count(inputs.shape[1]), 0, 1.5, lambda layer, q, k, lengths: None)
    chosen = [*chosen, every_block]
    works = {}
    for number, variant in enumerate(chosen):
        works[number, "prediction_seconds"] = partial(_predict, variant, layers)
        works[number, "attention_seconds"] = partial(_attend, variant, layers, _predict(variant, layers))
        works[number, "model_seconds"] = partial(_run, variant, model, control, inputs)
    seconds = repeated_seconds(works, repeats, model.device.type)
    rows = [{"block_size": chunks.size} | variant.row for variant in chosen]
    for (number, part), lasting in seconds.items():
        rows[number][part] = median(lasting) / len(inputs)
        if part == "model_seconds":
            rows[number]["model_repeats"] = " ".join(f"{one / len(inputs):.6g}" for one in lasting)
    return pd.DataFrame(rows)


def _queries_and_keys(model: PreTrainedModel, control: AttentionControl, inputs: Tensor) -> list[tuple[Tensor, Tensor]]:
    found = []
    with control.observing(lambda call, mask: found.append((call.q, call.k))):
        model(inputs)
    return found


def _predict(variant: Variant, layers: list[tuple[Tensor, Tensor]]) -> list[BlockMask | None]:
    if variant.graph is None:
        return [None] * len(layers)
    return [variant.graph(layer, q, k, None) for layer, (q, k) in enumerate(layers)]


def _attend(variant: Variant, layers: list[tuple[Tensor, Tensor]], masks: list[BlockMask | None]) -> None:
    """The attention of every layer; keys stand for the values, whose numbers do not matter for the time."""
    for (q, k), mask in zip(layers, masks, strict=True):
        if variant.graph is None:
            attention(q, k, k)
        else:
            block_sparse_entmax_attention(q, k, k, mask, alpha=variant.alpha)


def _run(variant: Variant, model: PreTrainedModel, control: AttentionControl, inputs: Tensor) -> None:
    with control.visiting(variant.graph, variant.alpha) if variant.graph else nullcontext():
        model(inputs)
