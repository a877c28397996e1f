"""Reading of the workflow's measurements."""

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from replication.files.reading import read_table
from replication.files.verification import listed_files
from replication.results.settings import read_points

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


def read_sweep(folder: Path) -> pd.DataFrame:
    """Return the recall sweeps of all methods and seeds.

    Returns
    -------
    DataFrame
        A row per layer, method, setting, window and head, or means over them, depending on what the run stored.

    Raises
    ------
    FileNotFoundError
        If there is no sweep.
    """
    return read_points(_paths(folder / "sweep", "*", "the recall sweep"))


def read_replaced(folder: Path) -> pd.DataFrame:
    """Return perplexity, or BLEU, under replaced graphs, of all seeds.

    Raises
    ------
    FileNotFoundError
        If there is no table.
    """
    return read_points(_paths(folder / "replaced", "seed*", "replaced graphs"))


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
    return read_points(_paths(folder, "rules.*", "rules"))


def read_sparsified(folder: Path) -> dict[float, pd.DataFrame]:
    """Return tables like :func:`read_rules` of the models with tuned heads, by target recall.

    Raises
    ------
    FileNotFoundError
        If there is no table.
    """
    names = [path.name for path in listed_files(folder, "sparsified/recall*")]
    tables = {
        float(name.removeprefix("recall")): read_points(
            _paths(folder / "sparsified" / name, "measured.*", "tuned heads")
        )
        for name in names
    }
    if not tables:
        raise FileNotFoundError(f"{folder}: no table of tuned heads; run the workflow first")
    return tables


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
        ``form``, ``budget`` (NaN for Full), ``seed``, ``tested_with``, ``bleu``, ``ceiling`` and ``attended_<place>``.

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
    return pd.concat([read_table(path) for path in _paths(folder, pattern, what)], ignore_index=True)


def _paths(folder: Path, pattern: str, what: str) -> list[Path]:
    """Return the paths that match a pattern, in order."""
    paths = listed_files(folder, pattern)
    if not paths:
        raise FileNotFoundError(f"{folder}: no table of {what} ({pattern}); run the workflow first")
    return paths


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
