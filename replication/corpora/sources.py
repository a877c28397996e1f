"""Where a corpus comes from, as one section of the configuration says it."""

from collections.abc import Iterable

from replication.corpora.alignment import align, to_pharaoh
from replication.corpora.document_blocks import cut_into_blocks, join_sentences
from replication.corpora.documents import Document
from replication.corpora.folder import read_folder
from replication.corpora.grammar.translations import Translation, write_translations
from replication.corpora.parallel import read_parallel


def read_splits(source: dict, splits: list[str]) -> dict[str, Iterable[Document]]:
    """Documents of each split.

    Parameters
    ----------
    source : dict
        ``{"source": "grammar", "words": {split: count}, "seed": 0}``,
        ``{"source": "folder", "path": ..., "auxiliaries": [tag, ...]}`` or
        ``{"source": "hub", "name": ..., "configuration": ...}``; ``auxiliaries`` may be missing.

    Raises
    ------
    ValueError
        For an unknown source.
    """
    match source:
        case {"source": "grammar", "words": words, "seed": seed}:
            from replication.corpora.grammar.corpus import write_corpus

            written = write_corpus({split: words.get(split, 0) for split in splits}, seed)
            return {split: written[split] for split in splits}
        case {"source": "folder", "path": path}:
            return {split: read_folder(path, split, source.get("auxiliaries", ())) for split in splits}
        case {"source": "hub", "name": name}:
            from replication.corpora.hub import read_hub

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
        case {"source": "grammar", "sentences": _, "seed": _}:
            return {split: _lines(pairs, languages) for split, pairs in _written(source, splits, languages).items()}
        case {"source": "folder", "path": path}:
            return {split: read_parallel(path, names[split], languages) for split in splits}
        case {"source": "hub", "name": name}:
            from replication.corpora.hub import read_hub_translations

            configuration = source.get("configuration")
            return {split: read_hub_translations(name, names[split], languages, configuration) for split in splits}
        case {"source": "grammar" | "folder" | "hub" as kind}:
            raise ValueError(f"corpus {kind!r} lacks a key: grammar needs sentences and seed, folder path, hub name")
        case _:
            raise ValueError(f"corpus source {source.get('source')!r} is unknown: it is grammar, folder or hub")


def read_block_sentences(
    source: dict, splits: list[str], languages: list[str], words: int
) -> dict[str, dict[str, list[list[str]]]]:
    """The same in blocks of consecutive sentences, at most so many ``words`` on either side.

    Only the grammar knows where its documents end; any other split counts as one document.
    """
    if source.get("source") != "grammar":
        read = read_parallel_splits(source, splits, languages)
        return {split: cut_into_blocks(lines, [0] * len(lines[languages[0]]), words) for split, lines in read.items()}
    return {
        split: cut_into_blocks(_lines(pairs, languages), [pair.document for pair in pairs], words)
        for split, pairs in _written(source, splits, languages).items()
    }


def read_document_blocks(
    source: dict, splits: list[str], languages: list[str], words: int
) -> dict[str, dict[str, list[str]]]:
    """The blocks of :func:`read_block_sentences`, a line per block."""
    blocks = read_block_sentences(source, splits, languages, words)
    return {split: join_sentences(of_split) for split, of_split in blocks.items()}


def read_alignments(source: dict, splits: list[str], languages: list[str]) -> dict[str, list[str]]:
    """Gold word alignments of two languages, a line like ``0-0 1-2`` per sentence; only the grammar has them."""
    if source.get("source") != "grammar":
        return {}
    first, second = languages
    return {
        split: [to_pharaoh(align(pair.sentences[first], pair.sentences[second])) for pair in pairs]
        for split, pairs in _written(source, splits, languages).items()
    }


def _written(source: dict, splits: list[str], languages: list[str]) -> dict[str, list[Translation]]:
    return write_translations({split: source["sentences"][split] for split in splits}, source["seed"], tuple(languages))


def _lines(pairs: list[Translation], languages: list[str]) -> dict[str, list[str]]:
    return {language: [" ".join(pair.sentences[language].words) for pair in pairs] for language in languages}
