"""Corpora as a section of the configuration names them: where their text comes from, and how it is read."""

from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate, pairwise

from replication.corpora.alignment import link_tokens, linked_by_keys, to_pharaoh
from replication.corpora.bible_verses import Verse, linked_words, read_verse_pairs
from replication.corpora.document_blocks import cut_into_blocks, join_sentences
from replication.corpora.documents import Document
from replication.corpora.folder import read_folder
from replication.corpora.parallel import read_parallel
from replication.files.books import LINKED, books_of


def name_of(source: dict) -> str:
    """Return the folder, the data set or else the kind of a source, for messages."""
    return str(source.get("path") or source.get("name") or source["source"])


def read_splits(source: dict, splits: list[str]) -> dict[str, Iterable[Document]]:
    """Return the documents of each split.

    Parameters
    ----------
    source : dict
        ``{"source": "bible", "train": [book, ...], "valid": [book, ...], "test": [book, ...]}``,
        ``{"source": "folder", "path": ..., "auxiliaries": [tag, ...]}`` or
        ``{"source": "hub", "name": ..., "configuration": ...}``; ``test``, ``auxiliaries`` and
        ``configuration`` are optional.
    splits : list of str
        Names of the splits.

    Raises
    ------
    ValueError
        If the source is unknown or lacks a key.
    """
    match source:
        case {"source": "bible", "valid": _}:
            from replication.corpora.bible import read_chapters

            books = books_of(source)
            return {split: read_chapters(books[split]) for split in splits}
        case {"source": "folder", "path": path}:
            return {split: read_folder(path, split, source.get("auxiliaries", ())) for split in splits}
        case {"source": "hub", "name": name}:
            from replication.corpora.hub import read_hub

            return {split: read_hub(name, split, source.get("configuration")) for split in splits}
        case {"source": "bible" | "folder" | "hub" as kind}:
            raise ValueError(f"`source` {kind!r} lacks a key: bible needs `valid`, folder `path`, and hub `name`")
        case _:
            raise ValueError(f"`source` must be bible, folder or hub, got {source.get('source')!r}")


def read_parallel_splits(source: dict, splits: list[str], languages: list[str]) -> dict[str, dict[str, list[str]]]:
    """Return the aligned sentences of each split, one list of lines per language.

    Parameters
    ----------
    source : dict
        ``{"source": "bible", "train": [book, ...], "valid": [book, ...], "test": [book, ...]}``,
        ``{"source": "folder", "path": ..., "names": {split: name in the folder}}`` or
        ``{"source": "hub", "name": ..., "configuration": ..., "names": {split: name on the hub}}``; ``names`` and
        ``configuration`` are optional. :func:`read_alignments` and :func:`read_block_sentences` use further keys of a folder.
    splits : list of str
        Names of the splits.
    languages : list of str
        Language codes, such as ``["en", "de"]``, or versions of the Bible.

    Raises
    ------
    ValueError
        If the source is unknown or lacks a key.
    """
    names = {split: split for split in splits} | source.get("names", {})
    match source:
        case {"source": "bible", "valid": _}:
            verses = _verses(source, splits, languages)
            return {split: _verse_lines(pairs, languages) for split, pairs in verses.items()}
        case {"source": "folder", "path": path}:
            return {split: read_parallel(path, names[split], languages) for split in splits}
        case {"source": "hub", "name": name}:
            from replication.corpora.hub import read_hub_translations

            configuration = source.get("configuration")
            return {split: read_hub_translations(name, names[split], languages, configuration) for split in splits}
        case {"source": "bible" | "folder" | "hub" as kind}:
            raise ValueError(f"`source` {kind!r} lacks a key: bible needs `valid`, folder `path`, and hub `name`")
        case _:
            raise ValueError(f"`source` must be bible, folder or hub, got {source.get('source')!r}")


def read_block_sentences(
    source: dict, splits: list[str], languages: list[str], words: int
) -> dict[str, dict[str, list[list[str]]]]:
    """Return the sentences of :func:`read_parallel_splits` in blocks of at most ``words`` words in either language.

    A block has consecutive sentences of one document. Chapters are the Bible's documents. A folder
    with the key ``documents: verses`` marks its own: its files ``<split>.verses`` give each sentence's place, such as
    "Genesis 13:1", and the words before the last colon name the document. Any other split is a single document.

    Raises
    ------
    ValueError
        If a line of ``<split>.verses`` names no document.
    """
    if source.get("source") == "bible":
        return {
            split: cut_into_blocks(_verse_lines(pairs, languages), [pair[0].chapter for pair in pairs], words)
            for split, pairs in _verses(source, splits, languages).items()
        }
    lines_by_split = read_parallel_splits(source, splits, languages)
    documents = {split: _documents(source, split, len(lines[languages[0]])) for split, lines in lines_by_split.items()}
    return {split: cut_into_blocks(lines, documents[split], words) for split, lines in lines_by_split.items()}


