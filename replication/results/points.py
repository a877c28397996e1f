"""Reduction of measurements to the points and curves of figures, tables and claims."""

import math
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from replication.predictors.methods import BLOCK_METHODS
from replication.results.measurements import FORMS, SPAN_MODELS, read_rules, read_sparsified

POINT = ["seed", "method", "setting", "window"]


def rule_points(folder: Path, by: Iterable[str] = ()) -> pd.DataFrame:
    """Return the means over seeds, sequences, layers and heads of every rule and of tuned heads.

    Parameters
    ----------
    folder : Path
        Folder of the sparsified model.
    by : iterable of str
        Further columns that tell points apart, such as ``seed``.

    Returns
    -------
    DataFrame
        A row per rule and setting, and per target of tuned heads. ``least`` is the lowest mean recall of a head.

    Raises
    ------
    FileNotFoundError
        If there is no table.
    """
    measured = pd.concat([read_rules(folder), *read_sparsified(folder).values()])
    keys = ["method", "setting", *by]
    points = measured.groupby(keys, sort=False)[["recall", "sparsity", "drift", "cosine"]].mean()
    heads = measured.groupby([*keys, "layer", "head"], sort=False)["recall"].mean()
    points.insert(1, "least", heads.groupby(level=keys, sort=False).min())
    return points.reset_index()


def as_trained(forms: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of `read_forms` in which the model is tested with the form it was trained with."""
    return forms[forms["tested_with"] == forms["form"]]


def by_budget(forms: pd.DataFrame, measure: str = "bleu") -> pd.DataFrame:
    """Return means over seeds of the models tested as trained, by form and budget.

    Parameters
    ----------
    forms : DataFrame
        Rows of :func:`~replication.results.measurements.read_forms`.
    measure : str
        Column to average.

    Returns
    -------
    DataFrame
        A row per form in the papers' order, a column per budget, largest first. Full has no budget: its value is in the column
        ``full``.
    """
    table = as_trained(forms).assign(budget=lambda rows: rows["budget"].fillna(0).astype(int))
    table = table.pivot_table(index="form", columns="budget", values=measure).rename(columns={0: "full"})
    budgets = sorted((column for column in table if column != "full"), reverse=True)
    columns = ["full", *budgets] if "full" in table else budgets
    return table.loc[[form for form in FORMS if form in table.index], columns].rename_axis(columns=None)


def spans_at_bits(logs: pd.DataFrame) -> pd.DataFrame:
    """Return the mean spans at which validation first reaches given bits per character (Table 4), for one corpus.

    Parameters
    ----------
    logs : DataFrame
        Rows of :func:`~replication.results.measurements.read_characters` (``log.csv``) of one corpus; models without spans
        are ignored.

    Returns
    -------
    DataFrame
        A row per model and seed, a column per level. The four levels, 0.1 bits apart, end at the lowest that all runs reach.
    """
    runs = dict(list(logs[logs["model"].isin(SPAN_MODELS)].groupby(["model", "seed"], sort=False)))
    worst = max(log["valid_bits"].min() for log in runs.values())
    last = np.ceil(round(worst * 10, 6))  # rounded, because 1.1 * 10 is slightly more than 11
    levels = [round((last + more) / 10, 1) for more in (3, 2, 1, 0)]
    spans = {run: [span_at(log, bits) for bits in levels] for run, log in runs.items()}
    table = pd.DataFrame.from_dict(spans, orient="index", columns=levels)
    return table.set_axis(pd.MultiIndex.from_tuples(table.index, names=["model", "seed"]))


def span_at(log: pd.DataFrame, bits: float) -> float:
    """Return the mean span at which validation first reaches ``bits`` per character (a cell of Table 4).

    Parameters
    ----------
    log : DataFrame
        ``valid_bits`` and ``mean_span``, in training order.
    bits : float
        Level of the validation bits per character.

    Returns
    -------
    float
        Interpolated linearly between two rows of the log, like the published cells; NaN if the level is never reached.
    """
    reached = np.flatnonzero(log["valid_bits"].to_numpy() <= bits)
    if len(reached) == 0:
        return math.nan
    after = reached[0]
    lines = log.iloc[max(0, after - 1) : after + 1]
    # np.interp needs increasing abscissae, and bits decrease here, so both are negated.
    return float(np.interp(-bits, -lines["valid_bits"], lines["mean_span"]))


def at_every_count(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of :data:`BLOCK_METHODS` at block sizes with all K, so that means over sizes are comparable."""
    rows = table[table["method"].isin(BLOCK_METHODS)]
    return rows[rows.groupby("block_size")["count"].transform("nunique") == rows["count"].nunique()]


def over_heads(sweep: pd.DataFrame) -> pd.DataFrame:
    """Return means over layers and heads, a row per seed, method, setting and window."""
    # Sweeps that were stored before 2026-11-28 have no `keyless`.
    measures = ["recall", "sparsity", "precision", "exact", *({"keyless"} & set(sweep)), "gold_sparsity"]
    return sweep.groupby(POINT, as_index=False, sort=False)[measures].mean()


def over_seeds(points: pd.DataFrame) -> pd.DataFrame:
    """Return means over seeds of all numeric columns, a row per method, setting and window."""
    return points.drop(columns="seed").groupby(POINT[1:], as_index=False, sort=False).mean(numeric_only=True)


def nearest(values: Iterable[int], wanted: int) -> int:
    """Return the value closest to the wanted one; of two equally close values, the smaller.

    A grid may lack the point that the paper uses.
    """
    return min(sorted(set(values)), key=lambda value: abs(value - wanted))


def spread(values: pd.Series) -> str:
    """Return mean and sample standard deviation as printed in tables."""
    return f"{np.mean(values):.4f} ± {np.std(values, ddof=1) if len(values) > 1 else float('nan'):.4f}"
