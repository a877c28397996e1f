"""Parallel text on disk: a file per language and split ("train.en", "train.de"), a sentence per line."""

from collections.abc import Iterable
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

from replication.corpora.text_files import read_lines
from replication.files.storage import replacing
from replication.files.texts import ALIASES, aligned_file


def write_parallel(folder: str | Path, split: str, lines: dict[str, Iterable[str]]) -> None:
    """Write ``<split>.<language>`` for every language in UTF-8, with single spaces between words.

    Either all files are written or none.

    Raises
    ------
    ValueError
        If the languages differ in their number of lines, there is no line, or a line is empty or contains a line break.
    """
    folder = Path(folder)
    texts = {folder / f"{split}.{language}": list(text) for language, text in lines.items()}
    for path, text in texts.items():
        for number, line in enumerate(text, start=1):
            if not line.strip() or "\n" in line or "\r" in line:
                raise ValueError(f"{path}, line {number}: must be one line of text, got {line!r}")
    _check_counts(texts)
    with ExitStack() as stack:
        for path, text in texts.items():
            temporary = stack.enter_context(replacing(path))
            temporary.write_bytes("".join(" ".join(line.split()) + "\n" for line in text).encode())


def read_parallel(folder: str | Path, split: str, languages: Iterable[str]) -> dict[str, list[str]]:
    """Return the lines of ``<split>.<language>`` or ``<split>.<language>.gz`` by language.

    The files of the split "valid" may also be named "val" or "dev".

    Raises
    ------
    FileNotFoundError
        If there is no such folder, or no file for one of the languages in it.
    ValueError
        If the files differ in their number of lines, a line is empty, a file is empty, damaged or not UTF-8, or a split has
        several files in a language, such as ``valid.en`` and ``dev.en`` or ``valid.en.gz``.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: no such folder of parallel text")
    paths = _find(folder, split, list(languages))
    texts = {path: _read(path) for path in paths.values()}
    _check_counts(texts)
    return {language: texts[path] for language, path in paths.items()}


def _find(folder: Path, split: str, languages: list[str]) -> dict[str, Path]:
    """Return the file of every language, all under one name of the split."""
    names = ALIASES.get(split, (split,))
    for language in languages:
        aligned_file(folder, [f"{name}.{language}" for name in names])
    paths_by_name = {name: _paths(folder, name) for name in names}
    for paths in paths_by_name.values():
        if paths.keys() >= set(languages):
            return {language: paths[language] for language in languages}
    present = "; ".join(f"{name}: {', '.join(sorted(paths))}" for name, paths in paths_by_name.items() if paths)
    needed = ", ".join(f"{split}.{language}" for language in languages)
    raise FileNotFoundError(f"{folder}: lacks some of {needed} (languages there: {present or 'none'})")


def _paths(folder: Path, name: str) -> dict[str, Path]:
    """Return the files of a split by language."""
    return {path.name[len(name) + 1 :].removesuffix(".gz"): path for path in sorted(folder.glob(f"{name}.*"))}


def _read(path: Path) -> list[str]:
    # An empty file is one empty line.
    lines = [line.strip() for line in read_lines(path)] or [""]
    if "" in lines:
        raise ValueError(f"{path}, line {lines.index('') + 1}: must be a sentence, got an empty line")
    return lines


def _check_counts(texts: dict[Path, list[str]]) -> None:
    """Raise ``ValueError`` if a line has no counterpart, or there is no line."""
    for (left_path, left), (right_path, right) in pairwise(texts.items()):
        if len(left) == len(right):
            continue
        counts = f"{left_path} has {len(left)} lines, {right_path} has {len(right)}"
        longer_path, longer = (left_path, left) if len(left) > len(right) else (right_path, right)
        unmatched = min(len(left), len(right))
        raise ValueError(
            f"{counts}: line {unmatched + 1} of {longer_path.name} has no counterpart: {longer[unmatched]!r}"
        )
    if not any(texts.values()):
        raise ValueError(f"{', '.join(map(str, texts)) or 'parallel text'}: no lines")
