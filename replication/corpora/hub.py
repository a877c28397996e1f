"""Documents and sentence pairs from a Hugging Face dataset, on the hub or on disk."""

import re
from collections.abc import Iterator
from pathlib import Path

from datasets import Dataset, DatasetDict, load_dataset, load_from_disk

from replication.corpora.documents import Document, Sentence
from replication.corpora.text_files import composed

#: Branch of a dataset's repository with the parquet files that the hub made of its script.
CONVERTED = "refs/convert/parquet"


def read_hub(name: str, split: str, configuration: str | None = None, column: str = "text") -> Iterator[Document]:
    """Yield a document per row of a split; a line is a sentence, and whitespace separates words.

    Parameters
    ----------
    name : str
        A dataset on the hub (``Salesforce/wikitext``), a folder in the hub's format (parquet, CSV, text files, or
        ``configuration/split/0000.parquet`` as the hub converts scripts), or a folder of ``DatasetDict.save_to_disk``.
    split : str
        ``valid`` also matches the name ``validation``. ``test[10:20]`` is a slice of the rows.
    configuration : str, optional
        Configuration of the dataset.
    column : str
        Column of the text.

    Raises
    ------
    ValueError
        If the split or the column does not exist, contains no text, or a row has a number or null in place of a text.
    """
    rows = _rows(name, split, configuration)
    if column not in rows.column_names:
        raise ValueError(f"{name}: no column {column}; it has {', '.join(rows.column_names)}")
    documents = _documents(rows, column, name)
    first = next(documents, None)
    if first is None:
        raise ValueError(f"{name}: split {split} contains no text")
    yield first
    yield from documents


def read_hub_translations(
    name: str, split: str, languages: list[str], configuration: str | None = None
) -> dict[str, list[str]]:
    """Return the aligned sentences of a split, from the column ``translation`` of the hub's parallel corpora.

    Pairs with an empty side are left out, as usual for crawled text.

    Parameters
    ----------
    name, split, configuration
        As in :func:`read_hub`.
    languages : list of str
        Language codes, such as ``["en", "fr"]``.

    Returns
    -------
    dict of lists of str
        Sentences by language.

    Raises
    ------
    ValueError
        If the split, the column or a language does not exist, a text is a number or null, or no pair remains.
    """
    rows = _rows(name, split, configuration)
    if "translation" not in rows.column_names:
        raise ValueError(f"{name}: no column translation; it has {', '.join(rows.column_names)}")
    lines: dict[str, list[str]] = {language: [] for language in languages}
    for number, row in enumerate(rows):
        pair = row["translation"]
        if pair is None:
            raise ValueError(f"{name}, row {number}: translation must be a pair of sentences, got null")
        if missing := [language for language in languages if language not in pair]:
            raise ValueError(f"{name}: no language {', '.join(missing)}; it has {', '.join(pair)}")
        sides = [" ".join(_text(pair[language], f"{name}, row {number}", language).split()) for language in languages]
        if all(sides):
            for language, side in zip(languages, sides, strict=True):
                lines[language].append(side)
    if not lines[languages[0]]:
        raise ValueError(f"{name}: split {split} contains no sentence pair")
    return lines


def _rows(name: str, split: str, configuration: str | None) -> Dataset:
    """Return the rows of a split, or of a slice such as ``test[10:20]`` or ``train[:50]``."""
    match = re.fullmatch(r"([^\[\]]+)(?:\[(\d*):(\d*)\])?", split)
    if match is None:
        raise ValueError(f"{name}: the split must be a name or a slice such as test[10:20], got {split!r}")
    split, start, end = match.groups()
    saved = (Path(name) / "dataset_dict.json").exists()
    splits = load_from_disk(name) if saved else _load(name, configuration)
    known_name = next((s for s in (split, {"valid": "validation"}.get(split)) if s in splits), None)
    if known_name is None:
        raise ValueError(f"{name}: no split {split}; it has {', '.join(splits)}")
    rows = splits[known_name]
    if end is None:
        return rows
    first, last = int(start or 0), int(end or len(rows))
    if not first < last <= len(rows):
        raise ValueError(f"{name}: rows of split {known_name} must be within 0 to {len(rows)}, got {first} to {last}")
    return rows.select(range(first, last))


def _load(name: str, configuration: str | None) -> DatasetDict:
    """Load a dataset, or the parquet files that the hub made of a script, which ``datasets`` does not run since version 4.

    In a local copy of such files, configurations are folders with a folder per split.
    """
    if configuration is not None and Path(name, configuration).is_dir():
        return load_dataset(name, data_dir=configuration)
    try:
        return load_dataset(name, configuration)
    except RuntimeError as error:
        if "scripts are no longer supported" not in str(error):
            raise
    return load_dataset(name, data_dir=configuration, revision=CONVERTED)


def _documents(rows: Dataset, column: str, name: str) -> Iterator[Document]:
    for number, row in enumerate(rows):
        text = _text(row[column], f"{name}, row {number}", column)
        if sentences := [Sentence(words) for words in map(str.split, text.splitlines()) if words]:
            yield Document(sentences)


def _text(value: object, place: str, column: str) -> str:
    """Return a value of a column as composed text; raise ``ValueError``, naming the place, if it is none."""
    if not isinstance(value, str):
        given = "null" if value is None else f"{value!r:.40}"
        raise ValueError(
            f"{place}: {column} must be text, got {given}; leave the row out, or quote the text and save it as JSON lines"
        )
    return composed(value, place.partition(", row ")[0])
