"""Scores against their definitions: sacreBLEU of all images, CIDEr-D from two loops, METEOR by hand."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU

from replication.captioning.scores import caption_scores, cider, corpus

SENTENCES = st.lists(st.sampled_from("a red blue ball box sits on".split()), min_size=1, max_size=8)
SAID = st.lists(st.tuples(SENTENCES, st.lists(SENTENCES, min_size=1, max_size=3)), min_size=2, max_size=6)


def grams(words: list[str], n: int) -> Counter:
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


def cider_d(said: list[str], references: list[list[str]], corpus_references: list[list[list[str]]]) -> float:
    """Vedantam et al. (2015), equations 1 to 5 with section 5's changes, as they stand, but for what is not written there: the
    toolkit multiplies by 10 and has a Gaussian of sigma 6 over the difference in length, here counted in bigrams."""
    total = 0.0
    for n in range(1, 5):

        def weighed(words: list[str]) -> dict[tuple, float]:
            found = {}
            for gram, count in grams(words, n).items():  # noqa: B023
                images = sum(any(gram in grams(one, n) for one in own) for own in corpus_references)  # noqa: B023
                found[gram] = count * (math.log(len(corpus_references)) - math.log(max(1, images)))
            return found

        own = weighed(said)
        for reference in references:
            theirs = weighed(reference)
            clipped = sum(min(value, theirs[gram]) * theirs[gram] for gram, value in own.items() if gram in theirs)
            norms = math.sqrt(sum(v**2 for v in own.values())) * math.sqrt(sum(v**2 for v in theirs.values()))
            length = sum(grams(said, 2).values()) - sum(grams(reference, 2).values())
            total += (clipped / norms if norms else 0.0) * math.exp(-(length**2) / (2 * 6**2)) / len(references)
    return 10 * total / 4


@given(SAID)
def test_cider_is_the_two_loops(pairs):
    said, references = zip(*pairs, strict=True)
    expected = [cider_d(one, own, references) for one, own in pairs]
    assert cider(said, references) == pytest.approx(expected, abs=1e-9)


@given(SAID)
def test_bleu_of_all_images_is_sacrebleus(pairs):
    said, references = zip(*pairs, strict=True)
    most = max(len(own) for own in references)
    streams = [[" ".join(own[i]) if i < len(own) else None for own in references] for i in range(most)]
    expected = BLEU(tokenize="none", force=True).corpus_score([" ".join(one) for one in said], streams).score
    assert corpus(caption_scores(said, references))["bleu4"] == pytest.approx(expected, abs=1e-3)


def test_meteor_by_hand():
    """Two of three words match, one as a stem, in one chunk: P = 2/3, R = 2/4, F = 10 P R / (R + 9 P), penalty 0.5 (1/2)^3."""
    said = "red balls fly".split()
    given_ = [["a", "red", "ball", "here"]]
    f = (2 / 3 * 2 / 4) / (0.9 * 2 / 3 + 0.1 * 2 / 4)
    expected = 100 * f * (1 - 0.5 * (1 / 2) ** 3)
    assert caption_scores([said, said], [given_, given_])["meteor"].tolist() == pytest.approx([expected, expected])


@given(SAID)
def test_meteor_takes_the_best_reference(pairs):
    said, references = zip(*pairs, strict=True)
    together = caption_scores(said, references)["meteor"]
    alone = [max(caption_scores([one, one], [[r], [r]])["meteor"].max() for r in own) for one, own in pairs]
    assert together.tolist() == pytest.approx(alone)


def test_what_all_say_is_worth_nothing_to_cider():
    assert cider([["a", "ball"]] * 2, [[["a", "ball"]]] * 2) == pytest.approx([0, 0])


def test_a_caption_of_nothing_scores_nothing():
    scores = caption_scores([[], ["a"]], [[["a", "ball"]], [["a"]]])
    assert (scores["meteor"][0], scores["cider"][0], scores["words"][0]) == (0, 0, 0)


@pytest.mark.parametrize(
    ("said", "references", "message"),
    [([["a"]], [[["a"]], [["b"]]], "got 1 for 2 images"), ([["a"]], [[["a"]]], "at least two"),
     ([["a"], ["b"]], [[["a"]], []], "got none for image number 1")],
)  # fmt: skip
def test_what_cannot_be_scored_is_refused(said, references, message):
    with pytest.raises(ValueError, match=message):
        caption_scores(said, references)


def test_scores_are_independent_of_the_order_of_images():
    rng = np.random.default_rng(0)
    words = "a red blue ball box sits on".split()
    said = [list(rng.choice(words, 5)) for _ in range(6)]
    references = [[list(rng.choice(words, 6)) for _ in range(2)] for _ in range(6)]
    order = rng.permutation(6)
    shuffled = caption_scores([said[i] for i in order], [references[i] for i in order])
    assume(len(shuffled))
    assert corpus(shuffled) == pytest.approx(corpus(caption_scores(said, references)))
