"""Reading what the workflow has measured, and reducing it to the curves that figures and claims are about."""

import math
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from replication.files.reading import read_table
from replication.methods import BLOCK_METHODS
from replication.settings import labelled
from sparselib import pareto_front

#: Attention forms as the published tables name them, in their order.
FORMS = ["Full", "Block", "Window", "Dilated", "Global", "Random", "BigBird", "Top-k self", "Top-k", "Top-k OOW",
         "Top-k OOW cross"]  # fmt: skip
#: Character models as the published tables name them, in their order.
CHARACTER_MODELS = {
    "block": "Transformer block",
    "transformer-xl": "Transformer-XL",
    "transformer-xl-top-k": "Transformer-XL + Top-k",
    "adaptive-span": "Adaptive span",
    "adaptive-span-top-32": "Adaptive span + Top-32",
    "adaptive-span-top-8": "Adaptive span + Top-8",
}
#: Those of them whose spans Table 4 of Extremely Sparse Transformer compares.
SPAN_MODELS = ["adaptive-span", "adaptive-span-top-32", "adaptive-span-top-8"]
#: Models with the patterns of Sparse Transformers, and with none.
PATTERN_MODELS = {"dense": "Dense", "strided": "Strided", "fixed": "Fixed"}
POINT = ["seed", "method", "setting", "window"]


def read_sweep(folder: Path) -> pd.DataFrame:
    """The recall sweep of every seed: a row per layer, method, setting, window and head, or their means as a run stored them.

    Raises ``FileNotFoundError`` if there is none.
    """
    return labelled(_read_all(folder / "sweep", "seed*", "the recall sweep"))


def read_replaced(folder: Path) -> pd.DataFrame:
    """Perplexity, or BLEU, under replaced graphs, every seed. Raises ``FileNotFoundError`` if there is none."""
    return labelled(_read_all(folder / "replaced", "seed*", "replaced graphs"))


def read_blocks(folder: Path) -> pd.DataFrame:
    """Perplexity under predicted blocks, every block size and seed. Raises ``FileNotFoundError`` if there is none."""
    return _read_all(folder / "blocks", "size*/evaluated/seed*.csv", "block sizes")


def read_block_times(folder: Path) -> pd.DataFrame:
    """Seconds per sequence, every block size. Raises ``FileNotFoundError`` if there is none."""
    return _read_all(folder / "blocks", "size*/timed.csv", "block sizes")


def read_rules(folder: Path) -> pd.DataFrame:
    """Rules on a model that was not trained for them: ``recall, sparsity`` of each sequence, layer and head, ``drift, cosine``.

    A seed of -1 is that of rules which no seed changes. Raises ``FileNotFoundError`` if there is none.
    """
    return labelled(_read_all(folder, "rules.*", "rules"))


def read_sparsified(folder: Path) -> dict[float, pd.DataFrame]:
    """The same of the model whose heads were tuned, by its target. Raises ``FileNotFoundError`` if there is none."""
    names = sorted(path.name for path in folder.glob("sparsified/recall*"))
    found = {
        float(name.removeprefix("recall")): labelled(
            _read_all(folder / "sparsified" / name, "measured.*", "tuned heads")
        )
        for name in names
    }
    if not found:
        raise FileNotFoundError(f"{folder}: no table of tuned heads; run the workflow first")
    return found


def rule_points(folder: Path) -> pd.DataFrame:
    """A row per rule and setting, and one for every target of tuned heads: means over seeds, sequences, layers and heads.

    ``least`` is the mean recall of the head that has the least. Raises ``FileNotFoundError`` if there is none.
    """
    measured = pd.concat([read_rules(folder), *read_sparsified(folder).values()])
    keys = ["method", "setting"]
    points = measured.groupby(keys, sort=False)[["recall", "sparsity", "drift", "cosine"]].mean()
    heads = measured.groupby([*keys, "layer", "head"], sort=False)["recall"].mean()
    points.insert(1, "least", heads.groupby(level=keys, sort=False).min())
    return points.reset_index()


