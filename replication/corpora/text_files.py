"""Text files, plain or gzipped; errors name the file and the line."""

import gzip
import re
import unicodedata
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from replication.files.notes import note

#: Control characters that are no white space. Tokenisers delete them, and with them lines that have no other characters.
_CONTROL = re.compile(r"[\x01-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")


@contextmanager
def open_bytes(path: Path) -> Iterator[BinaryIO]:
    """Open a file to read its bytes, decompressed if its name ends in ``.gz``.

    Raises
    ------
    ValueError
        If a gzipped file is truncated or damaged.
    """
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rb") as file:
            yield file
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path}: truncated or damaged ({error})") from error


def read_lines(path: Path) -> Iterator[str]:
    r"""Yield the lines of a UTF-8 file without the ``\n`` at their end; no other character ends a line.

    Characters are composed (Unicode's form NFC): letters and their accents as separate characters would be cut apart.

    Raises
    ------
    ValueError
        If the file is damaged, is not UTF-8 or contains a NUL byte or another control character.
    """
    with open_bytes(path) as file:
        for number, line in enumerate(file, start=1):
            try:
                # Some editors begin a file with a byte-order mark, which is not part of the first word.
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise ValueError(f"{path}, line {number}: not UTF-8 ({error.reason})") from error
            if "\0" in text:
                raise ValueError(f"{path}, line {number}: contains a NUL byte; convert the file to UTF-8")
            if not text.isprintable() and (found := _CONTROL.search(text)):
                raise ValueError(
                    f"{path}, line {number}: contains the control character U+{ord(found[0]):04X}; remove it"
                )
            yield composed(text.removesuffix("\n"), path)


def composed(text: str, source: object) -> str:
    """Return text in Unicode's form NFC, with a note that names the source if the text was in another form."""
    if unicodedata.is_normalized("NFC", text):
        return text
    note(f"{source}: letters and accents are separate characters; they are read as composed ones (NFC)")
    return unicodedata.normalize("NFC", text)
