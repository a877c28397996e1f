"""Where a corpus comes from, as one section of the configuration says it."""

from collections.abc import Iterable

from sparselib.corpora.documents import Document
from sparselib.corpora.folder import read_folder
from sparselib.corpora.parallel import read_parallel


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


def read_parallel_splits(source: dict, splits: list[str], languages: list[str]) -> dict[str, dict[str, list[str]]]:
    """Aligned sentences of each split, one list of lines per language.

    Parameters
    ----------
    source : dict
        ``{"source": "grammar", "sentences": {split: count}, "seed": 0}``,
        ``{"source": "folder", "path": ..., "names": {split: name in the folder}}`` or
        ``{"source": "hub", "name": ..., "configuration": ..., "names": {split: name on the hub}}``; ``names`` may be missing.

    Raises
    ------
    ValueError
        For an unknown source.
    """
    names = {split: split for split in splits} | source.get("names", {})
    match source:
        case {"source": "grammar", "sentences": sentences, "seed": seed}:
            from sparselib.corpora.translations import write_translations

            written = write_translations({split: sentences[split] for split in splits}, seed, tuple(languages))
            return {
                split: {
                    language: [" ".join(pair.sentences[language].words) for pair in written[split]]
                    for language in languages
                }
                for split in splits
            }
        case {"source": "folder", "path": path}:
            return {split: read_parallel(path, names[split], languages) for split in splits}
        case {"source": "hub", "name": name}:
            from sparselib.corpora.hub import read_hub_translations

            configuration = source.get("configuration")
            return {split: read_hub_translations(name, names[split], languages, configuration) for split in splits}
        case {"source": "grammar" | "folder" | "hub" as kind}:
            raise ValueError(f"corpus {kind!r} lacks a key: grammar needs sentences and seed, folder path, hub name")
        case _:
            raise ValueError(f"corpus source {source.get('source')!r} is unknown: it is grammar, folder or hub")