def read_captioning(folder: Path, name: str) -> pd.DataFrame:
    """A table of every captioner, ``measured.csv``, ``captions.parquet`` or ``attention.parquet``, with its model and seed.

    Raises ``FileNotFoundError`` if there is none.
    """
    tables = [_with_run(read_table(path), path) for path in sorted(folder.glob(f"models/*/seed*/{name}"))]
    if not tables:
        raise FileNotFoundError(f"{folder}: no table of a captioner ({name}); run the workflow first")
    return pd.concat(tables, ignore_index=True)


def _with_run(table: pd.DataFrame, path: Path) -> pd.DataFrame:
    """With columns ``model`` and ``seed`` before its own, of the path ``.../models/<model>/seed<seed>/<name>``."""
    table.insert(0, "model", path.parents[1].name)
    table.insert(1, "seed", int(path.parent.name.removeprefix("seed")))
    return table


def read_forms(folder: Path) -> pd.DataFrame:
    """BLEU of every trained attention form: ``form, budget`` (NaN: Full), ``seed, tested_with, bleu, attended_<place>``.

    ``folder`` is that of a language pair.

    Raises
    ------
    FileNotFoundError
        If there is none.
    """
    return _read_all(folder, "*_seed*/measured.csv", "a trained attention form")


def read_cross_attention(folder: Path) -> pd.DataFrame:
    """Cross-attention of every trained form, a row per decoder layer. Raises ``FileNotFoundError`` if there is none."""
    return _read_all(folder, "*_seed*/cross_attention.csv", "a trained attention form")


def read_pronouns(folder: Path) -> pd.DataFrame:
    """Contrasts of pronouns, and in how many a model was right: ``context, pronoun, contrasts, right, form, budget, seed``.

    ``folder`` is that of a language pair. Raises ``FileNotFoundError`` if there is none.
    """
    return _read_all(folder, "*_seed*/pronouns.csv", "pronouns")


def _read_all(folder: Path, pattern: str, what: str) -> pd.DataFrame:
    """The tables that match a pattern, one below the other in the order of their paths."""
    paths = sorted(folder.glob(pattern))
    if not paths:
        raise FileNotFoundError(f"{folder}: no table of {what} ({pattern}); run the workflow first")
    return pd.concat([read_table(path) for path in paths], ignore_index=True)


def as_trained(forms: pd.DataFrame) -> pd.DataFrame:
    """Rows of :func:`read_forms` that were tested with the form that they were trained with."""
    return forms[forms["tested_with"] == forms["form"]]


def by_budget(forms: pd.DataFrame, measure: str = "bleu") -> pd.DataFrame:
    """As trained, means over seeds: a row per form in the papers' order, a column per budget, largest first.

    Full, which knows no budget, has its value in the column ``full``.
    """
    table = as_trained(forms).assign(budget=lambda rows: rows["budget"].fillna(0).astype(int))
    table = table.pivot_table(index="form", columns="budget", values=measure).rename(columns={0: "full"})
    budgets = sorted((column for column in table if column != "full"), reverse=True)
    columns = ["full", *budgets] if "full" in table else budgets
    return table.loc[[form for form in FORMS if form in table.index], columns].rename_axis(columns=None)


def read_characters(folder: Path, name: str, models: Iterable[str] = tuple(CHARACTER_MODELS)) -> pd.DataFrame:
    """``measured.csv`` or ``log.csv`` of every character model, with ``corpus``, ``model`` and ``seed`` as first columns.

    Models come in the order of ``models``, corpora and seeds in that of their names.

    Raises
    ------
    FileNotFoundError
        If there is none.
    """
    tables = []
    for model in models:
        for path in sorted(folder.glob(f"*/models/{model}/seed*/{name}")):
            table = _with_run(read_table(path), path)
            table.insert(0, "corpus", path.parents[3].name)
            tables.append(table)
    if not tables:
        raise FileNotFoundError(f"{folder}: no table of a character model ({name}); run the workflow first")
    return pd.concat(tables, ignore_index=True)


