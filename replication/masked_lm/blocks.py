"""Perplexity and time of a masked language model that visits only predicted blocks (section 6.1)."""

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
from sparselib.normalizers import Entmax, alpha_of
from sparselib.projections import Projection


@dataclass(frozen=True)
class Variant:
    """A way to choose blocks, with the columns of its rows in tables.

    ``count`` is the paper's K, ``clusters`` is 0 for a method without clusters, and ``graph`` is None for dense attention.
    """

    method: str
    count: int
    clusters: int
    alpha: float
    graph: BlockGraph | None

    @property
    def row(self) -> dict[str, object]:
        """Return the columns that identify the variant."""
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
    alpha: float = 1.5,
) -> Iterator[Variant]:
    """Yield all methods of Figures 7 and 13 at every K of ``counts``.

    A K is left out if window, global and K more blocks are all blocks, since there is nothing to choose.

    Parameters
    ----------
    length : int
        Tokens of a sequence.
    chunks : Chunks
        Division of sequences into blocks.
    counts, clusters : list of int
        Values of K, and numbers of clusters of the second version of Sparsefinder.
    metric : str
        Distance between blocks in the first version.
    projections, centroids : list
        Of each layer; centroids have the key ``kmeans-N`` for N clusters.
    seed : int
        Seed of the random blocks.
    alpha : float
        The model's own.
    """
    blocks = chunks.count(length)
    projections = [projection.to(model.device) for projection in projections]
    learned = partial(PredictedBlocks, projections, chunks=chunks)
    yield Variant("full", blocks, 0, alpha, None)
    for count in counts:
        if count + MOST_FIXED_BLOCKS >= blocks:
            continue
        yield Variant("sparsefinder-v1", count, 0, alpha, learned([NearestBlocks(count, metric)] * len(projections)))
        for number in clusters:
            predictors = [ClusteredBlocks(layer_centroids[f"kmeans-{number}"], count) for layer_centroids in centroids]
            yield Variant("sparsefinder-v2", count, number, alpha, learned(predictors))
        masks = _random_masks(model, length, chunks, count, len(projections), seed)
        for method, its_alpha in (("bigbird", alpha), ("bigbird-softmax", 1.0)):
            yield Variant(method, count, 0, its_alpha, lambda layer, q, k, lengths, masks=masks: masks[layer])


def _random_masks(
    model: PreTrainedModel, length: int, chunks: Chunks, count: int, layers: int, seed: int
) -> list[BlockMask]:
    """Draw BigBird's blocks once for every layer and head, as the reference code does."""
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
    full: pd.DataFrame,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Measure perplexity with every layer visiting only predicted blocks.

    Parameters
    ----------
    full : DataFrame
        The unrestricted model's losses, from :func:`~replication.masked_lm.evaluation.sequence_losses`.

    Returns
    -------
    table : DataFrame
        A row per variant: its columns, ``nats``, ``perplexity``, ``attended`` (mean number of key blocks that a query block
        visits), ``density`` (their share) and ``recall``.
    losses : DataFrame
        A row per variant and sequence, with the columns of :func:`~replication.masked_lm.evaluation.sequence_losses`.

    Notes
    -----
    Recall is the visited share of the gold blocks, which have a gold edge. The gold edges follow from this model's own hidden
    states, which the missing blocks of lower layers have changed.
    """
    blocks = chunks.count(text.inputs.shape[1])
    rows, losses_by_variant = [], []
    for variant in tqdm(chosen, desc="blocks", unit="variant", mininterval=5):
        point = {"block_size": chunks.size} | variant.row
        if variant.graph is None:
            losses, measured = full, {"recall": 1.0, "density": 1.0}
        else:
            losses, measured = _evaluate(model, control, text, chunks, variant, batch_size)
        rows.append(point | {"nats": mean_nats(losses)} | measured)
        losses_by_variant.append(pd.DataFrame(point, index=losses.index).join(losses))
    table = pd.DataFrame(rows)
    table["attended"] = table["density"] * blocks
    table["perplexity"] = np.exp(table["nats"])
    return table, pd.concat(losses_by_variant, ignore_index=True)


def _evaluate(
    model: PreTrainedModel,
    control: AttentionControl,
    text: MaskedText,
    chunks: Chunks,
    variant: Variant,
    batch_size: int,
) -> tuple[pd.DataFrame, dict[str, float]]:
    recalls, sparsities = [], []

    def measured_graph(layer, q, k, lengths):
        mask = variant.graph(layer, q, k, lengths)
        gold = chunks.blocks(gold_graph(q, k, normalizer=control.normalizer_of(layer)))
        visited = mask.to_dense().expand_as(gold)
        recalls.append(recall(visited, gold).flatten())
        sparsities.append(sparsity(visited).flatten())
        return mask

    with control.visiting(measured_graph, variant.alpha):
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
    """Time each variant on one batch ``[B, n]``, in ``repeats`` rounds after a warm-up.

    Returns
    -------
    DataFrame
        A row per variant, in seconds per sequence: medians ``prediction_seconds`` and ``attention_seconds`` of all layers, on
        queries and keys of the dense model; median ``model_seconds`` of a whole forward pass with prediction, and all its
        repeats ``model_repeats``. The additional variant ``full-kernel`` is the kernel visiting every block, which on some
        machines is faster than ``full``.
    """
    model.eval()
    inputs = inputs.to(model.device)
    layers = []
    with control.observing(lambda call, mask: layers.append((call.q, call.k))):
        model(inputs)
    alpha = alpha_of(control.normalizer_of(0))
    every_block = Variant("full-kernel", chunks.count(inputs.shape[1]), 0, alpha, lambda layer, q, k, lengths: None)
    chosen = [*chosen, every_block]
    runs = {}
    for number, variant in enumerate(chosen):
        runs[number, "prediction_seconds"] = partial(_predict, variant, layers)
        runs[number, "attention_seconds"] = partial(_attend, variant, layers, _predict(variant, layers))
        runs[number, "model_seconds"] = partial(_run, variant, model, control, inputs)
    seconds = repeated_seconds(runs, repeats, model.device.type)
    rows = [{"block_size": chunks.size} | variant.row for variant in chosen]
    for (number, part), times in seconds.items():
        rows[number][part] = median(times) / len(inputs)
        if part == "model_seconds":
            rows[number]["model_repeats"] = " ".join(f"{time / len(inputs):.6g}" for time in times)
    return pd.DataFrame(rows)


def _predict(variant: Variant, layers: list[tuple[Tensor, Tensor]]) -> list[BlockMask | None]:
    if variant.graph is None:
        return [None] * len(layers)
    return [variant.graph(layer, q, k, None) for layer, (q, k) in enumerate(layers)]


def _attend(variant: Variant, layers: list[tuple[Tensor, Tensor]], masks: list[BlockMask | None]) -> None:
    """Run the attention of every layer, with keys as values, since the values do not affect the time."""
    for (q, k), mask in zip(layers, masks, strict=True):
        if variant.graph is None:
            attention(q, k, k, normalizer=Entmax(variant.alpha), weights=False)
        else:
            block_sparse_entmax_attention(q, k, k, mask, alpha=variant.alpha)


def _run(variant: Variant, model: PreTrainedModel, control: AttentionControl, inputs: Tensor) -> None:
    with control.visiting(variant.graph, variant.alpha) if variant.graph else nullcontext():
        model(inputs)
