"""Pronouns that the sentences before decide, by contrast: the evaluation of ContraPro (Müller et al., 2018).

A model is not asked to translate. It gives a probability to the reference, and to the reference with another pronoun: it
is right if the reference is the most probable. The same is asked of the sentence alone, which shows what the context gives.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from fairseq.data import LanguagePairDataset
from subword_nmt.apply_bpe import BPE
from torch import Tensor

from replication.translation.model import Translator

PRONOUNS = ("he", "she", "it")
#: Sentences of the test set per pronoun, at most.
CONTRASTS = 100


@dataclass(frozen=True)
class Contrast:
    """A sentence with its pronoun exchanged, and the sentences of its block before it, in words with a space between them."""

    pronoun: str
    #: Sentences up to this one, which is the last.
    source: list[str]
    target: list[str]
    #: The last target sentence with each of the other pronouns.
    variants: list[str]

    def pairs(self, context: bool) -> list[tuple[str, str]]:
        """Source and target of the reference, then of each variant; ``context``: with the sentences before, or alone."""
        first = 0 if context else -1
        return [
            (" ".join(self.source[first:]), " ".join([*self.target[:-1], last][first:]))
            for last in (self.target[-1], *self.variants)
        ]


def contrasts_of(source: list[list[str]], target: list[list[str]]) -> Iterator[Contrast]:
    """One for every sentence with a single pronoun, in order; not for the first of a block, which has nothing before it.

    Parameters
    ----------
    source, target : the sentences of each block, aligned; the target is English

    Raises
    ------
    ValueError
        If there are not as many blocks, or sentences in a block, on both sides.
    """
    if len(source) != len(target):
        raise ValueError(f"{len(source)} blocks of the source for {len(target)} of the target")
    for number, (of_source, of_target) in enumerate(zip(source, target, strict=True)):
        if len(of_source) != len(of_target):
            raise ValueError(
                f"block {number}: {len(of_source)} sentences of the source for {len(of_target)} of the target"
            )
        for place in range(1, len(of_target)):
            pronoun, variants = _exchanged(of_target[place])
            if variants:
                yield Contrast(pronoun, of_source[: place + 1], of_target[: place + 1], variants)


def _exchanged(sentence: str) -> tuple[str, list[str]]:
    """A sentence's only pronoun, in small letters, and the sentence with each of the others; nothing if it has none or more."""
    words = sentence.split()
    places = [place for place, word in enumerate(words) if word.lower() in PRONOUNS]
    if len(places) != 1:
        return "", []
    before, own, after = words[: places[0]], words[places[0]], words[places[0] + 1 :]
    others = [other.capitalize() if own[0].isupper() else other for other in PRONOUNS if other != own.lower()]
    return own.lower(), [" ".join([*before, other, *after]) for other in others]


def first_of_each(contrasts: Iterable[Contrast], count: int) -> list[Contrast]:
    """The first ``count`` contrasts of every pronoun, in order: he and she are many times as frequent as it.

    Raises
    ------
    ValueError
        If ``count`` is below 1, or there are no contrasts.
    """
    if count < 1:
        raise ValueError(f"contrasts must be at least 1, got {count}")
    chosen, counts = [], Counter()
    for contrast in contrasts:
        counts[contrast.pronoun] += 1
        if counts[contrast.pronoun] <= count:
            chosen.append(contrast)
    if not chosen:
        raise ValueError(f"no sentence with another before it has exactly one of {', '.join(PRONOUNS)}")
    return chosen


@torch.no_grad()
def log_probabilities(translator: Translator, pairs: list[tuple[str, str]], codes: BPE, batch_tokens: int) -> Tensor:
    """Log-probability (nats) of each target given its source, teacher-forced, its end included: float64 ``[pairs]``.

    Parameters
    ----------
    pairs : source and target, words with a space between them
    codes : what the translator's data were cut into subwords with
    """
    dictionary = translator.dictionary
    sides = [
        [dictionary.encode_line(codes.process_line(text), add_if_not_exist=False).long() for text in side]
        for side in zip(*pairs, strict=True)
    ]
    sizes = [np.array([len(tokens) for tokens in side]) for side in sides]
    dataset = LanguagePairDataset(sides[0], sizes[0], dictionary, sides[1], sizes[1], dictionary)
    scores = torch.empty(len(pairs), dtype=torch.float64)
    for sample in translator.batches(dataset, list(range(len(pairs))), batch_tokens):
        logits, _ = translator.model(**sample["net_input"])
        target = sample["target"]
        of_target = logits.log_softmax(-1).gather(-1, target[..., None]).squeeze(-1).double()
        scores[sample["id"].cpu()] = of_target.masked_fill(target == dictionary.pad(), 0.0).sum(1).cpu()
    return scores


def measure(translator: Translator, asked: list[Contrast], codes: BPE, batch_tokens: int) -> pd.DataFrame:
    """How often the reference is more probable than every variant: a row per pronoun, with its ``context`` and without.

    Columns ``context, pronoun, contrasts, right``: the last two are numbers of contrasts, of which there is at least one.
    """
    tables = []
    for context in (True, False):
        pairs = [pair for contrast in asked for pair in contrast.pairs(context)]
        scores = log_probabilities(translator, pairs, codes, batch_tokens).view(len(asked), len(PRONOUNS))
        right = scores[:, 0] > scores[:, 1:].amax(1)
        pronouns = [contrast.pronoun for contrast in asked]
        rows = pd.DataFrame({"context": context, "pronoun": pronouns, "contrasts": 1, "right": right.int().numpy()})
        tables.append(rows.groupby(["context", "pronoun"], as_index=False).sum())
    return pd.concat(tables, ignore_index=True)
