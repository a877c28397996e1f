"""Settings of predictors in tables: a column per argument in files, and a label that tells points apart in memory.

>>> import pandas as pd
>>> table = pd.DataFrame({"method": ["bigbird", "kmeans"], "setting": ["random_keys=2", "clusters=4, top_k=1"]})
>>> stored = as_columns(table)
>>> stored["clusters"].tolist()
[nan, 4.0]
>>> labelled(stored)["setting"].tolist()
['random_keys=2', 'clusters=4, top_k=1']
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from replication.config import grids
from replication.files.reading import read_table
from replication.files.schema import tables

# Most readers of a table have imported pandas already; the command line has not.
if TYPE_CHECKING:
    import pandas as pd

#: Columns of arguments, in their order: those of predictors and selection rules, and the target of sparsified heads.
ARGUMENTS = (*grids.ARGUMENTS, "target")
#: What the columns of an own predictor's arguments begin with.
OWN = "own_"
#: The label, which is a column in memory only.
LABEL = "setting"
#: Columns that together name a row of a table with methods.
POINT = ("seed", "method", LABEL, "window", "target", "layer", "head", "sequence", "sentence")


def label(arguments: Mapping[str, object]) -> str:
    """Return the label of a point's arguments.

    >>> label({"top_k": 1, "clusters": 4.0})
    'clusters=4, top_k=1'
    """
    return ", ".join(f"{name}={_plain(value)}" for name, value in sorted(arguments.items()))


def arguments_of(label: str) -> dict[str, object]:
    """Return the arguments that a label names.

    >>> arguments_of("membership=one, threshold=0.5")
    {'membership': 'one', 'threshold': 0.5}
    """
    pairs = (part.split("=") for part in label.split(", ") if part)
    return {name: _value(text) for name, text in pairs}


def as_columns(table: pd.DataFrame) -> pd.DataFrame:
    """Replace a table's labels by a column per argument, empty where a method has no such argument."""
    arguments = {label: arguments_of(label) for label in table[LABEL].unique()}
    place, result = table.columns.get_loc(LABEL), table.drop(columns=LABEL)
    names = {name for of_label in arguments.values() for name in of_label}
    for number, name in enumerate(_in_order(names)):
        result.insert(
            place + number, name, table[LABEL].map({label: of_label.get(name) for label, of_label in arguments.items()})
        )
    return result


def read_points(paths: Iterable[Path]) -> pd.DataFrame:
    """Return the rows of stored tables in one, :func:`labelled`."""
    import pandas as pd

    return pd.concat([labelled(read_table(path), str(path)) for path in paths], ignore_index=True)


def labelled(table: pd.DataFrame, source: str = "the table") -> pd.DataFrame:
    """Replace a stored table's columns of arguments by the label of each point, after the column ``method``.

    In sweeps, ``window`` is the width of the window around each query, and no predictor has an argument of that name.

    Raises
    ------
    ValueError
        If a column is neither a measurement nor an argument of a method, or two rows are the same point: averages over points
        that this checkout cannot tell apart would be of settings that nobody chose. The error names `source`.
    """
    declared = {name for kind in tables().values() if kind.has_arguments for name in kind.columns}
    known = {*declared, *ARGUMENTS}
    if unknown := [name for name in table if name not in known and not name.startswith(OWN)]:
        raise ValueError(
            f"{source}: column {unknown[0]} must be a measurement or an argument of a method of this checkout; read the table"
            " with the checkout that made it"
        )
    arguments = {name for name in table if name in ARGUMENTS or name.startswith(OWN)}
    names = _in_order(arguments - ({"window"} if "sinks" not in table else set()))
    place, result = table.columns.get_loc("method") + 1, table.drop(columns=names)
    rows = table[names].astype(object).where(table[names].notna(), None).itertuples(index=False, name=None)
    labels: dict[tuple, str] = {}
    found = []
    for values in rows:
        if values not in labels:
            pairs = zip(names, values, strict=True)
            labels[values] = label({name: value for name, value in pairs if value is not None})
        found.append(labels[values])
    result.insert(place, LABEL, found if names else "")
    point = [name for name in POINT if name in result]
    if (twice := result.duplicated(point)).any():
        row = result.loc[twice.idxmax(), point]
        raise ValueError(f"{source}: must have one row per point, got two of {label(row.to_dict())}")
    return result


def _in_order(names: Iterable[str]) -> list[str]:
    """Return arguments in their order, and those of own predictors behind them."""
    return sorted(names, key=lambda name: (ARGUMENTS.index(name) if name in ARGUMENTS else len(ARGUMENTS), name))


def _plain(value: object) -> object:
    """Return a whole number without its point, so that a column with gaps gives the label of one without."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _value(text: str) -> object:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text
