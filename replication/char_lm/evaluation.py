"""Bits per character over a whole stream, and attended positions (Table 3)."""

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


@dataclass(frozen=True)
class Measured:
    """``bits_per_character``, and ``attended_positions``: keys with a nonzero weight, mean over queries, heads and layers.

    ``segments`` has ``bits`` and ``characters`` of every segment of every row of the stream.
    """

    bits_per_character: float
    attended_positions: float
    segments: pd.DataFrame


@torch.no_grad()
def evaluate(model: RecurrentModel, stream: Stream, length: int) -> Measured:
    """Read the whole stream in segments of ``length``, each row with its memory, and predict every character.

    The first characters of each row have little context: fewer rows give (slightly) fewer bits, and take longer.
    """
    was_training = model.training
    model.eval()
    device = model.output.weight.device
    # Summed up on the device: asking for a number in every layer would make it wait.
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
    """Cross-entropy of ``logits [B, Q, V]``, summed over the targets ``[B, Q]`` that are there; with ``"none"`` of each."""
    return cross_entropy(logits.flatten(0, 1).float(), targets.flatten(), ignore_index=IGNORED, reduction=reduction)


def baselines(train: Tensor, test: Tensor, vocab_size: int) -> dict[str, float]:
    """Bits per character of unigrams and of interpolated bigrams of characters ``[N]``: what a model must clearly beat."""
    known, read = train.numpy().astype(np.int64), test.numpy().astype(np.int64)
    unigram = unigram_log_probabilities(known, vocab_size)[read[1:]]
    bigram = Bigram(known[None], vocab_size).log_probability(read[:-1], read[1:])
    return {
        "unigram": float(-unigram.mean() / math.log(2)),
        "interpolated bigram": float(-bigram.mean() / math.log(2)),
    }
