"""What tables keep of measurements of time and memory, and how much of it can be told."""

import numpy as np
import pandas as pd

#: Quartiles further apart than this share of the median: a timing that says little.
WIDE = 0.25


def repeats(cell: str) -> np.ndarray:
    """Measurements of one kind that stand in one cell of a table, separated by spaces."""
    return np.array(str(cell).split(), float)


def block_seconds(timed: pd.DataFrame) -> pd.DataFrame:
    """Seconds by block size and repeat (rows) and (method, K) (columns), means over numbers of clusters.

    ``timed``: rows of :func:`replication.masked_lm.blocks.timed`. A table that kept no repeats has its medians as one.
    """
    column = "model_repeats" if "model_repeats" in timed else "model_seconds"
    table = timed.assign(seconds=timed[column].map(repeats)).explode("seconds")
    keys = ["block_size", "method", "count", "clusters"]
    table = table.assign(repeat=table.groupby(keys).cumcount(), seconds=table["seconds"].astype(float))
    return table.pivot_table(index=["block_size", "repeat"], columns=["method", "count"], values="seconds")


def summary(seconds: pd.DataFrame) -> pd.DataFrame:
    """Of repeats in rows, a row per column: ``seconds`` (their median), ``lower, upper`` (quartiles), ``disturbed``.

    Example
    -------
    >>> summary(pd.DataFrame({"steady": [1.0, 1.0, 1.1], "not": [1.0, 2.0, 3.0]}))["disturbed"].to_dict()
    {'steady': False, 'not': True}
    """
    found = seconds.quantile([0.5, 0.25, 0.75]).T.set_axis(["seconds", "lower", "upper"], axis=1)
    return found.assign(disturbed=is_disturbed(found))


def is_disturbed(found: pd.DataFrame) -> pd.Series:
    """Of rows with ``seconds, lower, upper``: those whose quartiles are wide."""
    return found["upper"] - found["lower"] > WIDE * found["seconds"]


def note_of(seconds: pd.DataFrame) -> list[str]:
    """What a verdict on timings says of those that were disturbed, of repeats in rows: nothing where none was."""
    disturbed = summary(seconds)["disturbed"]
    if not disturbed.any():
        return []
    return [
        f"{disturbed.sum()} of {len(disturbed)} timings disturbed: quartiles more than {WIDE:.0%} of the median apart"
    ]


def measurable(table: pd.DataFrame) -> pd.Series:
    """``bytes``, NaN where they are too few to be told: a CPU process' resident memory is known to 2 MiB or so."""
    return table["bytes"].where((table["device"] != "cpu") | (table["bytes"] >= 2 * 2**20))
