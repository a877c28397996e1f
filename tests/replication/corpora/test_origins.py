"""Errors about a text name the user's file, not only the run's."""

import pytest
from command_line import assert_one_line, configure, run, succeed

from profiles import FORMS, MASKED_LM, PATTERNS


def write(path, *lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


@pytest.mark.parametrize("short", ["train", "valid"])
def test_a_text_that_is_too_short_is_named(tmp_path, short):
    texts = tmp_path / "mine"
    texts.mkdir()
    for split in ("train", "valid"):
        write(
            texts / f"{split}.txt",
            f"a text to {split}",
            *(f"line {number}" for number in range(9 if split == short else 999)),
        )
    section = MASKED_LM | {"corpus": {"source": "folder", "path": str(texts)}, "length": 128}
    configure(tmp_path, masked_lm=section)
    succeed(tmp_path, "corpus", "masked_lm")
    done = run(tmp_path, "tokenize", "masked_lm")
    assert_one_line(done, f"(the text of {texts / short}.txt)")


def test_a_word_that_cannot_be_cut_is_named(tmp_path):
    for split in ("train", "val", "test"):
        write(tmp_path / f"{split}.en", f"some words to {split}", "more words")
        write(tmp_path / f"{split}.fr", f"des mots pour {split}", "autres@@ mots" if split == "val" else "autres mots")
    corpus = {"fr-en": {"source": "folder", "path": str(tmp_path)}}
    configure(tmp_path, forms={"sentences": FORMS["sentences"] | {"corpus": corpus, "words": "spaces"}})
    succeed(tmp_path, "parallel-corpus", "forms/sentences/fr-en")
    done = run(tmp_path, "binarize", "forms/sentences/fr-en")
    assert_one_line(done, f"(the text of {tmp_path / 'val.fr'})")
    assert ", line 2: " in done.stderr


@pytest.mark.parametrize("name", ["valid.txt", "valid.txt.gz"])
def test_characters_that_are_too_few_are_named(tmp_path, name):
    import gzip

    write(tmp_path / "train.txt", *(f"line {number}" for number in range(300)))
    (tmp_path / name).write_bytes(gzip.compress(b"ab\ncd\n") if name.endswith("gz") else b"ab\ncd\n")
    section = PATTERNS["text"] | {"corpora": {"mine": {"source": "text", "path": str(tmp_path)}}}
    configure(tmp_path, patterns=PATTERNS | {"text": section})
    succeed(tmp_path, "characters", "patterns/text/mine")
    model = next(iter(section["models"]))
    done = run(tmp_path, "train-characters", "patterns/text/mine", model=model, seed=section["seeds"][0])
    assert_one_line(done, str(tmp_path / name))
