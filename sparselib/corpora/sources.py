"""Where a corpus comes from, as one section of the configuration says it."""

from collections.abc import Iterable

from sparselib.corpora.documents import Document
from sparselib.corpora.folder import read_folder


def read_splits(source: dict, splits: list[str]) -> dict[str, Iterable[Document]]:
    """Documents of each split.

    Parameters
    ----------
    source : dict
        ``{"source": "grammar", "words": {split: count}, "seed": 0}``, ``{"source": "folder", "path": ...}`` or
        ``{"source": "hub", "name": ..., "configuration": ...}``.

    Raises
    ------
    ValueError
        For an unknown source.
    """
    match source:
        case {"source": "grammar", "words": words, "seed": seed}:
            from sparselib.corpora.grammar import write_corpus

            written = write_corpus({split: words.get(split, 0) for split in splits}, seed)
            return {split: written[split] for split in splits}
        case {"source": "folder", "path": path}:
            return {split: read_folder(path, split) for split in splits}
        case {"source": "hub", "name": name}:
            from sparselib.corpora.hub import read_hub

            return {split: read_hub(name, split, source.get("configuration")) for split in splits}
        case {"source": "grammar" | "folder" | "hub" as kind}:
            raise ValueError(f"corpus source {kind!r} lacks a key: grammar needs words and seed, folder path, hub name")
        case _:
            raise ValueError(f"corpus source {source.get('source')!r} is unknown: it is grammar, folder or hub")
