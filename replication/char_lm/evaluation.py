"""Measurements of a character model over a stream: bits per character, attended positions, and attention by position."""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from replication.char_lm.data import IGNORED, Stream
from replication.char_lm.recurrent import RecurrentModel
from replication.corpora.ngram import Bigram, unigram_log_probabilities
from sparselib import masks


@dataclass(frozen=True)
class Measured:
    """Results of :func:`evaluate`.

    ``attended_positions`` is the number of keys with a nonzero weight, averaged over queries, heads and layers. ``segments``
    has the ``bits`` and ``characters`` of every segment of every row.
    """

    bits_per_character: float
    attended_positions: float
    segments: pd.DataFrame


@torch.no_grad()
def evaluate(model: RecurrentModel, stream: Stream, length: int) -> Measured:
    """Predict every character of a stream, in segments of ``length``, each row with its own memory.

    The first characters of each row have little context. So fewer rows give slightly fewer bits, and take longer.
    """
    was_training = model.training
    model.eval()
    device = model.output.weight.device
    # The sum stays on the device, since reading it in every layer would synchronise.
    attended = torch.zeros((), dtype=torch.int64, device=device)
    segments, rows = [], 0

    def count(layer: int, weights: Tensor) -> None:
        nonlocal attended, rows
        attended += weights.count_nonzero()
        rows += weights[..., 0].numel()

    memory = None
    for inputs, targets in stream.segments(length):
        logits, memory = model(inputs.to(device), memory, count)
        nats = total_nats(logits, targets.to(device), "none").double().view(targets.shape)
        bits = (nats.sum(1) / math.log(2)).tolist()
        segments.append(pd.DataFrame({"bits": bits, "characters": (targets != IGNORED).sum(1).tolist()}))
    model.train(was_training)
    table = pd.concat(segments, ignore_index=True).query("characters > 0").reset_index(drop=True)
    return Measured(table["bits"].sum() / table["characters"].sum(), attended.item() / rows, table)


def total_nats(logits: Tensor, targets: Tensor, reduction: str = "sum") -> Tensor:
    """Return the cross-entropy of ``logits [B, Q, V]`` in nats.

    Parameters
    ----------
    targets : Tensor ``[B, Q]``
        Ids, or :data:`~replication.char_lm.data.IGNORED`.
    reduction : str
        ``"sum"`` over all targets, or ``"none"`` for the value of each target ``[B * Q]``.
    """
    return cross_entropy(logits.flatten(0, 1).float(), targets.flatten(), ignore_index=IGNORED, reduction=reduction)


def baselines(train: Tensor, test: Tensor, vocab_size: int) -> dict[str, float]:
    """Return the bits per character of unigrams and interpolated bigrams, both over characters ``[N]``."""
    train_ids, test_ids = train.numpy().astype(np.int64), test.numpy().astype(np.int64)
    unigram = unigram_log_probabilities(train_ids, vocab_size)[test_ids[1:]]
    bigram = Bigram(train_ids[None], vocab_size).log_probability(test_ids[:-1], test_ids[1:])
    return {
        "unigram": float(-unigram.mean() / math.log(2)),
        "interpolated bigram": float(-bigram.mean() / math.log(2)),
    }


@torch.no_grad()
def attention_in_parts(model: RecurrentModel, stream: Stream, length: int, stride: int) -> pd.DataFrame:
    """Measure the mean share of each head's attention on a query's row, on its column, and on both together.

    The parts are those of the strided pattern: the last ``stride`` positions, and every ``stride``-th position before. Queries
    that see only their parts are left out, because all their attention is there in any case.

    Returns
    -------
    DataFrame
        A row per layer and head with ``row, column, either``, and ``uniform_row, uniform_column, uniform_either`` for a head
        with equal weights on all visible positions.
    """
    device = model.output.weight.device
    row, column = (masks.to_dense(part, 1, 1, length)[0, 0].to(device) for part in masks.strided_parts(stride))
    parts = torch.stack([row, column, row | column]).double()  # [3, n, n]
    visible = torch.ones(length, length, dtype=torch.float64, device=device).tril()
    measured = (row | column).sum(-1) < visible.sum(-1)
    uniform = ((parts * visible).sum(-1) / visible.sum(-1))[:, measured].mean(-1)
    sums, count = {}, 0

    def add(layer: int, weights: Tensor) -> None:
        shares = torch.einsum("bhqk,pqk->bhqp", weights.double(), parts)[:, :, measured]
        sums[layer] = sums.get(layer, 0) + shares.mean(2).sum(0)

    for inputs, _ in stream.segments(length):
        if inputs.shape[1] == length:
            model(inputs.to(device), None, add)
            count += len(inputs)
    names = ("row", "column", "either")
    rows = []
    for layer, total in sums.items():
        for head, shares in enumerate((total / count).tolist()):
            rows.append({"layer": layer, "head": head} | dict(zip(names, shares, strict=True)))
    return pd.DataFrame(rows).assign(**{f"uniform_{name}": float(x) for name, x in zip(names, uniform, strict=True)})
