"""Words and their numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replication.captioning.batches import END, UNKNOWN, Vocabulary

WORDS = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=12)


@given(WORDS)
def test_what_is_known_comes_back(words):
    vocabulary = Vocabulary.of([words], least=1)
    assert vocabulary.decode(vocabulary.encode(words, longest=20)) == words


@given(WORDS, st.integers(1, 12))
def test_captions_are_cut(words, longest):
    encoded = Vocabulary.of([words], least=1).encode(words, longest)
    assert len(encoded) == min(len(words), longest) + 1
    assert encoded[-1] == END


def test_rare_words_are_unknown_and_frequent_ones_come_first():
    vocabulary = Vocabulary.of([["b", "a", "c"], ["b", "a"], ["b"]], least=2)
    assert vocabulary.words == ("b", "a")
    assert len(vocabulary) == 6
    assert vocabulary.encode(["c"], longest=3) == [UNKNOWN, END]


def test_an_empty_vocabulary_is_refused():
    with pytest.raises(ValueError, match="must have a word that occurs at least 5 times"):
        Vocabulary.of([["a", "ball"]], least=5)
