"""The corpus in several languages: its splits, its documents, and what it shares with the English one."""

from itertools import groupby, islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replication.corpora.alignment import align
from replication.corpora.grammar.corpus import write_documents
from replication.corpora.grammar.translations import LANGUAGES, write_translations
from replication.corpora.sources import read_parallel_splits

SIZES = {"train": 600, "valid": 100, "test": 100}


@pytest.fixture(scope="module")
def corpus():
    return write_translations(SIZES, seed=3)


def test_splits_have_their_size_in_whole_documents(corpus):
    assert list(corpus) == list(SIZES)
    for split, size in SIZES.items():
        assert size <= len(corpus[split]) < size + 20
        numbers = [number for number, _ in groupby(one.document for one in corpus[split])]
        assert numbers == list(range(len(numbers)))


def test_splits_share_no_source_sentence(corpus):
    found = {split: {tuple(one.sentences["en"].words) for one in several} for split, several in corpus.items()}
    for split in SIZES:
        for other in SIZES:
            assert split == other or found[split].isdisjoint(found[other])


def test_every_sentence_is_in_every_language_and_can_be_aligned(corpus):
    for several in corpus.values():
        for one in several:
            assert tuple(one.sentences) == LANGUAGES
            assert align(one.sentences["de"], one.sentences["fr"])


def test_the_smallest_split_is_the_beginning_of_the_english_corpus(corpus):
    first = [sentence.words for document in islice(write_documents(3), 4) for sentence in document.sentences]
    assert [one.sentences["en"].words for one in corpus["valid"]][: len(first)] == first


@given(seed=st.integers(0, 2**32))
@settings(max_examples=5, deadline=None)
def test_a_seed_is_a_text(seed):
    first, again, other = (write_translations({"train": 20}, number) for number in (seed, seed, seed + 1))
    assert first == again
    assert first != other


def test_the_choice_of_languages_changes_no_text():
    two = write_translations({"train": 50}, 5, ("en", "fr"))["train"]
    three = write_translations({"train": 50}, 5)["train"]
    assert [one.sentences for one in two] == [{key: one.sentences[key] for key in ("en", "fr")} for one in three]


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="languages: es not among en, de, fr"):
        write_translations({"train": 10}, 0, ("en", "es"))
    with pytest.raises(ValueError, match="languages: choose some of"):
        write_translations({"train": 10}, 0, ())
    with pytest.raises(ValueError, match="`sentences` must be positive, got 0 for valid"):
        write_translations({"train": 10, "valid": 0}, 0)


def test_a_section_of_the_configuration_finds_it():
    section = {"source": "grammar", "sentences": {"train": 40, "valid": 10}, "seed": 3}
    found = read_parallel_splits(section, ["train", "valid"], ["en", "de"])
    written = write_translations({"train": 40, "valid": 10}, 3, ("en", "de"))
    for split, pairs in written.items():
        for language in ("en", "de"):
            assert found[split][language] == [" ".join(pair.sentences[language].words) for pair in pairs]
