"""Reading of the workflow's measurements, and their reduction to the curves of figures and claims."""

import math
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from replication.files.reading import read_table
from replication.files.verification import listed_files
from replication.methods import BLOCK_METHODS
from replication.settings import labelled
from sparselib import pareto_front

#: Attention forms, with the names and in the order of the published tables.
FORMS = ["Full", "Block", "Window", "Dilated", "Global", "Random", "BigBird", "Top-k self", "Top-k", "Top-k OOW",
         "Top-k OOW cross"]  # fmt: skip
#: Character models with their names in the published tables, in the order of those tables.
CHARACTER_MODELS = {
    "block": "Transformer block",
    "transformer-xl": "Transformer-XL",
    "transformer-xl-top-k": "Transformer-XL + Top-k",
    "adaptive-span": "Adaptive span",
    "adaptive-span-top-32": "Adaptive span + Top-32",
    "adaptive-span-top-8": "Adaptive span + Top-8",
}
#: Character models whose spans are compared in Table 4 of Extremely Sparse Transformer.
SPAN_MODELS = ["adaptive-span", "adaptive-span-top-32", "adaptive-span-top-8"]
#: Models with Sparse Transformers' patterns, and without.
PATTERN_MODELS = {"dense": "Dense", "strided": "Strided", "fixed": "Fixed"}
POINT = ["seed", "method", "setting", "window"]


def read_sweep(folder: Path) -> pd.DataFrame:
    """Return the recall sweeps of all seeds.

    Returns
    -------
    DataFrame
        A row per layer, method, setting, window and head, or means over them, depending on what the run stored.

    Raises
    ------
    FileNotFoundError
        If there is no sweep.
    """
    return labelled(_read_all(folder / "sweep", "seed*", "the recall sweep"))


def read_replaced(folder: Path) -> pd.DataFrame:
    """Return perplexity, or BLEU, under replaced graphs, of all seeds.

    Raises
    ------
    FileNotFoundError
        If there is no table.
    """
    return labelled(_read_all(folder / "replaced", "seed*", "replaced graphs"))


def read_blocks(folder: Path) -> pd.DataFrame:
    """Return perplexity under predicted blocks, of all block sizes and seeds.

    Raises
    ------
    FileNotFoundError
        If there is no table.
    """
    return _read_all(folder / "blocks", "size*/evaluated/seed*.csv", "block sizes")


def read_block_times(folder: Path) -> pd.DataFrame:
    """Return seconds per sequence, of all block sizes.

    Raises
    ------
    FileNotFoundError
        If there is no table.
    """
    return _read_all(folder / "blocks", "size*/timed.csv", "block sizes")


def read_rules(folder: Path) -> pd.DataFrame:
    """Return the measurements of selection rules applied without retraining.

    Returns
    -------
    DataFrame
        ``recall, sparsity, drift, cosine`` of each sequence, layer and head. Rules that no seed changes have the seed -1.

    Raises
    ------
    FileNotFoundError
        If there is no table.
    """
    return labelled(_read_all(folder, "rules.*", "rules"))


def read_sparsified(folder: Path) -> dict[float, pd.DataFrame]:
    """Return tables like :func:`read_rules` of the models with tuned heads, by target recall.

    Raises
    ------
    FileNotFoundError
        If there is no table.
    """
    names = [path.name for path in listed_files(folder, "sparsified/recall*")]
    tables = {
        float(name.removeprefix("recall")): labelled(
            _read_all(folder / "sparsified" / name, "measured.*", "tuned heads")
        )
        for name in names
    }
    if not tables:
        raise FileNotFoundError(f"{folder}: no table of tuned heads; run the workflow first")
    return tables


def rule_points(folder: Path) -> pd.DataFrame:
    """Return the means over seeds, sequences, layers and heads of every rule and of tuned heads.

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
    keys = ["method", "setting"]
    points = measured.groupby(keys, sort=False)[["recall", "sparsity", "drift", "cosine"]].mean()
    heads = measured.groupby([*keys, "layer", "head"], sort=False)["recall"].mean()
    points.insert(1, "least", heads.groupby(level=keys, sort=False).min())
    return points.reset_index()


def read_captioning(folder: Path, name: str) -> pd.DataFrame:
    """Return one table of all captioners, with columns ``model`` and ``seed``.

    Parameters
    ----------
    folder : Path
        Folder of the captioning task.
    name : str
        ``measured.csv``, ``captions.parquet`` or ``attention.parquet``.

    Raises
    ------
    FileNotFoundError
        If no captioner has such a table.
    """
    tables = [_with_run(read_table(path), path) for path in listed_files(folder, f"models/*/seed*/{name}")]
    if not tables:
        raise FileNotFoundError(f"{folder}: no table of a captioner ({name}); run the workflow first")
    return pd.concat(tables, ignore_index=True)


def _with_run(table: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Insert the columns ``model`` and ``seed``, read from the path ``.../models/<model>/seed<seed>/<name>``."""
    table.insert(0, "model", path.parents[1].name)
    table.insert(1, "seed", int(path.parent.name.removeprefix("seed")))
    return table


