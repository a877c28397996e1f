"""A user's own files that a section of the configuration names: the inputs of the stage that reads them, and their content."""

import hashlib
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from replication.config import Section
from replication.config.folders import aligned_names
from replication.files.texts import aligned_file, symbol_file, text_files


def files_of(corpus: Section, splits: Sequence[str], languages: Sequence[str] = ()) -> list[Path]:
    """Return the files that a corpus is read from; none if its text comes from a package, a generator or the hub.

    Parameters
    ----------
    corpus : Section
        The corpus.
    splits : sequence of str
        Splits to read.
    languages : sequence of str
        Languages of aligned text.
    """
    match corpus.source:
        case "folder" if languages:
            paths = [aligned_file(corpus.path, names) for names in aligned_names(languages, corpus, splits)]
            return [path for path in paths if path is not None]
        case "folder":
            return [path for split in splits for path in text_files(corpus.path, split)]
        case "text" if Path(corpus.path).is_dir():
            return [path for split in splits if (path := symbol_file(corpus.path, split)) is not None]
        case "text":
            return [Path(corpus.path)]
        case "karpathy":
            return [Path(corpus.captions)]
        case "hub":
            return files_in(corpus.name)
    return []


def files_in(name: str | None) -> list[Path]:
    """Return all files of a local model or data set; none without a name, or for one on the hub or in a package."""
    if not name:
        return []
    return sorted(path for path in Path(name).rglob("*") if path.is_file()) if Path(name).is_dir() else []


def content_of(paths: Iterable[Path]) -> str:
    """Return a hash of files' paths and bytes, or an empty string without files."""
    digests = [f"{path} {_digest(path, path.stat().st_mtime_ns)}" for path in paths]
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()[:16] if digests else ""


@cache
def _digest(path: Path, modified: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
