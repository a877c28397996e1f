"""The Berean Standard Bible: modern English by book, chapter and verse, from the package ``bible-alignments``.

The text is in the public domain. A chapter is a document, and a verse is a sentence of words and punctuation marks.
"""

from collections.abc import Collection, Iterator
from itertools import groupby

from replication.corpora.bible_tables import english_tables, read_rows
from replication.corpora.documents import Document, Sentence


def read_chapters(books: Collection[str]) -> Iterator[Document]:
    """Yield the chapters of some books, in the order of the Bible.

    Parameters
    ----------
    books : collection of str
        Names out of :data:`~replication.files.books.BOOKS`.

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
    for table in english_tables(books):
        for _, chapter in groupby(read_rows(table, books), key=lambda row: row["id"][:5]):
            verses = groupby(chapter, key=lambda row: row["id"][:8])
            yield Document([Sentence([row["text"] for row in verse]) for _, verse in verses])
