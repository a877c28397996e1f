"""Documents from a Hugging Face dataset of raw text: on the hub, or saved on disk."""

from collections.abc import Iterator
from pathlib import Path

from datasets import Dataset, load_dataset, load_from_disk

from sparselib.corpora.documents import Document, Sentence


def read_hub(name: str, split: str, configuration: str | None = None, column: str = "text") -> Iterator[Document]:
    """Documents of one split, a row of text each; a line is a sentence, whitespace separates words.

    Parameters
    ----------
    name : str
        A dataset on the hub (``Salesforce/wikitext``), a folder in the hub's format (parquet, CSV, text files), or one
        made by ``DatasetDict.save_to_disk``.
    split : str
        ``valid`` also finds the name ``validation``.

    Raises
    ------
    ValueError
        If the split or the column does not exist, or holds no text.
    """
    saved = (Path(name) / "dataset_dict.json").exists()
    splits = load_from_disk(name) if saved else load_dataset(name, configuration)
    found = next((s for s in (split, {"valid": "validation"}.get(split)) if s in splits), None)
    if found is None:
        raise ValueError(f"{name}: no split {split}; it has {', '.join(splits)}")
    if column not in splits[found].column_names:
        raise ValueError(f"{name}: no column {column}; it has {', '.join(splits[found].column_names)}")
    documents = _documents(splits[found], column)
    first = next(documents, None)
    if first is None:
        raise ValueError(f"{name}: split {found} holds no text")
    yield first
    yield from documents


def _documents(rows: Dataset, column: str) -> Iterator[Document]:
    for row in rows:
        if sentences := [Sentence(words) for words in map(str.split, row[column].splitlines()) if words]:
            yield Document(sentences)
