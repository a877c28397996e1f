"""Parallel text on disk: a file per language and split ("train.en", "train.de"), a sentence per line."""

import codecs
import gzip
import zlib
from collections.abc import Iterable
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

from replication.files.storage import replacing

#: What the files of a split may be called, besides the name of the split.
_ALIASES = {"valid": ("valid", "val", "dev")}


def write_parallel(folder: str | Path, split: str, lines: dict[str, Iterable[str]]) -> None:
    """Write ``<split>.<language>`` for every language: UTF-8, words joined by single spaces. All files or none.

    Raises
    ------
    ValueError
        If the languages differ in their number of lines, there is none, or a line is empty or more than one line.
    """
    folder = Path(folder)
    texts = {folder / f"{split}.{language}": list(text) for language, text in lines.items()}
    for path, text in texts.items():
        for number, line in enumerate(text, start=1):
            if not line.strip() or "\n" in line or "\r" in line:
                raise ValueError(f"{path}, line {number}: not one line of text: {line!r}")
    _check_counts(texts)
    with ExitStack() as stack:
        for path, text in texts.items():
            temporary = stack.enter_context(replacing(path))
            temporary.write_bytes("".join(" ".join(line.split()) + "\n" for line in text).encode())


def read_parallel(folder: str | Path, split: str, languages: Iterable[str]) -> dict[str, list[str]]:
    """The lines of ``<split>.<language>`` or ``<split>.<language>.gz``; the split "valid" may also be "val" or "dev".

    Raises
    ------
    FileNotFoundError
        If there is no such folder, or no file for one of the languages in it.
    ValueError
        If the files differ in their number of lines, one holds an empty line or none, or is damaged or not UTF-8.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: no such folder of parallel text")
    paths = _find(folder, split, list(languages))
    texts = {path: _read(path) for path in paths.values()}
    _check_counts(texts)
    return {language: texts[path] for language, path in paths.items()}


def _find(folder: Path, split: str, languages: list[str]) -> dict[str, Path]:
    """The file of every language, all under one name of the split."""
    names = _ALIASES.get(split, (split,))
    for name in names:
        path_of = _languages(folder, name)
        if path_of.keys() >= set(languages):
            return {language: path_of[language] for language in languages}
    languages_of = {name: sorted(_languages(folder, name)) for name in names}
    present = "; ".join(f"{name}: {', '.join(found)}" for name, found in languages_of.items() if found)
    asked_for = ", ".join(f"{split}.{language}" for language in languages)
    raise FileNotFoundError(f"{folder}: lacks some of {asked_for} (languages there: {present or 'none'})")


def _languages(folder: Path, name: str) -> dict[str, Path]:
    """The files of a split by language; plain text goes before compressed."""
    compressed = {path.name[len(name) + 1 : -3]: path for path in sorted(folder.glob(f"{name}.*.gz"))}
    plain = {path.name[len(name) + 1 :]: path for path in sorted(folder.glob(f"{name}.*")) if path.suffix != ".gz"}
    return compressed | plain


def _read(path: Path) -> list[str]:
    content = path.read_bytes()
    if path.suffix == ".gz":
        try:
            content = gzip.decompress(content)
        except (EOFError, OSError, zlib.error) as error:
            raise ValueError(f"{path}: truncated or damaged ({error})") from error
    lines = []
    # Some editors begin a file with a byte-order mark, which is no part of its first word.
    content = content.removeprefix(codecs.BOM_UTF8).removesuffix(b"\n")
    for number, line in enumerate(content.split(b"\n"), start=1):
        try:
            lines.append(line.decode().strip())
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}, line {number}: not UTF-8 ({error.reason})") from error
        if not lines[-1]:
            raise ValueError(f"{path}, line {number}: empty")
        if "\0" in lines[-1]:
            raise ValueError(f"{path}, line {number}: holds a NUL byte; is it text in UTF-8?")
    return lines


def _check_counts(texts: dict[Path, list[str]]) -> None:
    """Raises ValueError where a line has no counterpart."""
    for (one, first), (other, second) in pairwise(texts.items()):
        if len(first) == len(second):
            continue
        counts = f"{one} has {len(first)} lines, {other} has {len(second)}"
        longer, text = (one, first) if len(first) > len(second) else (other, second)
        unmatched = min(len(first), len(second))
        raise ValueError(f"{counts}: line {unmatched + 1} of {longer.name} has no counterpart: {text[unmatched]!r}")
    if not any(texts.values()):
        raise ValueError(f"{', '.join(map(str, texts)) or 'parallel text'}: no lines")
