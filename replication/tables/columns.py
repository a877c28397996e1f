"""Lists of a run's tables and of their columns."""

from replication.files.schema import KINDS, Column, tables
from replication.tables.markers import markdown


def kinds_of_tables() -> str:
    """Return each kind of table with its files, what a row is, and its columns."""
    rows = []
    for table in tables().values():
        files = "<br>".join(f"`{files}`" for files in table.files)
        columns = [f"{name} (not always)" if name in table.may_be_missing else name for name in table.columns]
        columns += ["a column per argument of the rules"] * table.has_arguments
        rows.append([table.name, files, table.row, ", ".join(columns)])
    return markdown(["table", "files", "a row is a", "columns"], rows)


def columns() -> str:
    """Return each column with its kind, its range and its meaning in each table."""
    meanings: dict[str, dict[Column, list[str]]] = {}
    for table in tables().values():
        for name, column in table.columns.items():
            meanings.setdefault(name, {}).setdefault(column, []).append(table.name)
    rows = []
    for name, by_column in sorted(meanings.items()):
        for column, places in by_column.items():
            where = f" ({', '.join(places)})" if len(by_column) > 1 else ""
            rows.append([f"{name}{where}", KINDS[column.kind], _range(column), column.meaning])
    return markdown(["column", "cells are", "range", "meaning"], rows)


def _range(column: Column) -> str:
    if column.lowest == float("-inf"):
        return ""
    return (
        f"at least {column.lowest:g}" if column.highest == float("inf") else f"{column.lowest:g} to {column.highest:g}"
    )
