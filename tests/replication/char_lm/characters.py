"""Models so small that they train in a second, and chapters of the Bible in characters."""

from functools import cache
from itertools import islice

import torch
from torch import Tensor

from replication.char_lm.corpus import text_of
from replication.char_lm.data import Alphabet, cut
from replication.char_lm.models import build_model
from replication.char_lm.recurrent import RecurrentModel
from replication.char_lm.training import Progress, Recipe, step
from replication.corpora.bible import read_chapters

SIZES = {"layers": 2, "dimension": 16, "heads": 2, "inner": 24, "dropout": 0.0}
XL = {"architecture": "transformer_xl", "top_k": None, "memory_length": 40} | SIZES
SPAN = {"maximal_span": 40, "ramp": 6, "span_penalty": 0.0, "initial_span": 1.0}
SPAN = {"architecture": "adaptive_span", "top_k": None} | SPAN | SIZES


@cache
def corpus(chapters: int) -> tuple[Alphabet, Tensor]:
    """An alphabet, and so many chapters in it."""
    text = text_of(islice(read_chapters(["Jonah"]), chapters))
    alphabet = Alphabet.of(text)
    return alphabet, alphabet.encode(text)


def trained(settings: dict[str, object], steps: int = 8) -> RecurrentModel:
    """A model in float64 that has left its random weights behind, ready to be evaluated."""
    alphabet, ids = corpus(2)
    model = build_model(settings, len(alphabet), seed=0).double()
    progress = Progress(model, torch.optim.Adam(model.parameters()))
    recipe = Recipe(steps, length=20, learning_rate=0.01, warmup_steps=1, clip_norm=1.0, log_every=steps)
    for inputs, targets in islice(cut(ids, 4, 20).segments(20), steps):
        step(progress, inputs, targets, recipe)
    assert progress.step == steps
    return model.eval()


def some_text(characters: int, rows: int = 2) -> Tensor:
    return corpus(2)[1][: rows * characters].view(rows, characters).long()


@torch.no_grad()
def read(model: RecurrentModel, ids: Tensor, length: int) -> Tensor:
    """Logits ``[B, T, V]`` of ``ids [B, T]`` read in segments of ``length``."""
    logits, memory = [], None
    for segment in ids.split(length, 1):
        of_segment, memory = model(segment, memory)
        logits.append(of_segment)
    return torch.cat(logits, 1)
