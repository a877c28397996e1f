"""Corpora of books of the Bible, from packages."""

from collections.abc import Iterator
from difflib import get_close_matches
from itertools import combinations
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from replication.files.books import BIBLE, BOOKS, FOLDER, GREEK, NEW_TESTAMENT, VERSIONS, books_of
from replication.files.packages import package_file
from replication.schema import Problem, Section, problem
from replication.schema import types as t


def installed(_: "BibleText") -> Iterator[Problem]:
    """Yield a problem if the package with the text is not installed."""
    try:
        package_file(BIBLE, FOLDER)
    except FileNotFoundError as error:
        yield ("source",), f"must have its package: {error}"


def _book(name: str) -> str:
    if name not in BOOKS:
        near = get_close_matches(name, BOOKS, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise problem(f"must be a book of the Bible such as {BOOKS[0]} or {BOOKS[8]}, got {name!r}{hint}")
    return name


Books = t.Unique[Annotated[str, AfterValidator(_book)]]


class BibleText(Section):
    """The Berean Standard Bible, modern English from the package `bible-alignments`."""

    source: Literal["bible"]
    train: t.Maybe[Books] = Field(
        None, description="Books of the training split; if left out, all books that no other split has."
    )
    valid: Books = Field(description="Books of the validation split, such as `1 Samuel`.")

    def problems(self) -> Iterator[Problem]:
        books = books_of(self.given())
        if not books["train"]:
            yield ("valid",), "must leave a book for training, got all"
        for first, second in combinations(books, 2):
            if common := [book for book in books[second] if book in books[first]]:
                yield (second,), f"must have other books than {first}, got {', '.join(common)} in both"


class BiblePairs(BibleText):
    """Verses of two versions of the Bible from packages, aligned by their numbers.

    A pair such as `kjv-en` names the versions: `en` is the Berean Standard Bible, `kjv` the King James Version, and `grc` the
    Greek New Testament.
    """

    test: t.Maybe[Books] = Field(None, description="Books of the test split; only a pretraining corpus needs none.")

    def problems_of(self, pair: str) -> Iterator[Problem]:
        """Yield a problem for versions of the pair that do not exist, and for books that one of them lacks."""
        versions = pair.split("-")
        if unknown := sorted(set(versions) - set(VERSIONS)):
            yield (), f"must be two of {', '.join(VERSIONS)} for source bible, got {', '.join(unknown)}"
        if GREEK not in versions:
            return
        for split in ("train", "valid", "test"):
            if lacking := [book for book in getattr(self, split) or [] if book not in NEW_TESTAMENT]:
                yield (split,), f"must be books of the New Testament for {GREEK}, got {', '.join(lacking)}"
        if self.train is None and set(NEW_TESTAMENT).isdisjoint(books_of(self.given())["train"]):
            yield ("valid",), f"must leave a book of the New Testament for training for {GREEK}, got all"


class BibleCharacters(BibleText):
    """Characters of the Berean Standard Bible."""

    test: Books = Field(description="Books of the test split.")