def read_forms(folder: Path) -> pd.DataFrame:
    """Return the BLEU of every translator trained with an attention form.

    Parameters
    ----------
    folder : Path
        Folder of a language pair.

    Returns
    -------
    DataFrame
        ``form``, ``budget`` (NaN for Full), ``seed``, ``tested_with``, ``bleu`` and ``attended_<place>``.

    Raises
    ------
    FileNotFoundError
        If there is no table.
    """
    return _read_all(folder, "*_seed*/measured.csv", "a trained attention form")


def read_cross_attention(folder: Path) -> pd.DataFrame:
    """Return the cross-attention of every trained form, a row per decoder layer.

    Raises
    ------
    FileNotFoundError
        If there is no table.
    """
    return _read_all(folder, "*_seed*/cross_attention.csv", "a trained attention form")


def _read_all(folder: Path, pattern: str, what: str) -> pd.DataFrame:
    """Concatenate the tables whose paths match a pattern, in path order."""
    paths = listed_files(folder, pattern)
    if not paths:
        raise FileNotFoundError(f"{folder}: no table of {what} ({pattern}); run the workflow first")
    return pd.concat([read_table(path) for path in paths], ignore_index=True)


def as_trained(forms: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of :func:`read_forms` in which the model is tested with the form it was trained with."""
    return forms[forms["tested_with"] == forms["form"]]


def by_budget(forms: pd.DataFrame, measure: str = "bleu") -> pd.DataFrame:
    """Return means over seeds of the models tested as trained, by form and budget.

    Parameters
    ----------
    forms : DataFrame
        Rows of :func:`read_forms`.
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


def read_characters(folder: Path, name: str, models: Iterable[str] = tuple(CHARACTER_MODELS)) -> pd.DataFrame:
    """Return one table of all character models, with ``corpus``, ``model`` and ``seed`` as first columns.

    Parameters
    ----------
    folder : Path
        Folder with a folder per corpus.
    name : str
        ``measured.csv`` or ``log.csv``.
    models : iterable of str
        Models to read, in the order of the rows. Corpora and seeds are in the order of their names.

    Raises
    ------
    FileNotFoundError
        If no model has such a table.
    """
    tables = []
    for model in models:
        for path in listed_files(folder, f"*/models/{model}/seed*/{name}"):
            table = _with_run(read_table(path), path)
            table.insert(0, "corpus", path.parents[3].name)
            tables.append(table)
    if not tables:
        raise FileNotFoundError(f"{folder}: no table of a character model ({name}); run the workflow first")
    return pd.concat(tables, ignore_index=True)


def spans_at_bits(logs: pd.DataFrame) -> pd.DataFrame:
    """Return the mean spans at which validation first reaches given bits per character (Table 4), for one corpus.

    Parameters
    ----------
    logs : DataFrame
        Rows of :func:`read_characters` (``log.csv``) of one corpus; models not in :data:`SPAN_MODELS` are ignored.

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
    measures = ["recall", "sparsity", "precision", "exact", "empty_rows", "gold_sparsity"]
    return sweep.groupby(POINT, as_index=False, sort=False)[measures].mean()


def over_seeds(points: pd.DataFrame) -> pd.DataFrame:
    """Return means over seeds of all numeric columns, a row per method, setting and window."""
    return points.drop(columns="seed").groupby(POINT[1:], as_index=False, sort=False).mean(numeric_only=True)


def front(points: pd.DataFrame, score: str) -> pd.DataFrame:
    """Return each method's Pareto front of sparsity and ``score`` (higher is better for both), by increasing sparsity."""
    kept = [
        group.iloc[pareto_front(group["sparsity"].to_numpy(), group[score].to_numpy())]
        for _, group in points.groupby("method", sort=False)
    ]
    return pd.concat(kept).sort_values(["method", "sparsity"], kind="stable")


def nearest(values: Iterable[int], wanted: int) -> int:
    """Return the value closest to the wanted one; of two equally close values, the smaller.

    A grid may lack the point that the paper uses.
    """
    return min(sorted(set(values)), key=lambda value: abs(value - wanted))


def spread(values: pd.Series) -> str:
    """Return mean and sample standard deviation as printed in tables."""
    return f"{np.mean(values):.4f} ± {np.std(values, ddof=1) if len(values) > 1 else float('nan'):.4f}"
