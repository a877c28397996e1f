"""Unigrams and Kneser-Ney bigrams against their twins of plain dictionaries."""

import numpy as np
import pytest
from bigrams import kneser_ney

from replication.corpora.ngram import Bigram, unigram_log_probabilities

VOCABULARY = 12


def skewed(seed: int, shape=(30, 8)) -> np.ndarray:
    """Blocks in which some bigrams are frequent, some occur once, and tokens 10 and 11 never occur."""
    return np.minimum(np.random.default_rng(seed).geometric(0.35, shape) - 1, 9)


def log_probabilities(blocks: np.ndarray) -> np.ndarray:
    """Of every following token (column) after every previous one (row)."""
    previous, following = np.indices((VOCABULARY, VOCABULARY))
    return Bigram(blocks, VOCABULARY).log_probability(previous, following)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_bigrams_equal_their_dictionaries(seed):
    blocks = skewed(seed)
    twin = kneser_ney(blocks.tolist(), VOCABULARY)
    expected = [[twin(previous, following) for following in range(VOCABULARY)] for previous in range(VOCABULARY)]
    np.testing.assert_allclose(np.exp(log_probabilities(blocks)), expected, rtol=1e-12)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_probabilities_sum_to_one_after_every_history_seen_or_not(seed):
    probabilities = np.exp(log_probabilities(skewed(seed)))
    assert (probabilities > 0).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-12)


def test_a_bigram_never_spans_two_blocks():
    joined, apart = np.array([[0, 1, 2, 3]]), np.array([[0, 1], [2, 3]])
    assert Bigram(joined, VOCABULARY).counts[1, 2] == 1
    assert Bigram(apart, VOCABULARY).counts[1, 2] == 0


def test_the_tail_is_by_the_number_of_histories_not_of_occurrences():
    """Francisco, who follows San only, gets less of what is set aside than a word that follows anything."""
    san, francisco, glass = 0, 1, 2
    blocks = np.array([[san, francisco]] * 6 + [[word, glass] for word in (3, 4, 5)])
    unseen_history = np.array([9, 9])
    lesser, greater = Bigram(blocks, VOCABULARY).log_probability(unseen_history, np.array([francisco, glass]))
    assert lesser < greater


def test_any_shape_of_queries():
    model = Bigram(skewed(0), VOCABULARY)
    previous, following = np.random.default_rng(1).integers(0, VOCABULARY, (2, 3, 4, 5))
    flat = model.log_probability(previous.ravel(), following.ravel())
    np.testing.assert_array_equal(model.log_probability(previous, following), flat.reshape(3, 4, 5))


def test_where_no_bigram_occurs_once_the_unseen_stays_possible():
    """Ten after 0, of which two pairs occur twice: discounted by 1 / (1 + 2 * 2), as if one more occurred once."""
    blocks = np.array([[0, 1]] * 6 + [[0, 2]] * 2 + [[0, 3]] * 2)
    probabilities = np.exp(log_probabilities(blocks))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-12)
    continuation = (1 + 0.5) / (3 + 0.5 * VOCABULARY)
    assert probabilities[0, 1] == pytest.approx((6 - 0.2) / 10 + 0.2 * 3 / 10 * continuation)
    assert probabilities[0, 4] > 0


def test_unigrams_are_counts_and_a_half():
    blocks = np.array([[0, 1, 1], [1, 2, 0]])
    expected = np.log([2.5 / 8, 3.5 / 8, 1.5 / 8, 0.5 / 8])
    np.testing.assert_allclose(unigram_log_probabilities(blocks, 4), expected)
