"""Sentences of one document joined into blocks: nothing lost, nothing too long, no document crossed."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replication.corpora.document_blocks import cut_into_blocks, join_sentences
from replication.corpora.sources import read_block_sentences, read_document_blocks, read_parallel_splits

BIBLE = {"source": "bible", "valid": ["Titus"], "test": ["Philemon"]}

sentences = st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6), st.booleans()), max_size=12)


def text(lengths):
    """Sentences of numbered words, and their documents."""
    lines = {
        side: [" ".join(f"{side}{n}.{w}" for w in range(one[place])) for n, one in enumerate(lengths)]
        for place, side in enumerate(("fr", "en"))
    }
    documents, number = [], 0
    for _, _, new in lengths:
        number += new
        documents.append(number)
    return lines, documents


@given(sentences, st.integers(1, 15))
def test_blocks_are_the_text_cut_where_it_must_be(lengths, words):
    lines, documents = text(lengths)
    blocks = join_sentences(cut_into_blocks(lines, documents, words))
    of_word = {word: n for n, line in enumerate(lines["en"]) for word in line.split()}
    for side in lines:
        assert " ".join(blocks[side]).split() == " ".join(lines[side]).split()
    numbers = [[*dict.fromkeys(of_word[word] for word in block.split())] for block in blocks["en"]]
    for block, (fr, en) in zip(numbers, zip(blocks["fr"], blocks["en"], strict=True), strict=True):
        assert len({documents[n] for n in block}) == 1
        assert len(block) == 1 or max(len(fr.split()), len(en.split())) <= words
    for before, after in pairwise(numbers):
        # One sentence more would have been too many words, or of another document.
        joined = [*before, after[0]]
        too_long = any(sum(len(lines[side][n].split()) for n in joined) > words for side in lines)
        assert too_long or documents[before[-1]] != documents[after[0]]


def test_an_example():
    lines = {"fr": ["a b", "c", "d", "e f g h"], "en": ["A", "B C", "D", "E"]}
    blocks = cut_into_blocks(lines, [0, 0, 1, 1], 3)
    assert blocks == {"fr": [["a b", "c"], ["d"], ["e f g h"]], "en": [["A", "B C"], ["D"], ["E"]]}
    assert join_sentences(blocks) == {"fr": ["a b c", "d", "e f g h"], "en": ["A B C", "D", "E"]}


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="words"):
        cut_into_blocks({"fr": ["a"]}, [0], 0)
    with pytest.raises(ValueError, match="got 2 numbers for 1 sentences of fr"):
        cut_into_blocks({"fr": ["a"]}, [0, 0], 5)


def test_blocks_are_whole_chapters_where_they_fit():
    single = read_parallel_splits(BIBLE, ["valid", "test"], ["grc", "en"])
    whole = read_document_blocks(BIBLE, ["valid", "test"], ["grc", "en"], 10_000)
    for split, sides in whole.items():
        assert len(sides["grc"]) == {"valid": 3, "test": 1}[split]
        for side in sides:
            assert " ".join(sides[side]) == " ".join(single[split][side])


def test_blocks_hold_the_sentences_of_the_split_in_their_order():
    single = read_parallel_splits(BIBLE, ["valid", "test"], ["grc", "en"])
    blocks = read_block_sentences(BIBLE, ["valid", "test"], ["grc", "en"], 40)
    for split, sides in blocks.items():
        assert [len(block) for block in sides["grc"]] == [len(block) for block in sides["en"]]
        assert max(len(block) for block in sides["grc"]) > 1
        for side in sides:
            assert [sentence for block in sides[side] for sentence in block] == single[split][side]


def test_a_folder_counts_as_one_document(tmp_path):
    (tmp_path / "train.fr").write_text("a b\nc\nd\n")
    (tmp_path / "train.en").write_text("A\nB\nC\n")
    read = read_document_blocks({"source": "folder", "path": str(tmp_path)}, ["train"], ["fr", "en"], 3)
    assert read == {"train": {"fr": ["a b c", "d"], "en": ["A B", "C"]}}
