"""Contrastive evaluation of pronouns that depend on preceding sentences (ContraPro, Müller et al., 2018).

The model does not translate. It scores the reference and variants of it with another pronoun, and is right if the reference
is the most probable. Scoring the same sentences without context shows the effect of the context.
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
    """A sentence, the preceding sentences of its block, and its variants with another pronoun.

    Sentences are words separated by spaces.

    Attributes
    ----------
    pronoun : str
        The sentence's pronoun, in lower case.
    source, target : list of str
        Sentences of the block up to and including this one.
    variants : list of str
        The last target sentence with each of the other pronouns.
    """

    pronoun: str
    source: list[str]
    target: list[str]
    variants: list[str]

    def pairs(self, context: bool) -> list[tuple[str, str]]:
        """Return source and target of the reference, then of each variant, with the preceding sentences if ``context``."""
        first = 0 if context else -1
        return [
            (" ".join(self.source[first:]), " ".join([*self.target[:-1], last][first:]))
            for last in (self.target[-1], *self.variants)
        ]


def contrasts_of(source: list[list[str]], target: list[list[str]]) -> Iterator[Contrast]:
    """Yield a contrast for every sentence with exactly one pronoun, in order.

    The first sentence of a block is skipped, because it has no context.

    Parameters
    ----------
    source, target : list of list of str
        The aligned sentences of each block; the target is English.

    Raises
    ------
    ValueError
        If the two sides differ in the number of blocks, or of sentences in a block.
    """
    if len(source) != len(target):
        raise ValueError(f"`source` and `target` must have equally many blocks, got {len(source)} and {len(target)}")
    for number, (of_source, of_target) in enumerate(zip(source, target, strict=True)):
        if len(of_source) != len(of_target):
            raise ValueError(
                f"block {number}: source and target must have equally many sentences, "
                f"got {len(of_source)} and {len(of_target)}"
            )
        for place in range(1, len(of_target)):
            pronoun, variants = _exchanged(of_target[place])
            if variants:
                yield Contrast(pronoun, of_source[: place + 1], of_target[: place + 1], variants)


def _exchanged(sentence: str) -> tuple[str, list[str]]:
    """Return a sentence's only pronoun in lower case, and its variants; an empty pair unless it has exactly one."""
    words = sentence.split()
    places = [place for place, word in enumerate(words) if word.lower() in PRONOUNS]
    if len(places) != 1:
        return "", []
    before, pronoun, after = words[: places[0]], words[places[0]], words[places[0] + 1 :]
    others = [other.capitalize() if pronoun[0].isupper() else other for other in PRONOUNS if other != pronoun.lower()]
    return pronoun.lower(), [" ".join([*before, other, *after]) for other in others]


def first_of_each(contrasts: Iterable[Contrast], count: int) -> list[Contrast]:
    """Return the first ``count`` contrasts of every pronoun, in order, because the pronouns' frequencies differ widely.

    Raises
    ------
    ValueError
        If ``count`` is below 1, or there are no contrasts.
    """
    if count < 1:
        raise ValueError(f"`count` must be at least 1, got {count}")
    chosen, counts = [], Counter()
    for contrast in contrasts:
        counts[contrast.pronoun] += 1
        if counts[contrast.pronoun] <= count:
            chosen.append(contrast)
    if not chosen:
        raise ValueError(
            f"`contrasts` must not be empty: no sentence with context has exactly one of {', '.join(PRONOUNS)}"
        )
    return chosen


@torch.no_grad()
def log_probabilities(translator: Translator, pairs: list[tuple[str, str]], codes: BPE, batch_tokens: int) -> Tensor:
    """Return the teacher-forced log-probability (nats) of each target and its end mark: float64 ``[pairs]``.

    Parameters
    ----------
    translator : Translator
        The model and its data.
    pairs : list of tuple of str
        Source and target, as words separated by spaces.
    codes : BPE
        Byte pair encoding of the translator's data.
    batch_tokens : int
        Tokens per batch.
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


def measure(translator: Translator, contrasts: list[Contrast], codes: BPE, batch_tokens: int) -> pd.DataFrame:
    """Count how often the reference is more probable than every variant, with context and without.

    Parameters
    ----------
    translator : Translator
        The model and its data.
    contrasts : list of Contrast
        The contrasts to score, at least one.
    codes : BPE
        Byte pair encoding of the translator's data.
    batch_tokens : int
        Tokens per batch.

    Returns
    -------
    DataFrame
        A row per pronoun and ``context``: ``contrasts`` counts the contrasts, ``right`` those with the most probable reference.
    """
    tables = []
    for context in (True, False):
        pairs = [pair for contrast in contrasts for pair in contrast.pairs(context)]
        scores = log_probabilities(translator, pairs, codes, batch_tokens).view(len(contrasts), len(PRONOUNS))
        right = scores[:, 0] > scores[:, 1:].amax(1)
        pronouns = [contrast.pronoun for contrast in contrasts]
        rows = pd.DataFrame({"context": context, "pronoun": pronouns, "contrasts": 1, "right": right.int().numpy()})
        tables.append(rows.groupby(["context", "pronoun"], as_index=False).sum())
    return pd.concat(tables, ignore_index=True)
