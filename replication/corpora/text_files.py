"""Text files, plain or gzipped; errors name the file and the line."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


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

    Raises
    ------
    ValueError
        If the file is damaged, is not UTF-8 or contains a NUL byte.
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
            yield text.removesuffix("\n")
