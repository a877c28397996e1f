"""Where a corpus comes from, as one section of the configuration says it."""

from collections.abc import Iterable
from itertools import accumulate, pairwise

from replication.corpora.alignment import align, to_pharaoh
from replication.corpora.document_blocks import cut_into_blocks, join_sentences
from replication.corpora.documents import Document
from replication.corpora.folder import read_folder
from replication.corpora.grammar.translations import Translation, write_translations
from replication.corpora.parallel import read_parallel
from replication.corpora.subwords import tokenizer
from replication.corpora.word_keys import link_tokens, linked_by_keys


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
        ``{"source": "folder", "path": ..., "names": {split: name in the folder}}`` (and more, for :func:`read_alignments` and
        :func:`read_block_sentences`) or
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
    """The same in blocks of consecutive sentences of a document, at most so many ``words`` on either side.

    The grammar knows where its documents end, and so does a folder with ``documents: verses``: files ``<split>.verses`` say
    where each sentence is from, and those with the same words before the last colon ("Genesis 13:1") are one document. Any
    other split counts as one.
    """
    if source.get("source") != "grammar":
        read = read_parallel_splits(source, splits, languages)
        documents = {split: _documents(source, split, len(lines[languages[0]])) for split, lines in read.items()}
        return {split: cut_into_blocks(lines, documents[split], words) for split, lines in read.items()}
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


def read_alignments(source: dict, splits: list[str], languages: list[str], words: str) -> dict[str, list[str]]:
    """Gold word alignments of two languages, a line like ``0-0 1-2`` per sentence, of what a tokeniser makes ``words``.

    The grammar has them, and a folder with ``keys: strongs``: files ``<split>.strongs.<language>`` have a key for every word
    between spaces, ``_`` for none, and a key that each of two sentences has once links its words. Nothing else has any.

    Raises
    ------
    ValueError
        If a line has not as many keys as words.
    """
    first, second = languages
    if source.get("source") == "folder" and "keys" in source:
        return {split: _links_of_keys(source, split, (first, second), words) for split in splits}
    if source.get("source") != "grammar":
        return {}
    return {
        split: [to_pharaoh(align(pair.sentences[first], pair.sentences[second])) for pair in pairs]
        for split, pairs in _written(source, splits, languages).items()
    }


def _documents(source: dict, split: str, sentences: int) -> list[int]:
    if source.get("source") != "folder" or "documents" not in source:
        return [0] * sentences
    name = source.get("names", {}).get(split, split)
    (places,) = read_parallel(source["path"], name, [source["documents"]]).values()
    documents = [place.rpartition(":")[0] for place in places]
    changes = (one != before for before, one in pairwise(documents))
    return list(accumulate(changes, initial=0))


def _links_of_keys(source: dict, split: str, languages: tuple[str, str], words: str) -> list[str]:
    name, path = source.get("names", {}).get(split, split), source["path"]
    endings = [f"{source['keys']}.{language}" for language in languages]
    read = read_parallel(path, name, [*languages, *endings])
    tokenize = [tokenizer(words, language) for language in languages]
    found = []
    for number, row in enumerate(zip(*read.values(), strict=True), start=1):
        lines, keys = row[:2], [line.split() for line in row[2:]]
        for ending, line, of_line in zip(endings, lines, keys, strict=True):
            if len(of_line) != len(line.split()):
                what = f"{len(of_line)} keys for {len(line.split())} words"
                raise ValueError(f"{path}, {name}.{ending}, line {number}: {what}")
        tokens = [of_language(line).split() for of_language, line in zip(tokenize, lines, strict=True)]
        found.append(to_pharaoh(link_tokens(linked_by_keys(*keys), lines, tokens)))
    return found


def _written(source: dict, splits: list[str], languages: list[str]) -> dict[str, list[Translation]]:
    return write_translations({split: source["sentences"][split] for split in splits}, source["seed"], tuple(languages))


def _lines(pairs: list[Translation], languages: list[str]) -> dict[str, list[str]]:
    return {language: [" ".join(pair.sentences[language].words) for pair in pairs] for language in languages}
