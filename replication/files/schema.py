"""Tables of a run and what their columns mean: the tables are listed in tables.csv, and the columns in columns.csv.

A column that means something else in one table is listed as ``table.column``. ``@arguments`` are the arguments of the table's
rules, a column each; a column with a question mark may be missing.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandas import DataFrame, Series

#: Kinds of columns, and how an error states them.
KINDS = {"whole": "whole numbers", "number": "numbers", "text": "texts", "list": "lists"}
ARGUMENTS = "@arguments"
#: Rounding error of means in single precision.
ROUNDING = 1e-5


@dataclass(frozen=True)
class Column:
    """A column's ``kind`` (a key of :data:`KINDS`), its smallest and largest value, and whether cells may be empty."""

    kind: str
    lowest: float
    highest: float
    may_be_empty: bool
    meaning: str


@dataclass(frozen=True)
class Table:
    """A kind of table: the pattern of its files, what a row is, and its columns."""

    name: str
    files: tuple[str, ...]
    row: str
    columns: dict[str, Column]
    may_be_missing: frozenset[str]
    has_arguments: bool


@cache
def tables() -> dict[str, Table]:
    """Return the tables that a run can have, by their names.

    Examples
    --------
    >>> tables()["perplexity"].columns["nats"].meaning
    'mean loss per masked token in nats'
    """
    meanings = {
        row["column"]: Column(
            row["kind"],
            float(row["lowest"] or -inf),
            float(row["highest"] or inf),
            row["may_be_empty"] == "yes",
            row["meaning"],
        )
        for row in _rows("columns.csv")
    }
    found = {}
    for row in _rows("tables.csv"):
        words = row["columns"].split()
        names = [word.rstrip("?") for word in words if word != ARGUMENTS]
        found[row["table"]] = Table(
            row["table"],
            tuple(row["files"].split()),
            row["row"],
            {name: meanings.get(f"{row['table']}.{name}") or meanings[name] for name in names},
            frozenset(word.rstrip("?") for word in words if word.endswith("?")),
            ARGUMENTS in words,
        )
    return found


def _rows(name: str) -> list[dict[str, str]]:
    with open(Path(__file__).with_name(name), encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def table_at(path: Path) -> Table | None:
    """Return the table that a file of a run holds, by its path, or None for other files.

    Examples
    --------
    >>> table_at(Path("results/demo/masked_lm/sweep/seed0.parquet")).row
    'rule, window and head'
    """
    absolute = Path(path).absolute()
    return next((table for table in tables().values() if any(map(absolute.match, table.files))), None)


def read_declared(path: Path) -> DataFrame:
    """Read a table of a run, with each column of texts as texts, even if all of them look like numbers."""
    import pandas as pd

    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    texts = {name: str for name, column in table_at(path).columns.items() if column.kind == "text"}
    return pd.read_csv(path, dtype=texts)


def check_table(path: Path, frame: DataFrame) -> None:
    """Check that a table has the columns of its place, and in them values that their quantities can have.

    Tables elsewhere, such as a user's own, may have any columns.

    Raises
    ------
    ValueError
        If a column is missing, unknown or of another kind, or if a cell is empty, infinite or outside of its column's range.
        The error names the file, the column and the row.
    """
    if (table := table_at(path)) is None:
        return
    if not len(frame):
        raise ValueError(f"{path}: must have rows, got none")
    expected = table.columns.keys() - table.may_be_missing
    if missing := sorted(expected - set(frame.columns)):
        raise ValueError(f"{path}: must have a column {missing[0]}, got {', '.join(frame.columns)}")
    for name in frame.columns:
        if column := table.columns.get(name):
            _check_column(f"{path}: column {name}", frame[name], column)
        elif not table.has_arguments:
            raise ValueError(f"{path}: must have no column {name}; its columns are {', '.join(table.columns)}")


def _check_column(where: str, values: Series, column: Column) -> None:
    empty = values.isna()
    if values.dtype.kind == "f":
        empty |= values.abs() == inf
    if empty.any() and not column.may_be_empty:
        row = _first(empty)
        raise ValueError(f"{where} of row {row} must not be empty, NaN or infinite, got {values.iloc[row]}")
    given = values[~empty].infer_objects()
    if not _has_kind(given, column.kind):
        raise ValueError(f"{where} must have {KINDS[column.kind]}, got {values.dtype}")
    if column.kind in ("text", "list"):
        return
    outside = (given < column.lowest - ROUNDING) | (given > column.highest + ROUNDING)
    if outside.any():
        row = int((~empty).to_numpy().nonzero()[0][_first(outside)])
        expected = (
            f"at least {column.lowest:g}" if column.highest == inf else f"from {column.lowest:g} to {column.highest:g}"
        )
        raise ValueError(f"{where} of row {row} must be {expected}, got {values.iloc[row]:g}")


def _has_kind(values: Series, kind: str) -> bool:
    if kind == "text":
        return all(isinstance(value, str) for value in values)
    if kind == "list":
        return not any(isinstance(value, str) for value in values)
    if not len(values):
        return True
    # A column of whole numbers with empty cells is one of floats.
    return values.dtype.kind in "iu" or (
        values.dtype.kind == "f" and (kind == "number" or bool((values % 1 == 0).all()))
    )


def _first(rows: Series) -> int:
    return int(rows.to_numpy().argmax())
