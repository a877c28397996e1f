"""Bilingual word lists: dictionaries that say which word they lack."""

from collections.abc import Iterable


class UnknownWord(ValueError):
    """A lemma of the abstract syntax has no entry in a language."""


class Glossary(dict):
    """Entries of one kind in one language. Looking up a lemma that it lacks raises :class:`UnknownWord`."""

    def __init__(self, language: str, kind: str, entries: Iterable[tuple]):
        super().__init__(entries)
        self.what = f"{language}: no {kind}"

    def __missing__(self, lemma):
        raise UnknownWord(f"{self.what} for {lemma!r}")


def rows(table: str) -> list[tuple[str, list[str]]]:
    """Reads entries ``lemma: word word``, separated by line ends or semicolons."""
    entries = (entry.partition(":") for line in table.strip().splitlines() for entry in line.split(";"))
    return [(lemma.strip(), words.split()) for lemma, _, words in entries if lemma.strip()]
