"""Documents from a Hugging Face dataset of raw text: on the hub, or saved on disk."""

import re
from collections.abc import Iterator
from pathlib import Path

from datasets import Dataset, DatasetDict, load_dataset, load_from_disk

from replication.corpora.documents import Document, Sentence

#: Where the hub keeps what it has converted.
CONVERTED = "refs/convert/parquet"


def read_hub(name: str, split: str, configuration: str | None = None, column: str = "text") -> Iterator[Document]:
    """Documents of one split, a row of text each; a line is a sentence, whitespace separates words.

    Parameters
    ----------
    name : str
        A dataset on the hub (``Salesforce/wikitext``), a folder in the hub's format (parquet, CSV, text files; or as the hub
        converts scripts, ``configuration/split/0000.parquet``), or one made by ``DatasetDict.save_to_disk``.
    split : str
        ``valid`` also finds the name ``validation``.

    Raises
    ------
    ValueError
        If the split or the column does not exist, or holds no text.
    """
    rows = _rows(name, split, configuration)
    if column not in rows.column_names:
        raise ValueError(f"{name}: no column {column}; it has {', '.join(rows.column_names)}")
    documents = _documents(rows, column)
    first = next(documents, None)
    if first is None:
        raise ValueError(f"{name}: split {split} holds no text")
    yield first
    yield from documents


def read_hub_translations(
    name: str, split: str, languages: list[str], configuration: str | None = None
) -> dict[str, list[str]]:
    """Aligned sentences of one split, from the column ``translation`` that the hub's parallel corpora have.

    Pairs of which a side is empty are left out, as usual for crawled text.

    Raises
    ------
    ValueError
        If the split, the column or a language does not exist, or no pair remains.
    """
    rows = _rows(name, split, configuration)
    if "translation" not in rows.column_names:
        raise ValueError(f"{name}: no column translation; it has {', '.join(rows.column_names)}")
    lines: dict[str, list[str]] = {language: [] for language in languages}
    for row in rows:
        pair = row["translation"]
        if missing := [language for language in languages if language not in pair]:
            raise ValueError(f"{name}: no language {', '.join(missing)}; it has {', '.join(pair)}")
        sides = [" ".join(pair[language].split()) for language in languages]
        if all(sides):
            for language, side in zip(languages, sides, strict=True):
                lines[language].append(side)
    if not lines[languages[0]]:
        raise ValueError(f"{name}: split {split} holds no pair of sentences")
    return lines


def _rows(name: str, split: str, configuration: str | None) -> Dataset:
    """The rows of one split, or with ``"test[10:20]"`` or ``"train[:50]"`` some of them; "valid" also finds "validation"."""
    match = re.fullmatch(r"([^\[\]]+)(?:\[(\d*):(\d*)\])?", split)
    if match is None:
        raise ValueError(f"{name}: {split!r} is no split, nor rows of one such as test[10:20]")
    split, start, end = match.groups()
    saved = (Path(name) / "dataset_dict.json").exists()
    splits = load_from_disk(name) if saved else _load(name, configuration)
    found = next((s for s in (split, {"valid": "validation"}.get(split)) if s in splits), None)
    if found is None:
        raise ValueError(f"{name}: no split {split}; it has {', '.join(splits)}")
    rows = splits[found]
    if end is None:
        return rows
    first, last = int(start or 0), int(end or len(rows))
    if not first < last <= len(rows):
        raise ValueError(f"{name}: rows {first} to {last} of split {found} asked for, which has {len(rows)}")
    return rows.select(range(first, last))


def _load(name: str, configuration: str | None) -> DatasetDict:
    """A data set as it is, or of a script, which ``datasets`` 4 and later refuse, the parquet that the hub made of it.

    In a folder that is a copy of that, configurations are folders, and splits are folders in these.
    """
    if configuration is not None and Path(name, configuration).is_dir():
        return load_dataset(name, data_dir=configuration)
    try:
        return load_dataset(name, configuration)
    except RuntimeError as error:
        if "scripts are no longer supported" not in str(error):
            raise
    return load_dataset(name, data_dir=configuration, revision=CONVERTED)


def _documents(rows: Dataset, column: str) -> Iterator[Document]:
    for row in rows:
        if sentences := [Sentence(words) for words in map(str.split, row[column].splitlines()) if words]:
            yield Document(sentences)