def read_document_blocks(
    source: dict, splits: list[str], languages: list[str], words: int
) -> dict[str, dict[str, list[str]]]:
    """Return the blocks of :func:`read_block_sentences`, a line per block."""
    blocks = read_block_sentences(source, splits, languages, words)
    return {split: join_sentences(blocks[split]) for split in blocks}


def read_alignments(
    source: dict, splits: list[str], languages: list[str], tokenizers: Mapping[str, Callable[[str], str]]
) -> dict[str, list[str]]:
    """Return the gold word alignments of two languages, a line such as ``0-0 1-2`` per sentence.

    The Greek New Testament and the Berean Bible have manual ones. A folder can have the key ``keys: strongs``: its files
    ``<split>.strongs.<language>`` have a key for every word, ``_`` for none, and a key that occurs once in both sentences links
    its words.

    Parameters
    ----------
    source, splits, languages
        As in :func:`read_parallel_splits`.
    tokenizers : mapping
        Tokeniser of each language, as from :func:`replication.corpora.spacing.fit_tokenizer`; its tokens are linked.

    Returns
    -------
    dict of lists of str
        Lines by split; empty for a source without alignments.

    Raises
    ------
    ValueError
        If a line does not have a key for each word.
    """
    first, second = languages
    if source.get("source") == "folder" and "keys" in source:
        return {split: _links_of_keys(source, split, (first, second), tokenizers) for split in splits}
    if source.get("source") == "bible" and (first, second) == LINKED:
        verses = _verses(source, splits, [first, second])
        return {split: _links_of_verses(pairs, tokenizers) for split, pairs in verses.items()}
    return {}


def _documents(source: dict, split: str, sentences: int) -> list[int]:
    if source.get("source") != "folder" or "documents" not in source:
        return [0] * sentences
    name = source.get("names", {}).get(split, split)
    (places,) = read_parallel(source["path"], name, [source["documents"]]).values()
    for number, place in enumerate(places, start=1):
        if not place.rpartition(":")[0].strip():
            raise ValueError(
                f"{source['path']}, {name}.{source['documents']}, line {number}: must be a document, a colon and a "
                f"place in it, such as Genesis 13:1, got {place!r}"
            )
    documents = [place.rpartition(":")[0] for place in places]
    changes = (document != previous for previous, document in pairwise(documents))
    return list(accumulate(changes, initial=0))


def _links_of_keys(
    source: dict, split: str, languages: tuple[str, str], tokenizers: Mapping[str, Callable[[str], str]]
) -> list[str]:
    name, path = source.get("names", {}).get(split, split), source["path"]
    endings = [f"{source['keys']}.{language}" for language in languages]
    texts = read_parallel(path, name, [*languages, *endings])
    alignments = []
    for number, row in enumerate(zip(*texts.values(), strict=True), start=1):
        lines, keys = row[:2], [line.split() for line in row[2:]]
        for ending, line, line_keys in zip(endings, lines, keys, strict=True):
            if len(line_keys) != len(line.split()):
                counts = f"{len(line_keys)} keys for {len(line.split())} words"
                raise ValueError(f"{path}, {name}.{ending}, line {number}: must have a key per word, got {counts}")
        tokens = [tokenizers[language](line).split() for language, line in zip(languages, lines, strict=True)]
        alignments.append(to_pharaoh(link_tokens(linked_by_keys(*keys), lines, tokens)))
    return alignments


def _verses(source: dict, splits: list[str], versions: list[str]) -> dict[str, list[tuple[Verse, Verse]]]:
    books = books_of(source)
    return {split: read_verse_pairs((versions[0], versions[1]), books[split]) for split in splits}


def _verse_lines(pairs: list[tuple[Verse, Verse]], versions: list[str]) -> dict[str, list[str]]:
    return {version: [pair[side].line for pair in pairs] for side, version in enumerate(versions)}


def _links_of_verses(pairs: list[tuple[Verse, Verse]], tokenizers: Mapping[str, Callable[[str], str]]) -> list[str]:
    alignments = []
    for pair in pairs:
        lines = [verse.line for verse in pair]
        tokens = [tokenizers[version](line).split() for version, line in zip(LINKED, lines, strict=True)]
        alignments.append(to_pharaoh(link_tokens(linked_words(*pair), lines, tokens)))
    return alignments
