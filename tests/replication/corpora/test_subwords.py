"""Subwords against the subword-nmt command line, and text that survives the way there and back."""

import subprocess
import sys

import pytest

from replication.corpora.subwords import cut_into_pieces, join_pieces, learn_codes, load_codes, tokenizer

LINES = ["the lowest lower low", "the newest newer new", "wide wider widest"] * 5


@pytest.fixture
def codes(tmp_path):
    learn_codes(LINES, 6, tmp_path / "codes")
    return tmp_path / "codes"


def test_the_codes_are_those_of_the_command_line(codes, tmp_path):
    (tmp_path / "text").write_text("\n".join(LINES) + "\n")
    command = [sys.executable, "-m", "subword_nmt.learn_bpe", "-s", "6"]
    done = subprocess.run(
        [*command, "-i", str(tmp_path / "text"), "-o", str(tmp_path / "expected")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert codes.read_text() == (tmp_path / "expected").read_text()


def test_pieces_join_to_the_words_they_were_cut_from(codes):
    bpe = load_codes(codes)
    cut = [bpe.process_line(line) for line in LINES]
    assert any("@@ " in line for line in cut)
    assert [join_pieces(line) for line in cut] == LINES


def test_reserved_words_are_cut_so_that_they_stay_text(tmp_path):
    """Merged to one piece, they would be fairseq's control symbols."""
    line = "<s> a <pad> b </s> <unk> <mask>"
    learn_codes([line] * 50, 40, tmp_path / "codes")
    codes = load_codes(tmp_path / "codes")
    assert "<pad>" in codes.process_line(line).split()
    pieces = cut_into_pieces(line, codes)
    assert not set(pieces.split()) & {"<s>", "<pad>", "</s>", "<unk>"}
    assert join_pieces(pieces) == line


def test_a_word_that_ends_in_the_mark_of_subwords_is_refused(codes):
    with pytest.raises(ValueError, match="no word that ends in @@, the mark of subwords, got 'low@@'"):
        cut_into_pieces("the low@@ est", load_codes(codes))


def test_a_hypothesis_that_ends_in_the_middle_of_a_word_is_still_text():
    assert join_pieces("the low@@ est new@@") == "the lowest new"


def test_a_foreign_file_is_no_codes(tmp_path):
    (tmp_path / "codes").write_text("e s\n")
    with pytest.raises(ValueError, match="not codes of subword-nmt"):
        load_codes(tmp_path / "codes")


@pytest.mark.parametrize(
    ("language", "text", "words"),
    [
        ("en", 'He said: "It\'s 5 & 6."', 'He said : " It \'s 5 & 6 . "'),
        ("fr", "L'eau n'est pas là.", "L' eau n' est pas là ."),
        ("de", "Das kostet 3,50 Euro.", "Das kostet 3,50 Euro ."),
        ("fr", "Il monta d’Égypte.", "Il monta d ’ Égypte ."),
    ],
)
def test_moses_sets_words_apart(language, text, words):
    assert tokenizer("moses", language)(text) == words


def test_text_with_spaces_stays_as_it_is():
    assert tokenizer("spaces", "en")("a  b .") == "a b ."
