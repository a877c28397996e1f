"""Reading of tables, and a record of the files that were read."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING

from replication.files.manifest import add_input

if TYPE_CHECKING:
    from pandas import DataFrame

_READ: ContextVar[set[Path] | None] = ContextVar("read", default=None)


@contextmanager
def noting() -> Iterator[set[Path]]:
    """Collect the paths of files that are read inside a block, in the set that this yields."""
    paths: set[Path] = set()
    token = _READ.set(paths)
    try:
        yield paths
    finally:
        _READ.reset(token)


def noted(path: Path) -> Path:
    """Note a file as read, by the running stage too, and return its path."""
    add_input(path)
    if (paths := _READ.get()) is not None:
        paths.add(path)
    return path


def read_table(path: Path) -> DataFrame:
    """Read a table in CSV or parquet, by the path's suffix.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    """
    import pandas as pd

    table = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    noted(path)
    return table


def digest(paths: set[Path], root: Path) -> str:
    """Return a hash of files and their paths below ``root``, in 12 hexadecimal digits, or an empty string without files."""
    if not paths:
        return ""
    content = hashlib.sha256()
    for path in sorted(paths):
        content.update(str(path.relative_to(root)).encode() + path.read_bytes())
    return content.hexdigest()[:12]
