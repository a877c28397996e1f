"""How good captions are, against all captions that people gave: BLEU-4, METEOR and CIDEr.

All three read words as they are given; the COCO toolkit makes words of sentences by Stanford's tokenizer, which needs Java.
BLEU is sacreBLEU's, with the closest reference's length; CIDEr is the COCO toolkit's own (CIDEr-D). METEOR is that of Banerjee
and Lavie (2005) by NLTK, of words and stems alone: the toolkit's METEOR 1.5 needs Java, and synonyms need WordNet.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from nltk.stem import PorterStemmer
from nltk.translate.meteor_score import meteor_score
from pycocoevalcap.cider.cider import Cider
from sacrebleu.metrics import BLEU

from replication.bleu import COUNTS, corpus_bleu

Words = Sequence[str]


class _NoSynonyms:
    """In place of WordNet, whose data no package carries."""

    def synsets(self, word: str) -> list:
        return []


def caption_scores(hypotheses: Sequence[Words], references: Sequence[Sequence[Words]]) -> pd.DataFrame:
    """A row per image: what corpus BLEU adds up (:data:`replication.bleu.COUNTS`), ``meteor`` and ``cider``, both times 100.

    CIDEr weighs n-grams by how rare they are in the references given: it belongs to a set of images.

    Raises ``ValueError`` if there are not as many hypotheses as images, fewer than two images, or an image without reference.

    >>> ball, box = "a red ball in the park".split(), "a blue box on the beach".split()
    >>> scores = caption_scores([ball, box], [[ball], [box]])
    >>> corpus(scores)
    {'bleu4': 100.0, 'meteor': 99.8, 'cider': 1000.0}
    """
    if len(hypotheses) != len(references) or len(references) < 2:
        raise ValueError(
            f"{len(hypotheses)} captions for {len(references)} images: as many are needed, and two at least"
        )
    for number, own in enumerate(references):
        if not own:
            raise ValueError(f"image number {number} has no caption to compare with")
    bleu, stemmer = BLEU(tokenize="none", force=True, effective_order=True), PorterStemmer()
    rows = []
    for hypothesis, own in zip(hypotheses, references, strict=True):
        found = bleu.sentence_score(" ".join(hypothesis), [" ".join(reference) for reference in own])
        meteor = meteor_score([list(one) for one in own], list(hypothesis), str.lower, stemmer, _NoSynonyms())
        rows.append([found.sys_len, found.ref_len, *found.counts, *found.totals, 100 * meteor])
    table = pd.DataFrame(rows, columns=[*COUNTS, "meteor"])
    table["cider"] = 100 * cider(hypotheses, references)
    return table


def cider(hypotheses: Sequence[Words], references: Sequence[Sequence[Words]]) -> np.ndarray:
    """CIDEr-D of each image (Vedantam et al. 2015, section 5), 10 for a caption that is the only reference."""
    given = {number: [" ".join(one) for one in own] for number, own in enumerate(references)}
    said = {number: [" ".join(one)] for number, one in enumerate(hypotheses)}
    return np.asarray(Cider().compute_score(given, said)[1])


def corpus(scores: pd.DataFrame) -> dict[str, float]:
    """BLEU-4 of all images together, and the means of the other two."""
    totals = scores[COUNTS].to_numpy().sum(axis=0)
    means = {name: round(float(scores[name].mean()), 4) for name in ("meteor", "cider")}
    return {"bleu4": round(float(corpus_bleu(totals)), 4), **means}
