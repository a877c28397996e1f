"""Parallel text on disk: what is written comes back, and whatever is wrong is named with its file."""

import gzip

import pytest

from replication.corpora.parallel import read_parallel, write_parallel

LINES = {"en": ["A dog .", "Two cats .", "No !"], "de": ["Ein Hund .", "Zwei Katzen .", "Nein !"]}


def put(path, *lines: str, end: str = "\n") -> None:
    path.write_text("\n".join(lines) + end, encoding="utf-8")


@pytest.fixture
def folder(tmp_path):
    write_parallel(tmp_path, "train", LINES)
    return tmp_path


def test_what_is_written_comes_back(folder):
    assert read_parallel(folder, "train", ("en", "de")) == LINES
    assert list(read_parallel(folder, "train", ("de", "en"))) == ["de", "en"]
    assert (folder / "train.de").read_bytes() == b"Ein Hund .\nZwei Katzen .\nNein !\n"
    assert sorted(path.name for path in folder.iterdir()) == ["train.de", "train.en"]


def test_words_are_joined_by_single_spaces(tmp_path):
    write_parallel(tmp_path, "train", {"fr": ["  l'  été\t. "]})
    assert (tmp_path / "train.fr").read_text(encoding="utf-8") == "l' été .\n"


def test_compressed_files_are_read_and_a_plain_one_beside_them_is_refused(folder):
    (folder / "test.en.gz").write_bytes(gzip.compress("É .\nb\n".encode()))
    put(folder / "test.de", "x", "y")
    assert read_parallel(folder, "test", ("en", "de")) == {"en": ["É .", "b"], "de": ["x", "y"]}
    put(folder / "test.en", "plain", "text")
    with pytest.raises(ValueError, match=r"has both test\.en and test\.en\.gz; remove one of them"):
        read_parallel(folder, "test", ("en",))


def test_two_names_of_the_validation_split_are_refused(folder):
    put(folder / "dev.en", "yes")
    put(folder / "valid.en", "no")
    with pytest.raises(ValueError, match=r"has both valid\.en and dev\.en; remove one of them"):
        read_parallel(folder, "valid", ("en",))


@pytest.mark.parametrize("name", ["valid", "val", "dev"])
def test_validation_goes_by_three_names(folder, name):
    put(folder / f"{name}.en", "yes")
    assert read_parallel(folder, "valid", ("en",)) == {"en": ["yes"]}


def test_a_split_is_not_mixed_from_two_names(folder):
    put(folder / "valid.en", "one")
    put(folder / "val.de", "eins")
    with pytest.raises(FileNotFoundError, match=r"lacks some of valid.en, valid.de .*valid: en; val: de"):
        read_parallel(folder, "valid", ("en", "de"))


def test_a_last_line_needs_no_end_and_separators_in_a_line_are_text(tmp_path):
    put(tmp_path / "train.en", "a\u2028b", "c\x85d", end="")
    assert read_parallel(tmp_path, "train", ("en",))["en"] == ["a\u2028b", "c\x85d"]


def test_windows_line_ends(tmp_path):
    (tmp_path / "train.en").write_bytes(b"a\r\nb\r\n")
    assert read_parallel(tmp_path, "train", ("en",)) == {"en": ["a", "b"]}


def test_a_missing_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere: no such folder"):
        read_parallel(tmp_path / "nowhere", "train", ("en",))


def test_a_missing_language_names_those_that_are_there(folder):
    with pytest.raises(FileNotFoundError, match=r"train.en, train.fr .*there: train: de, en\)"):
        read_parallel(folder, "train", ("en", "fr"))
    with pytest.raises(FileNotFoundError, match="languages there: none"):
        read_parallel(folder, "test", ("en",))


def test_unaligned_files_show_the_line_without_a_counterpart(folder):
    put(folder / "train.de", "Ein Hund .", "Zwei Katzen .")
    message = "train.en has 3 lines, .*train.de has 2: line 3 of train.en has no counterpart: 'No !'"
    with pytest.raises(ValueError, match=message):
        read_parallel(folder, "train", ("en", "de"))
    with pytest.raises(ValueError, match=r"line 3 of train.en has no counterpart"):
        read_parallel(folder, "train", ("de", "en"))


@pytest.mark.parametrize(("content", "number"), [(b"a\n\nb\n", 2), (b"a\n  \n", 2), (b"", 1), (b"a\n\n", 2)])
def test_an_empty_line(tmp_path, content, number):
    (tmp_path / "train.en").write_bytes(content)
    with pytest.raises(ValueError, match=f"train.en, line {number}: must be a sentence"):
        read_parallel(tmp_path, "train", ("en",))


def test_invalid_utf_8(tmp_path):
    (tmp_path / "train.en").write_bytes("fine\nété\n".encode("latin-1"))
    with pytest.raises(ValueError, match=r"train.en, line 2: not UTF-8"):
        read_parallel(tmp_path, "train", ("en",))


@pytest.mark.parametrize("damage", [b"not gzip", gzip.compress(b"a\nb\n" * 100)[:-12]], ids=["no archive", "truncated"])
def test_a_damaged_archive(tmp_path, damage):
    (tmp_path / "train.en.gz").write_bytes(damage)
    with pytest.raises(ValueError, match=r"train.en.gz: truncated or damaged"):
        read_parallel(tmp_path, "train", ("en",))


@pytest.mark.parametrize("line", ["", "  ", "two\nlines", "two\rlines"])
def test_a_line_that_would_not_come_back_is_not_written(tmp_path, line):
    with pytest.raises(ValueError, match=r"train.en, line 2: must be one line of text"):
        write_parallel(tmp_path, "train", {"en": ["fine", line], "de": ["gut", "gut"]})
    assert list(tmp_path.iterdir()) == []


def test_unequal_texts_are_not_written(tmp_path):
    with pytest.raises(ValueError, match="has no counterpart: 'zwei'"):
        write_parallel(tmp_path, "train", {"en": ["one"], "de": ["eins", "zwei"]})
    with pytest.raises(ValueError, match="no lines"):
        write_parallel(tmp_path, "train", {"en": [], "de": []})
    assert list(tmp_path.iterdir()) == []


def test_a_failure_leaves_the_old_files(folder, monkeypatch):
    old = {path.name: path.read_bytes() for path in folder.iterdir()}

    def words():
        yield "A"
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_parallel(folder, "train", {"en": ["A"], "de": words()})
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == old
