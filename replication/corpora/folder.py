"""Documents from a folder of text files: plain text or CoNLL-U, gzipped or not."""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from replication.corpora.documents import Document, Sentence
from replication.corpora.text_files import read_lines
from replication.files.texts import ANY_ENDING, renaming, text_files, with_other_ending

#: Universal tags of a word that can be an underscore itself, which is how CoNLL-U writes a missing value.
UNDERSCORES = ("PUNCT", "SYM", "X")
#: Column 1 of words, and of the rows that are no words: multiword ranges (1-2) and empty nodes (1.1).
WORD, NO_WORD = re.compile("[0-9]+"), re.compile("[0-9]+[-.][0-9]+")
NEW_DOCUMENT = re.compile(r"#\s*newdoc\b")


def read_folder(folder: str | Path, split: str, auxiliaries: Sequence[str] = ()) -> Iterator[Document]:
    """Yield the documents of all files whose name begins with ``split``, in the order of their names.

    In plain text, a line is a sentence, whitespace separates words, and a file is a document. CoNLL-U gives words and
    universal part-of-speech tags (column 4), and ``# newdoc`` starts a document. A word whose tag is ``_`` has none. Only
    multiword ranges (1-2) and empty nodes (1.1) are left out.

    Parameters
    ----------
    folder : str or Path
        Folder with files such as ``train.conllu.gz`` or ``valid-1.txt``.
    split : str
        Beginning of the file names.
    auxiliaries : sequence of str
        Prefixes of the language-specific tags (column 5) of auxiliary verbs, for a corpus whose universal tags do not mark
        them; in the Brown corpus ``["MD", "BE", "HV", "DO"]``. Their words are tagged ``AUX``.

    Raises
    ------
    FileNotFoundError
        If there is no such folder, or no such file in it.
    ValueError
        If two files have the same text or only some are annotated, a file has no sentence, is damaged or not UTF-8, a line of
        CoNLL-U has not ten columns, no number or no word, or ``auxiliaries`` are given and none occurs in a file.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: no such folder of text files")
    paths = text_files(folder, split)
    if not paths:
        found = renaming(folder, split) or with_other_ending(folder, split)
        raise FileNotFoundError(f"{folder}: no file named {split}* {ANY_ENDING}{found}")
    for path in paths:
        empty = True
        for document in _documents(path, tuple(auxiliaries)):
            empty = False
            yield document
        if empty:
            raise ValueError(f"{path}: contains no sentence")


def _documents(path: Path, auxiliaries: tuple[str, ...]) -> Iterator[Document]:
    # Files of old Macs end their lines in a carriage return alone.
    lines = (part for line in read_lines(path) for part in line.removesuffix("\r").split("\r"))
    if ".conllu" in path.suffixes:
        yield from _parse_conllu(path, lines, auxiliaries)
    elif sentences := [Sentence(words) for words in map(str.split, lines) if words]:
        yield Document(sentences)


def _parse_conllu(path: Path, lines: Iterable[str], auxiliaries: tuple[str, ...]) -> Iterator[Document]:
    has_auxiliary = False
    sentences: list[Sentence] = []
    words: list[str] = []
    tags: list[str] = []

    def end_sentence():
        if words:
            sentences.append(Sentence(words.copy(), tags.copy() if any(tags) else []))
            words.clear(), tags.clear()

    for number, line in enumerate(lines, start=1):
        if NEW_DOCUMENT.match(line):
            end_sentence()
            if sentences:
                yield Document(sentences)
                sentences = []
        elif not line.strip():
            end_sentence()
        elif not line.startswith("#"):
            columns = line.split("\t")
            if len(columns) != 10:
                raise ValueError(f"{path}, line {number}: CoNLL-U must have 10 columns, got {len(columns)}")
            row, form, tag, own_tag = (columns[column].strip() for column in (0, 1, 3, 4))
            if WORD.fullmatch(row):
                if form in ("", "_") and tag not in UNDERSCORES:
                    raise ValueError(
                        f"{path}, line {number}: must have a word in column 2, got {columns[1]!r}; treebanks released without "
                        "their words must be merged with the text first"
                    )
                words.append(form or "_")
                is_auxiliary = own_tag.startswith(auxiliaries)
                has_auxiliary |= is_auxiliary
                tags.append("AUX" if is_auxiliary else "" if tag == "_" else tag)
            elif not NO_WORD.fullmatch(row):
                raise ValueError(
                    f"{path}, line {number}: column 1 must be a word's number, a range such as 1-2 or an empty node such as "
                    f"1.1, got {columns[0]!r}"
                )
    end_sentence()
    if sentences:
        yield Document(sentences)
    if auxiliaries and not has_auxiliary:
        raise ValueError(
            f"{path}: no tag in column 5 begins with {' or '.join(auxiliaries)}; check the key `auxiliaries`"
        )
