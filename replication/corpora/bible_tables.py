"""Tables of the package ``bible-alignments``, which have a row per word or punctuation mark."""

import csv
from collections.abc import Collection, Iterator
from itertools import chain

from replication.files.books import BIBLE, BOOKS, FOLDER, NEW_TESTAMENT
from replication.files.packages import package_file


def numbers_of(books: Collection[str]) -> set[str]:
    """Return the two digits with which the identifiers of some books' words begin.

    >>> numbers_of(["Genesis"])
    {'01'}
    """
    return {f"{BOOKS.index(book) + 1:02}" for book in books}


def english_tables(books: Collection[str]) -> list[str]:
    """Return the paths of the tables with the English text of some books, in the order of the Bible."""
    testaments = {"ot": set(BOOKS) - set(NEW_TESTAMENT), "nt": set(NEW_TESTAMENT)}
    return [f"{FOLDER}/{name}_BSB.tsv" for name, testament in testaments.items() if not testament.isdisjoint(books)]


def read_rows(path: str, books: Collection[str]) -> Iterator[dict[str, str]]:
    """Yield the rows of some books from a table; the column ``id`` has an identifier such as ``01001002003``.

    Identifiers of Greek words begin with ``n``.

    Parameters
    ----------
    path : str
        Path of the table in the package.
    books : collection of str
        Names out of :data:`~replication.files.books.BOOKS`.

    Raises
    ------
    FileNotFoundError
        If the package is not installed or has another version.
    """
    numbers = numbers_of(books)
    with open(package_file(BIBLE, path), encoding="utf-8", newline="") as file:
        header = next(file)
        # Lines of other books are not parsed, because few books would otherwise take as long as all.
        lines = (line for line in file if line.removeprefix("n")[:2] in numbers)
        yield from csv.DictReader(chain([header], lines), delimiter="\t", quoting=csv.QUOTE_NONE)
