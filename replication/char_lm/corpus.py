"""Characters as a section of the configuration names them: training, validation and test text."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from replication.corpora.documents import Document
from replication.corpora.sources import read_splits
from replication.corpora.text_files import open_bytes
from replication.files.books import books_of
from replication.files.texts import symbol_file

SPLITS = ("train", "valid", "test")
#: Pixels of a side, and symbols of a digit: the start symbol, then all pixels.
DIGIT_SIDE, DIGIT_RECORD = 8, 65
#: Start symbol of a digit; its pixels are 0 to 16.
DIGIT_START = 17


@dataclass(frozen=True)
class Split:
    """The bytes of a split, and a description of the part of a file that they come from."""

    text: bytes
    origin: str


def read_corpus(source: dict) -> dict[str, Split]:
    """Return the splits train, valid and test.

    Parameters
    ----------
    source : dict
        ``{"source": "bible", "train": [book, ...], "valid": [book, ...], "test": [book, ...]}``,
        ``{"source": "digits", "images": {split: count}, "seed": 0}`` (:func:`digits`) or ``{"source": "text", "path": ...}``.
        The path is one file (enwik8, text8), which :func:`split_text` cuts, or a folder of ``train``, ``valid`` and ``test``,
        each ``.txt`` or ``.txt.gz``. Without a test file, the first half of the validation file is the validation split and the
        second half the test split.

    Raises
    ------
    FileNotFoundError
        If the path, or a file of a folder, does not exist.
    ValueError
        If the source is unknown or lacks a key, a file is damaged or in the folder twice, a split is empty, or the training
        split contains all of another.
    """
    match source:
        case {"source": "bible", "valid": _, "test": _}:
            documents, books = read_splits(source, list(SPLITS)), books_of(source)
            splits = {
                name: Split(text_of(documents[name]), f"{len(books[name])} books of the Bible") for name in SPLITS
            }
        case {"source": "digits", "images": images, "seed": seed}:
            splits = {name: Split(text, "scikit-learn's digits") for name, text in digits(images, seed).items()}
        case {"source": "text", "path": path}:
            splits = _read_folder(Path(path)) if Path(path).is_dir() else _read_file(Path(path))
        case {"source": "bible" | "digits" | "text" as kind}:
            raise ValueError(
                f"`source` {kind!r} lacks a key: bible needs `valid` and `test`, digits `images` and `seed`, and "
                "text `path`"
            )
        case _:
            raise ValueError(f"`source` must be bible, digits or text, got {source.get('source')!r}")
    for name, split in splits.items():
        if not split.text:
            raise ValueError(f"{source.get('path', 'corpus')}: the {name} split ({split.origin}) has no characters")
    training = splits["train"].text
    for name in ("valid", "test"):
        if source["source"] == "text" and splits[name].text.strip() in training:
            raise ValueError(
                f"{source['path']}: the {name} split ({splits[name].origin}) must be other text than the training split "
                f"({splits['train'].origin}), which contains all of it"
            )
    return splits


def read_text(path: str | Path) -> bytes:
    """Return the bytes of a file, gzipped or not.

    Raises
    ------
    ValueError
        If a gzipped file is truncated or damaged.
    """
    with open_bytes(Path(path)) as file:
        return file.read()


def text_of(documents: Iterable[Document]) -> bytes:
    """Return documents as text: a line per sentence, spaces between words, and an empty line between documents."""
    return b"\n".join(
        b"".join(" ".join(sentence.words).encode() + b"\n" for sentence in document.sentences) for document in documents
    )


def split_text(text: bytes) -> dict[str, bytes]:
    """Split a text into 90 % training, 5 % validation and 5 % test, the split of enwik8 and text8 (Chung et al. 2017)."""
    first, second = len(text) * 90 // 100, len(text) * 95 // 100
    return {"train": text[:first], "valid": text[first:second], "test": text[second:]}


def digits(images: Mapping[str, int], seed: int) -> dict[str, bytes]:
    """Return handwritten digits as text: per image :data:`DIGIT_START`, then 8 by 8 pixels of 17 grey levels, row by row.

    They are the 1,797 test images of the UCI set, which scikit-learn contains.

    Parameters
    ----------
    images : mapping
        Number of images per split.
    seed : int
        Seed of the shuffle.

    Raises
    ------
    ValueError
        If a split has no image, or the splits together have more images than there are.
    """
    import numpy as np
    from sklearn.datasets import load_digits  # slow to import, and only digits need it

    pixels = load_digits().images.astype(np.uint8).reshape(-1, DIGIT_SIDE**2)
    counts = list(images.values())
    if min(counts) < 1 or sum(counts) > len(pixels):
        raise ValueError(
            f"`images` must be at least 1 per split and at most {len(pixels)} in total, got {dict(images)}"
        )
    order = np.random.default_rng(seed).permutation(len(pixels))[: sum(counts)]
    records = np.insert(pixels[order], 0, DIGIT_START, axis=1)
    ends = np.cumsum(counts)
    return {name: part.tobytes() for name, part in zip(images, np.split(records, ends[:-1]), strict=True)}


def _read_file(path: Path) -> dict[str, Split]:
    shares = {"train": "first 90 %", "valid": "next 5 %", "test": "last 5 %"}
    return {name: Split(text, f"{shares[name]} of {path.name}") for name, text in split_text(read_text(path)).items()}


def _read_folder(folder: Path) -> dict[str, Split]:
    paths = {name: symbol_file(folder, name) for name in SPLITS}
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
