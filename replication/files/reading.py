"""Reading tables, and knowing afterwards which were read."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING

from replication.files.seals import verified

if TYPE_CHECKING:
    from pandas import DataFrame

_READ: ContextVar[set[Path] | None] = ContextVar("read", default=None)


@contextmanager
def noting() -> Iterator[set[Path]]:
    """Inside, the paths of what was read are collected in what this gives."""
    paths: set[Path] = set()
    token = _READ.set(paths)
    try:
        yield paths
    finally:
        _READ.reset(token)


def noted(path: Path) -> Path:
    """The path itself, noted as read, if it is what was sealed there; raises ``FormatError`` if not."""
    verified(path)
    if (paths := _READ.get()) is not None:
        paths.add(path)
    return path


def read_table(path: Path) -> DataFrame:
    """A table in CSV or parquet, after the path's suffix; raises ``FileNotFoundError`` if there is none."""
    import pandas as pd

    verified(path)
    table = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    noted(path)
    return table


def digest(paths: set[Path], root: Path) -> str:
    """A hash over files and their places below ``root``, in 12 hexadecimal digits; nothing of no file."""
    if not paths:
        return ""
    found = hashlib.sha256()
    for path in sorted(paths):
        found.update(str(path.relative_to(root)).encode() + path.read_bytes())
    return found.hexdigest()[:12]
