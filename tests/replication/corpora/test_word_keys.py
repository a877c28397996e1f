"""Word alignment by keys, as Strong's numbers: which words, and which of a tokeniser's, are linked; and documents of verses."""

import re
from itertools import product

import pytest
from command_line import assert_one_line, configure, run, succeed
from hypothesis import given
from hypothesis import strategies as st

from profiles import FORMS
from replication.corpora.alignment import from_pharaoh, link_tokens, linked_by_keys
from replication.corpora.sources import read_alignments, read_document_blocks
from replication.corpora.subwords import tokenizer

PLACE = "forms/sentences/fr-en"
KEYS = st.lists(st.sampled_from(["_", "H1", "H2", "H3", "H4"]), max_size=8)
ENGLISH = ["In the beginning God created", "Don't say: it is over,", "And Lot also had tents."]
FRENCH = ["Au commencement Dieu créa", "Ne dis pas : c'est fini,", "Et Lot aussi, avait des tentes."]
ENGLISH_KEYS = ["_ _ H7225 H430 H1254", "H3808 H559 H1 _ H3615", "_ H3876 H1571 H1 H168"]
FRENCH_KEYS = ["_ H7225 H430 H1254", "H3808 H559 _ _ _ H3615", "_ H3876 H1571 _ _ H168"]


@given(KEYS, KEYS)
def test_linked_are_the_pairs_of_a_key_that_each_side_has_once(source, target):
    pairs = [
        (i, j)
        for i, one in enumerate(source)
        for j, other in enumerate(target)
        if one == other != "_" and source.count(one) == target.count(other) == 1
    ]
    assert linked_by_keys(source, target) == pairs


def test_links_are_of_all_tokens_of_a_word_but_its_punctuation():
    lines = ("« l'arche-sainte, dit", "the ark said.")
    tokens = (["«", "l'", "arche-sainte", ",", "dit"], ["the", "ark", "said", "."])
    assert link_tokens([(1, 1), (2, 2)], lines, tokens) == [(1, 1), (2, 1), (4, 2)]
    with pytest.raises(ValueError, match=re.escape("must have the characters of the line 'the ark', got 'the arc'")):
        link_tokens([], ("l'arche", "the ark"), (["l'", "arche"], ["the", "arc"]))


@pytest.fixture
def verses(tmp_path):
    files = {"en": ENGLISH, "fr": FRENCH, "strongs.en": ENGLISH_KEYS, "strongs.fr": FRENCH_KEYS}
    files["verses"] = ["1 Genesis 1:1", "1 Genesis 1:2", "Exodus 1:2"]
    for ending, lines in files.items():
        (tmp_path / f"test.{ending}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return {"source": "folder", "path": str(tmp_path), "keys": "strongs", "documents": "verses"}


FIRST = "commencement beginning, Dieu God, créa created"
LINKED = {
    "spaces": [FIRST, "Ne Don't, dis say:, fini, over,", "Lot Lot, aussi, also, tentes. tents."],
    "moses": [FIRST, "Ne Don, Ne t, dis say, fini over", "Lot Lot, aussi also, tentes tents"],
}


@pytest.mark.parametrize("words", LINKED)
def test_a_folder_with_keys_is_aligned_in_the_words_of_its_tokeniser(verses, words):
    tokenizers = {language: tokenizer(words, language) for language in ("fr", "en")}
    lines = read_alignments(verses, ["test"], ["fr", "en"], tokenizers)["test"]
    found = []
    for line, french, english in zip(lines, FRENCH, ENGLISH, strict=True):
        source, target = tokenizers["fr"](french).split(), tokenizers["en"](english).split()
        found.append(", ".join(f"{source[i]} {target[j].strip(chr(39))}" for i, j in from_pharaoh(line)))
    assert found == LINKED[words]


@pytest.fixture
def corpus(verses, tmp_path):
    """The folder of the stage's output. Keys are needed of the test split alone."""
    for split, language in product(("train", "valid"), ("fr", "en")):
        (tmp_path / f"{split}.{language}").write_text(f"a line to {split}\n", encoding="utf-8")
    section = FORMS["sentences"] | {"corpus": {"fr-en": verses}, "words": "moses"}
    return configure(tmp_path, forms={"sentences": section}) / PLACE / "corpus"


def test_a_sentence_without_links_is_an_empty_line_of_the_alignment(corpus, tmp_path):
    (tmp_path / "test.strongs.en").write_text(
        "\n".join([ENGLISH_KEYS[0], "_ _ _ _ _", ENGLISH_KEYS[2]]), encoding="utf-8"
    )
    succeed(tmp_path, "parallel-corpus", PLACE)
    lines = (corpus / "test.alignment").read_text(encoding="utf-8").split("\n")
    assert [len(line.split()) for line in lines] == [3, 0, 3, 0]
    assert [path.name for path in corpus.glob("*.alignment")] == ["test.alignment"]


def test_keys_that_are_missing_are_named_in_one_line(corpus, tmp_path):
    (tmp_path / "test.strongs.fr").unlink()
    assert_one_line(run(tmp_path, "parallel-corpus", PLACE), "test.strongs.fr")


def test_a_line_with_other_numbers_of_keys_and_words_is_named(verses, tmp_path):
    (tmp_path / "test.strongs.en").write_text("\n".join([ENGLISH_KEYS[0], "H1 H2", ENGLISH_KEYS[2]]), encoding="utf-8")
    with pytest.raises(
        ValueError, match=r"test\.strongs\.en, line 2: must have a key per word, got 2 keys for 5 words"
    ):
        read_alignments(verses, ["test"], ["fr", "en"], {language: str for language in ("fr", "en")})


def test_verses_of_a_chapter_are_a_document(verses):
    blocks = read_document_blocks(verses, ["test"], ["fr", "en"], 100)["test"]
    assert blocks["en"] == [" ".join(ENGLISH[:2]), ENGLISH[2]]
    del verses["documents"]
    assert read_document_blocks(verses, ["test"], ["fr", "en"], 100)["test"]["en"] == [" ".join(ENGLISH)]
