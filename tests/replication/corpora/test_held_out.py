"""Held-out text that is training text, and lines of places that name no document, are refused by the name of their file."""

import pytest
from command_line import assert_one_line, configure, run, succeed

from profiles import FORMS, MASKED_LM
from replication.char_lm.corpus import read_corpus
from replication.corpora.held_out import check_held_out, hashed
from replication.corpora.sources import read_document_blocks
from replication.files.notes import note

LINES = [f"a line {number}" for number in range(20)]


def write(path, lines):
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.mark.parametrize("known", [LINES, LINES[3:7], LINES[::-1]])
def test_a_validation_text_within_the_training_text_is_refused(tmp_path, known):
    write(tmp_path / "train.txt", LINES)
    write(tmp_path / "valid.txt", known)
    configure(tmp_path, masked_lm=MASKED_LM | {"corpus": {"source": "folder", "path": str(tmp_path)}})
    done = run(tmp_path, "corpus", "masked_lm")
    assert_one_line(done, f"{tmp_path}: the valid split must be other text than the training split")
    write(tmp_path / "valid.txt", [*known, "another line"])
    succeed(tmp_path, "corpus", "masked_lm")


@pytest.mark.parametrize("split", ["valid", "test"])
def test_aligned_text_within_the_training_text_is_refused(tmp_path, split):
    for language in ("en", "fr"):
        write(tmp_path / f"train.{language}", LINES)
        write(tmp_path / f"valid.{language}", ["this"])
        write(tmp_path / f"test.{language}", ["that"])
        write(tmp_path / f"{split}.{language}", LINES[5:])
    section = FORMS["sentences"] | {"corpus": {"fr-en": {"source": "folder", "path": str(tmp_path)}}}
    configure(tmp_path, forms={"sentences": section})
    done = run(tmp_path, "parallel-corpus", "forms/sentences/fr-en")
    assert_one_line(done, f"{tmp_path}: the {split} split must be other text than the training split")


@pytest.mark.parametrize("split", ["valid", "test"])
def test_characters_within_the_training_text_are_refused(tmp_path, split):
    for name in ("train", "valid", "test"):
        write(tmp_path / f"{name}.txt", LINES if name in ("train", split) else ["other"])
    with pytest.raises(
        ValueError, match=rf"the {split} split \({split}.txt\) must be other text than the training split"
    ):
        read_corpus({"source": "text", "path": str(tmp_path)})


def test_repeated_sentences_are_no_leak_but_many_are_told(capsys):
    note.cache_clear()
    check_held_out("valid", ["Amen", *LINES], hashed(["Amen", "another"]), "here")
    assert not capsys.readouterr().err
    check_held_out("valid", LINES, hashed(LINES[:5]), "here")
    assert "here: 25% of the valid split's sentences" in capsys.readouterr().err


@pytest.mark.parametrize("place", ["Genesis 13", "1", ":1", " : 2"])
def test_a_place_that_names_no_document_is_refused(tmp_path, place):
    for name, lines in {"en": LINES[:2], "fr": LINES[:2], "verses": ["Genesis 1:1", place]}.items():
        write(tmp_path / f"train.{name}", lines)
    source = {"source": "folder", "path": str(tmp_path), "documents": "verses"}
    with pytest.raises(ValueError, match=r"train\.verses, line 2: must be a document, a colon and a place"):
        read_document_blocks(source, ["train"], ["en", "fr"], 50)
