"""Repeated measurements of time and memory in tables, and their reliability."""

import numpy as np
import pandas as pd

#: A timing is disturbed if its interquartile range exceeds this share of the median.
WIDE = 0.25


def repeats(cell: str) -> np.ndarray:
    """Return the measurements in one cell of a table, which spaces separate."""
    return np.array(str(cell).split(), float)


def block_seconds(timed: pd.DataFrame) -> pd.DataFrame:
    """Return seconds by block size and repeat (rows) and by method and K (columns), as means over numbers of clusters.

    Parameters
    ----------
    timed : DataFrame
        Rows of :func:`replication.masked_lm.blocks.time_blocks`. If it has no repeats, its medians count as one repeat.
    """
    column = "model_repeats" if "model_repeats" in timed else "model_seconds"
    table = timed.assign(seconds=timed[column].map(repeats)).explode("seconds")
    keys = ["block_size", "method", "count", "clusters"]
    table = table.assign(repeat=table.groupby(keys).cumcount(), seconds=table["seconds"].astype(float))
    return table.pivot_table(index=["block_size", "repeat"], columns=["method", "count"], values="seconds")


def summary(seconds: pd.DataFrame) -> pd.DataFrame:
    """Summarise repeats, given as rows, by a row per column.

    Returns
    -------
    DataFrame
        ``seconds`` (median), ``lower, upper`` (quartiles) and ``disturbed``.

    Examples
    --------
    >>> summary(pd.DataFrame({"steady": [1.0, 1.0, 1.1], "not": [1.0, 2.0, 3.0]}))["disturbed"].to_dict()
    {'steady': False, 'not': True}
    """
    quartiles = seconds.quantile([0.5, 0.25, 0.75]).T.set_axis(["seconds", "lower", "upper"], axis=1)
    return quartiles.assign(disturbed=is_disturbed(quartiles))


def is_disturbed(timings: pd.DataFrame) -> pd.Series:
    """Return whether each row with ``seconds, lower, upper`` is disturbed."""
    return timings["upper"] - timings["lower"] > WIDE * timings["seconds"]


def note_of(seconds: pd.DataFrame) -> list[str]:
    """Return the note of a verdict on disturbed timings, whose repeats are rows; an empty list if none is disturbed."""
    disturbed = summary(seconds)["disturbed"]
    if not disturbed.any():
        return []
    return [
        f"{disturbed.sum()} of {len(disturbed)} timings disturbed: quartiles more than {WIDE:.0%} of the median apart"
    ]


def measurable(table: pd.DataFrame) -> pd.Series:
    """Return ``bytes``, with NaN below 2 MiB on a CPU, where a process's resident memory is not known more precisely."""
    return table["bytes"].where((table["device"] != "cpu") | (table["bytes"] >= 2 * 2**20))
