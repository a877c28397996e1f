"""Measurements of a masked language model with entmax: perplexity, attention graphs, and perplexity under predicted graphs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import isclose
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from tqdm import tqdm
from transformers import DataCollatorForLanguageModeling, PreTrainedModel, PreTrainedTokenizerFast

from replication.corpora.ngram import Bigram, unigram_log_probabilities
from replication.corpora.tokens import read_tokens
from replication.graphs import replaced
from replication.graphs.replaced import Replacements
from replication.graphs.shards import writing_graphs
from replication.masked_lm.model import IGNORED, check_length, masked_loss
from sparselib import metrics
from sparselib.control import AttentionControl, Graph, LayerCall
from sparselib.dense_attention import PLAIN


@dataclass(frozen=True)
class MaskedText:
    """Sequences with fixed masked places: ``inputs``, ``labels`` and the true ``input_ids``, all ``[N, n]``."""

    inputs: Tensor
    labels: Tensor
    input_ids: Tensor

    def batches(self, size: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield inputs and labels of ``size`` sequences at a time."""
        return zip(self.inputs.split(size), self.labels.split(size), strict=True)


def mask_text(input_ids: Tensor, tokenizer: PreTrainedTokenizerFast, mask_probability: float, seed: int) -> MaskedText:
    """Choose the places to predict as in training (80 % masked, 10 % random, 10 % kept), the same for every model."""
    collator = DataCollatorForLanguageModeling(tokenizer, mlm_probability=mask_probability, seed=seed)
    batch = collator([{"input_ids": ids.long()} for ids in input_ids])
    return MaskedText(batch["input_ids"], batch["labels"], input_ids.long())


def read_masked_text(path: Path, tokenizer: PreTrainedTokenizerFast, masking: dict[str, object]) -> MaskedText:
    """Read the first sequences of a file of tokens, and choose the places to predict.

    Parameters
    ----------
    masking : dict
        ``sequences`` (None for all), ``mask_probability`` and ``seed``.
    """
    input_ids = read_tokens(path)["input_ids"][: masking["sequences"]]
    return mask_text(input_ids, tokenizer, masking["mask_probability"], masking["seed"])


def cross_entropy(model: PreTrainedModel, text: MaskedText, batch_size: int) -> float:
    """Return the mean nats per masked token; its exponential is the perplexity."""
    return mean_nats(sequence_losses(model, text, batch_size))


def mean_nats(losses: pd.DataFrame) -> float:
    """Return the mean nats per masked token of a table of :func:`sequence_losses`."""
    return losses["nats"].sum() / losses["places"].sum()


@torch.no_grad()
def sequence_losses(model: PreTrainedModel, text: MaskedText, batch_size: int) -> pd.DataFrame:
    """Measure the loss of each sequence.

    Returns
    -------
    DataFrame
        A row per sequence: ``sequence``, ``nats`` summed over its masked tokens, and their number ``places``.
    """
    model.eval()
    nats_by_batch = []
    for inputs, labels in text.batches(batch_size):
        row = (labels != IGNORED).nonzero()[:, 0]
        losses = masked_loss(model, inputs.to(model.device), labels.to(model.device), "none").double().cpu()
        nats_by_batch.append(torch.zeros(len(inputs), dtype=torch.float64).index_add(0, row, losses))
    nats, places = torch.cat(nats_by_batch).numpy(), (text.labels != IGNORED).sum(1).numpy()
    return pd.DataFrame({"sequence": range(len(nats)), "nats": nats, "places": places})


def baseline_cross_entropies(train_ids: Tensor, text: MaskedText, vocab_size: int) -> dict[str, float]:
    """Return the mean nats of unigrams and bigrams over the masked places; bigrams see the true token before each place."""
    train, true = train_ids.numpy(), text.input_ids.numpy()
    row, place = np.nonzero((text.labels != IGNORED).numpy())
    unigram = unigram_log_probabilities(train, vocab_size)[true[row, place]]
    bigram = Bigram(train, vocab_size).log_probability(true[row, place - 1], true[row, place])
    return {"unigram": float(-unigram.mean()), "interpolated bigram": float(-bigram.mean())}


@torch.no_grad()
def extract_graphs(
    model: PreTrainedModel,
    control: AttentionControl,
    input_ids: Tensor,
    sequence: Tensor,
    folder: Path,
    batch_size: int,
) -> None:
    """Write the queries and keys of every layer for ``input_ids[sequence]``, unmasked, to a file per layer.

    Raises
    ------
    ValueError
        If queries and keys do not give the model's gold graph: a token cannot see another one, or scores have other terms.
    """
    model.eval()
    length, calls = input_ids.shape[1], []
    check_length(model, length)
    with control.observing(lambda call, mask: calls.append(call)):
        model.base_model(input_ids[sequence[:1]].long().to(model.device))
    _, heads, _, dimension = calls[0].q.shape
    for call in calls:
        scale = call.scoring.scale or dimension**-0.5
        if not (
            call.visible.all() and isclose(scale * dimension**0.5, 1) and replace(call.scoring, scale=None) == PLAIN
        ):
            raise ValueError(
                f"`model` must attend to all {length} tokens by q.k / sqrt({dimension}), but layer {call.layer} does not"
            )
    paths = [folder / f"layer{layer:02}.safetensors" for layer in range(control.layers)]
    normalizers = [control.normalizer_of(layer) for layer in range(control.layers)]
    with writing_graphs(paths, sequence, heads, length, dimension, causal=False, normalizers=normalizers) as writer:
        for start in tqdm(range(0, len(sequence), batch_size), desc="extract", unit="batch", mininterval=5):
            ids = input_ids[sequence[start : start + batch_size]].long().to(model.device)
            lengths = torch.full((len(ids),), length)

            def store(call, mask, start=start, lengths=lengths):
                writer.write(call.layer, start, call.q, call.k, lengths)

            with control.observing(store):
                model.base_model(ids)


@dataclass
class SparsityTally:
    """Mean sparsity over layers, heads and sentences, which have no padding."""

    total: float = 0.0
    count: int = 0

    def add(self, mask: Tensor, call: LayerCall) -> None:
        """Add the masks ``[B, H, n, n]`` of one layer's call."""
        self.total += metrics.sparsity(mask).sum().item()
        self.count += mask.shape[0] * mask.shape[1]

    def measures(self) -> dict[str, float]:
        """Return the mean so far as ``sparsity``."""
        return {"sparsity": self.total / self.count}


def evaluate_replaced(
    model: PreTrainedModel, control: AttentionControl, text: MaskedText, replacements: Replacements, batch_size: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Measure perplexity under every replacement.

    Returns
    -------
    table : DataFrame
        The table of :func:`replication.graphs.replaced.evaluate_replaced`, with ``nats`` and ``perplexity``.
    losses : DataFrame
        The losses of each sequence, with the columns of :func:`sequence_losses`.
    """

    def score(graphs: Sequence[Graph]) -> Iterator[tuple[dict[str, object], pd.DataFrame]]:
        for graph in graphs:
            with control.restricted_to(graph):
                losses = sequence_losses(model, text, batch_size)
            yield {"nats": mean_nats(losses)}, losses

    table, losses = replaced.evaluate_replaced(score, SparsityTally, replacements, causal=False, device=model.device)
    table["perplexity"] = np.exp(table["nats"])
    return table, losses
