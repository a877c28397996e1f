"""Where the characters come from, as one section of the configuration says it: training, validation and test text."""

import gzip
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from replication.corpora.documents import Document
from replication.corpora.sources import read_splits

SPLITS = ("train", "valid", "test")


@dataclass(frozen=True)
class Split:
    """The bytes of a split, and in words which part of which file they are."""

    text: bytes
    origin: str


def read_corpus(source: dict) -> dict[str, Split]:
    """The splits train, valid and test.

    Parameters
    ----------
    source : dict
        ``{"source": "grammar", "words": {split: count}, "seed": 0}``, ``{"source": "digits", "images": {split: count},
        "seed": 0}`` (:func:`replication.char_lm.digits.digits`) or ``{"source": "text", "path": ...}``. The path is one
        file (enwik8, text8), which is cut as those are, or a folder of ``train``, ``valid`` and ``test``, each ``.txt`` or
        ``.txt.gz``. If it has no test file, the second half of the validation file is the test, and the first half validates.

    Raises
    ------
    FileNotFoundError
        If the path, or a file of a folder, does not exist.
    ValueError
        If the source is unknown or lacks a key, a file is damaged or in the folder twice, or a split is empty.
    """
    match source:
        case {"source": "grammar", "words": _, "seed": _}:
            documents = read_splits(source, list(SPLITS))
            splits = {name: Split(text_of(documents[name]), "embedded corpus") for name in SPLITS}
        case {"source": "digits", "images": images, "seed": seed}:
            from replication.char_lm.digits import digits  # who has a text need not wait for scikit-learn

            splits = {name: Split(text, "scikit-learn's digits") for name, text in digits(images, seed).items()}
        case {"source": "text", "path": path}:
            splits = _read_folder(Path(path)) if Path(path).is_dir() else _read_file(Path(path))
        case {"source": "grammar" | "digits" | "text" as kind}:
            raise ValueError(
                f"corpus source {kind!r} lacks a key: grammar needs words and seed, digits images and seed, text path"
            )
        case _:
            raise ValueError(f"corpus source {source.get('source')!r} is unknown: it is grammar, digits or text")
    for name, split in splits.items():
        if not split.text:
            raise ValueError(
                f"{source.get('path', 'corpus')}: no characters to make a {name} split of ({split.origin})"
            )
    return splits


def read_text(path: str | Path) -> bytes:
    """The bytes of a file, gzipped or not.

    Raises
    ------
    ValueError
        If a gzipped file is truncated or damaged.
    """
    path = Path(path)
    content = path.read_bytes()
    if path.suffix != ".gz":
        return content
    try:
        return gzip.decompress(content)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path}: truncated or damaged ({error})") from error


def text_of(documents: Iterable[Document]) -> bytes:
    """Documents as running text: a line per sentence, words parted by a space, an empty line between documents."""
    return b"\n".join(
        b"".join(" ".join(sentence.words).encode() + b"\n" for sentence in document.sentences) for document in documents
    )


def split_text(text: bytes) -> dict[str, bytes]:
    """The first 90 % to train, 5 % to validate, the last 5 % to test, as enwik8 and text8 are split (Chung et al. 2017)."""
    first, second = len(text) * 90 // 100, len(text) * 95 // 100
    return {"train": text[:first], "valid": text[first:second], "test": text[second:]}


def _read_file(path: Path) -> dict[str, Split]:
    shares = {"train": "first 90 %", "valid": "next 5 %", "test": "last 5 %"}
    return {name: Split(text, f"{shares[name]} of {path.name}") for name, text in split_text(read_text(path)).items()}


def _read_folder(folder: Path) -> dict[str, Split]:
    paths = {name: _find(folder, name) for name in SPLITS}
    for name in ("train", "valid"):
        if paths[name] is None:
            raise FileNotFoundError(f"{folder}: no {name}.txt or {name}.txt.gz")
    splits = {name: Split(read_text(path), path.name) for name, path in paths.items() if path is not None}
    if "test" not in splits:
        whole = splits["valid"]
        half = len(whole.text) // 2
        splits["valid"] = Split(whole.text[:half], f"first half of {whole.origin}")
        splits["test"] = Split(whole.text[half:], f"second half of {whole.origin}")
    return splits


def _find(folder: Path, name: str) -> Path | None:
    """The file of a split; None if there is none."""
    found = [path for path in (folder / f"{name}.txt", folder / f"{name}.txt.gz") if path.is_file()]
    if len(found) > 1:
        raise ValueError(f"{folder}: both {found[0].name} and {found[1].name}; which of them is meant?")
    return found[0] if found else None
