"""The Berean Standard Bible: modern English by book, chapter and verse, from the package ``bible-alignments``.

The text is in the public domain. A chapter is a document, and a verse is a sentence of words and punctuation marks.
"""

import csv
from collections.abc import Collection, Iterator
from itertools import groupby

from replication.books import BIBLE, BOOKS, FOLDER
from replication.corpora.documents import Document, Sentence
from replication.files.packages import package_file

TESTAMENTS = ("ot", "nt")


def read_chapters(books: Collection[str]) -> Iterator[Document]:
    """Yield the chapters of some books, in the order of the Bible.

    Parameters
    ----------
    books : collection of str
        Names out of :data:`~replication.books.BOOKS`.

    Raises
    ------
    FileNotFoundError
        If the package is not installed or has another version.

    Examples
    --------
    >>> chapter = next(read_chapters(["Jonah"]))
    >>> " ".join(chapter.sentences[0].words)
    'Now the word of the LORD came to Jonah son of Amittai , saying ,'
    """
    numbers = {f"{BOOKS.index(book) + 1:02}" for book in books}
    for testament in TESTAMENTS:
        path = package_file(BIBLE, f"{FOLDER}/{testament}_BSB.tsv")
        with open(path, encoding="utf-8", newline="") as file:
            words = [
                row for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE) if row["id"][:2] in numbers
            ]
        for _, chapter in groupby(words, key=lambda row: row["id"][:5]):
            verses = groupby(chapter, key=lambda row: row["id"][:8])
            yield Document([Sentence([row["text"] for row in verse]) for _, verse in verses])