def spans_at_bits(logs: pd.DataFrame) -> pd.DataFrame:
    """Mean spans where validation first came down to given bits per character (Table 4), of one corpus.

    Parameters
    ----------
    logs : rows of :func:`read_characters` (``log.csv``) of one corpus; other models than :data:`SPAN_MODELS` are left out

    Returns
    -------
    A row per model and seed, a column per level of bits: four tenths of a bit, down to the last one that every run reached.
    """
    runs = dict(list(logs[logs["model"].isin(SPAN_MODELS)].groupby(["model", "seed"], sort=False)))
    worst = max(log["valid_bits"].min() for log in runs.values())
    last = np.ceil(round(worst * 10, 6))  # rounded, as 1.1 * 10 is a little more than 11
    levels = [round((last + more) / 10, 1) for more in (3, 2, 1, 0)]
    spans = {run: [span_at(log, bits) for bits in levels] for run, log in runs.items()}
    table = pd.DataFrame.from_dict(spans, orient="index", columns=levels)
    return table.set_axis(pd.MultiIndex.from_tuples(table.index, names=["model", "seed"]))


def span_at(log: pd.DataFrame, bits: float) -> float:
    """The mean span at which validation first came down to ``bits`` per character (a cell of Table 4).

    Between two lines of the log it is interpolated linearly, as the published cells are; NaN if it never came down so far.

    Parameters
    ----------
    log : table with ``valid_bits`` and ``mean_span``, in the order of training
    """
    reached = np.flatnonzero(log["valid_bits"].to_numpy() <= bits)
    if len(reached) == 0:
        return math.nan
    after = reached[0]
    lines = log.iloc[max(0, after - 1) : after + 1]
    # np.interp wants rising abscissae, and bits fall here: the line before is above ``bits``, the line after is not.
    return float(np.interp(-bits, -lines["valid_bits"], lines["mean_span"]))


def at_every_count(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of :data:`BLOCK_METHODS` at block sizes where every K was measured: means over sizes compare at those only."""
    rows = table[table["method"].isin(BLOCK_METHODS)]
    return rows[rows.groupby("block_size")["count"].transform("nunique") == rows["count"].nunique()]


def over_heads(sweep: pd.DataFrame) -> pd.DataFrame:
    """Plain mean over layers and heads, a row per seed, method, setting and window."""
    measures = ["recall", "sparsity", "precision", "exact", "empty_rows", "gold_sparsity"]
    return sweep.groupby(POINT, as_index=False, sort=False)[measures].mean()


def over_seeds(points: pd.DataFrame) -> pd.DataFrame:
    """Mean over seeds of every numeric column, a row per method, setting and window."""
    return points.drop(columns="seed").groupby(POINT[1:], as_index=False, sort=False).mean(numeric_only=True)


def front(points: pd.DataFrame, score: str) -> pd.DataFrame:
    """Each method's Pareto front of sparsity and ``score`` (both: more is better), in the order of sparsity."""
    kept = [
        group.iloc[pareto_front(group["sparsity"].to_numpy(), group[score].to_numpy())]
        for _, group in points.groupby("method", sort=False)
    ]
    return pd.concat(kept).sort_values(["method", "sparsity"], kind="stable")


def nearest(values: Iterable[int], wanted: int) -> int:
    """What of the values is nearest to the wanted one, the smaller of two: a grid may lack the paper's own point."""
    return min(sorted(set(values)), key=lambda value: abs(value - wanted))


def spread(values: pd.Series) -> str:
    """Mean and sample standard deviation, as tables print them."""
    return f"{np.mean(values):.4f} ± {np.std(values, ddof=1) if len(values) > 1 else float('nan'):.4f}"
