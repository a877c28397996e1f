"""Documents from a folder of text files: plain text or CoNLL-U, gzipped or not."""

import gzip
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from replication.corpora.documents import Document, Sentence

SUFFIXES = (".txt", ".txt.gz", ".conllu", ".conllu.gz")


def read_folder(folder: str | Path, split: str, auxiliaries: Sequence[str] = ()) -> Iterator[Document]:
    """Documents of the files whose name begins with ``split`` (``train.conllu.gz``, ``valid-1.txt``, ...), in name order.

    Plain text: a line is a sentence, whitespace separates words, a file is a document. CoNLL-U: words and universal
    part-of-speech tags (column 4); ``# newdoc`` starts a document.

    Parameters
    ----------
    auxiliaries : sequence of str
        What the language's own tags (column 5) of auxiliary verbs begin with, in a corpus whose universal tags have none for
        them; in the Brown corpus ``["MD", "BE", "HV", "DO"]``. Their words are tagged ``AUX``.

    Raises
    ------
    FileNotFoundError
        If there is no such folder, or no such file in it.
    ValueError
        If a file holds no sentence, is damaged or not UTF-8, a line of CoNLL-U has not ten columns, or ``auxiliaries`` are
        given and a file has none of them.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: no such folder of text files")
    paths = [path for path in sorted(folder.glob(f"{split}*")) if path.name.endswith(SUFFIXES)]
    if not paths:
        raise FileNotFoundError(f"{folder}: no file named {split}* with one of the endings {', '.join(SUFFIXES)}")
    for path in paths:
        empty = True
        try:
            for document in _documents(path, tuple(auxiliaries)):
                empty = False
                yield document
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"{path}: truncated or damaged ({error})") from error
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}: not UTF-8 ({error.reason} at byte {error.start})") from error
        if empty:
            raise ValueError(f"{path}: holds no sentence")


def _documents(path: Path, auxiliaries: tuple[str, ...]) -> Iterator[Document]:
    opener = gzip.open if path.suffix == ".gz" else open
    # Some editors begin a file with a byte-order mark, which is no part of its first word.
    with opener(path, "rt", encoding="utf-8-sig") as file:
        lines = _without_nul(path, file)
        if ".conllu" in path.suffixes:
            yield from _parse_conllu(path, lines, auxiliaries)
        elif sentences := [Sentence(words) for words in map(str.split, lines) if words]:
            yield Document(sentences)


def _without_nul(path: Path, lines: Iterable[str]) -> Iterator[str]:
    """The lines; raises ``ValueError`` at one with a NUL, which no text has."""
    for number, line in enumerate(lines, start=1):
        if "\0" in line:
            raise ValueError(f"{path}, line {number}: holds a NUL byte; is it text in UTF-8?")
        yield line


def _parse_conllu(path: Path, lines, auxiliaries: tuple[str, ...]) -> Iterator[Document]:
    found = False
    sentences: list[Sentence] = []
    words: list[str] = []
    tags: list[str] = []

    def end_sentence():
        if words:
            sentences.append(Sentence(words.copy(), tags.copy()))
            words.clear(), tags.clear()

    for number, line in enumerate(map(str.rstrip, lines), start=1):
        if line.startswith("# newdoc"):
            end_sentence()
            if sentences:
                yield Document(sentences)
                sentences = []
        elif not line:
            end_sentence()
        elif not line.startswith("#"):
            columns = line.split("\t")
            if len(columns) != 10:
                raise ValueError(f"{path}, line {number}: {len(columns)} columns, CoNLL-U has 10")
            if columns[0].isdigit():  # neither a multiword range (1-2) nor an empty node (1.1)
                words.append(columns[1])
                auxiliary = columns[4].startswith(auxiliaries)
                found |= auxiliary
                tags.append("AUX" if auxiliary else columns[3])
    end_sentence()
    if sentences:
        yield Document(sentences)
    if auxiliaries and not found:
        raise ValueError(
            f"{path}: no tag in column 5 begins with {' or '.join(auxiliaries)}, as those of auxiliaries should"
        )
