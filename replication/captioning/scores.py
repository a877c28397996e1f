"""Scores of captions against human captions: BLEU-4, METEOR and CIDEr.

All three take words as given, while the COCO toolkit splits sentences by Stanford's tokenizer, which needs Java. BLEU is
sacreBLEU's, with the closest reference's length. CIDEr is the COCO toolkit's own (CIDEr-D). METEOR is NLTK's (Banerjee and
Lavie 2005) on words and stems alone: the toolkit's METEOR 1.5 needs Java, and synonyms need WordNet.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from nltk.stem import PorterStemmer
from nltk.translate.meteor_score import meteor_score
from pycocoevalcap.cider.cider import Cider
from sacrebleu.metrics import BLEU

from replication.results.bleu import COUNTS, corpus_bleu

Words = Sequence[str]


class _NoSynonyms:
    """A stand-in for WordNet, whose data no package contains."""

    def synsets(self, word: str) -> list:
        return []


def caption_scores(hypotheses: Sequence[Words], references: Sequence[Sequence[Words]]) -> pd.DataFrame:
    """Score the caption of each image.

    Parameters
    ----------
    hypotheses : sequence of captions
        Words of one caption per image.
    references : sequence of sequences of captions
        All human captions of each image.

    Returns
    -------
    DataFrame
        A row per image: the counts of corpus BLEU (:data:`replication.results.bleu.COUNTS`), and ``meteor`` and ``cider``
        times 100.

    Raises
    ------
    ValueError
        If hypotheses and references differ in length, there are fewer than two images, or an image has no reference.

    Notes
    -----
    CIDEr weights n-grams by their rarity in the references, so it depends on the whole set of images.

    Examples
    --------
    >>> ball, box = "a red ball in the park".split(), "a blue box on the beach".split()
    >>> scores = caption_scores([ball, box], [[ball], [box]])
    >>> corpus(scores)
    {'bleu4': 100.0, 'meteor': 99.7685, 'cider': 1000.0}
    """
    if len(hypotheses) != len(references) or len(references) < 2:
        raise ValueError(
            f"`hypotheses` must be one per image, and at least two, got {len(hypotheses)} for {len(references)} images"
        )
    for number, image_references in enumerate(references):
        if not image_references:
            raise ValueError(f"`references` must have a caption for each image, got none for image number {number}")
    bleu, stemmer = BLEU(tokenize="none", force=True, effective_order=True), PorterStemmer()
    rows = []
    for hypothesis, image_references in zip(hypotheses, references, strict=True):
        score = bleu.sentence_score(" ".join(hypothesis), [" ".join(words) for words in image_references])
        meteor = meteor_score(list(map(list, image_references)), list(hypothesis), str.lower, stemmer, _NoSynonyms())
        rows.append([score.sys_len, score.ref_len, *score.counts, *score.totals, 100 * meteor])
    table = pd.DataFrame(rows, columns=[*COUNTS, "meteor"])
    table["cider"] = 100 * cider(hypotheses, references)
    return table


def cider(hypotheses: Sequence[Words], references: Sequence[Sequence[Words]]) -> np.ndarray:
    """Return CIDEr-D of each image (Vedantam et al. 2015, section 5); 10 for a caption that equals the only reference."""
    expected = {number: [" ".join(words) for words in captions] for number, captions in enumerate(references)}
    generated = {number: [" ".join(words)] for number, words in enumerate(hypotheses)}
    return np.asarray(Cider().compute_score(expected, generated)[1])


def corpus(scores: pd.DataFrame) -> dict[str, float]:
    """Return BLEU-4 of all images together, and the means of METEOR and CIDEr."""
    totals = scores[COUNTS].to_numpy().sum(axis=0)
    means = {name: round(float(scores[name].mean()), 4) for name in ("meteor", "cider")}
    return {"bleu4": round(float(corpus_bleu(totals)), 4), **means}
