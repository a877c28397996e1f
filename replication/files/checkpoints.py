"""Shipped checkpoints: trained weights in half precision, with the settings and text that a run must share to use them.

A checkpoint is a folder with ``weights.safetensors``, ``made_by.json`` and the small files that training writes beside a model.
A table of all checkpoints, ``weights.csv``, lists the hash of each weights file, which depends on the weights alone, and a
hash of the other files.
"""

import csv
import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save

from replication.files.contents import Contents, read_json
from replication.files.names import file_name, place_within
from replication.files.storage import FormatError, replacing, write_json

WEIGHTS, MADE_BY, TABLE = "weights.safetensors", "made_by.json", "weights.csv"
#: Files that every training writes.
MODEL, SUMMARY = "model.safetensors", "training.json"
#: Files with the weights that a training changed: the whole model, or its adapters.
WEIGHTS_FILES = (MODEL, "adapters.safetensors")


def ship(
    trained: Path,
    checkpoints: Path,
    name: str,
    run: dict[str, object],
    text: list[Path],
    code: str,
    beside: list[str],
    measured: list[Path],
    weights_file: str = MODEL,
) -> str:
    """Make the checkpoint ``checkpoints/name`` of a trained model.

    Parameters
    ----------
    trained : Path
        Folder that training wrote.
    checkpoints : Path
        Folder of all checkpoints.
    name : str
        Name of the checkpoint, a path.
    run : dict
        Settings and seed of the training, as plain JSON.
    text : list of Path
        Training text, as in :func:`text_hash`.
    code : str
        Hash of the code that trained the model.
    beside : list of str
        Names of further files of ``trained`` that belong to the checkpoint.
    measured : list of Path
        CSV tables with measurements of the model, for information.
    weights_file : str
        File of ``trained`` with the weights that training changed: the whole model, or its adapters.

    Returns
    -------
    str
        Hash of the weights, as in the table of checkpoints.

    Raises
    ------
    FileNotFoundError
        If a file is missing.
    ValueError
        If a weight is too large for half precision.
    """
    changed = trained / weights_file
    if not changed.exists():
        raise FileNotFoundError(f"{changed}: no such file")
    weights = half_precision(changed)
    with safe_open(changed, framework="np") as file:
        header = file.metadata()
    made_by = {
        "run": run,
        "text": text_hash(text),
        "code": code,
        "measured": {path.name: rows(path) for path in measured},
    }
    made_by |= {"training": json.loads((trained / SUMMARY).read_text()), "header": header, "files": sorted(beside)}
    made_by["weights"] = weights_file
    folder = checkpoints / name
    with replacing(folder / WEIGHTS) as temporary:
        temporary.write_bytes(weights)
    for file in beside:
        with replacing(folder / file) as temporary:
            shutil.copyfile(trained / file, temporary)
    write_json(folder / MADE_BY, made_by)
    row = {"checkpoint": name, "sha256": hashlib.sha256(weights).hexdigest(), "others": _hash_of_others(folder)}
    table = read_table(checkpoints) | {name: row}
    with replacing(checkpoints / TABLE) as temporary, open(temporary, "w", newline="") as file:
        writer = csv.DictWriter(file, list(row), lineterminator="\n")
        writer.writeheader()
        writer.writerows(table[checkpoint] for checkpoint in sorted(table))
    return row["sha256"]


def unpack(
    checkpoints: Path, name: str, run: dict[str, object], text: list[Path], code: str, output: Path
) -> list[str]:
    """Unpack a checkpoint into the files that training wrote, with weights in single precision.

    Of a model with adapters, these are the adapters alone; ``replication.masked_lm.adapters`` adds them to their base.

    Parameters
    ----------
    checkpoints, name, run, text, code
        As in :func:`ship`.
    output : Path
        Folder of the model.

    Returns
    -------
    list of str
        Warnings: whether other code trained the model.

    Raises
    ------
    FileNotFoundError
        If there is no such checkpoint.
    FormatError
        If a hash is not the one in the table, or a file's name leads out of the folder.
    ValueError
        If the settings, the seed or the text differ from the checkpoint's; the error names each difference.
    """
    folder = checkpoints / name
    for file in (WEIGHTS, MADE_BY):
        if not (folder / file).exists():
            raise FileNotFoundError(f"{folder / file}: no such file")
    row = read_table(checkpoints).get(name, {})
    found = {"sha256": hashlib.sha256((folder / WEIGHTS).read_bytes()).hexdigest(), "others": _hash_of_others(folder)}
    for column, files in (("sha256", WEIGHTS), ("others", MADE_BY)):
        if (actual := found[column]) != (expected := row.get(column)):
            listed = f"lists {expected[:16]}" if expected else f"does not list {name}"
            others = ", with the files that it names," if files == MADE_BY else ""
            raise FormatError(
                f"{folder / files}: its hash{others} is {actual[:16]}, but {checkpoints / TABLE} {listed};"
                f" to restore it: git stash push {folder}"
            )
    made_by = read_json(folder / MADE_BY)
    problems = [f"{key} must be {there}, got {here}" for key, here, there in differences(run, made_by["run"])]
    if (hashed := text_hash(text)) != made_by["text"]:
        names = ", ".join(path.name for path in text)
        problems.append(f"the text ({names}) must have the hash {made_by['text'][:16]}, got {hashed[:16]}")
    if problems:
        raise ValueError(f"{folder} does not fit: {'; '.join(problems)}")
    with safe_open(folder / WEIGHTS, framework="np") as file:
        tensors = {key: file.get_tensor(key) for key in file.keys()}
    single = {key: value.astype(np.float32) if value.dtype == np.float16 else value for key, value in tensors.items()}
    with replacing(output / _weights_file(folder)) as temporary:
        temporary.write_bytes(save(single, made_by["header"]))
    for file in made_by["files"]:
        with replacing(output / file) as temporary:
            shutil.copyfile(folder / file, temporary)
    write_json(output / SUMMARY, made_by["training"])
    return [] if code == made_by["code"] else [f"{folder}: trained by code {made_by['code']}, this code is {code}"]


def compare(checkpoints: Path, results: Path) -> dict[str, str]:
    """Compare the checkpoints with the models of the same names below ``results``.

    Returns
    -------
    dict of str
        ``same``, ``other`` or ``missing`` for each checkpoint.

    Raises
    ------
    FileNotFoundError
        If there are no checkpoints.
    """
    if not (checkpoints / TABLE).exists():
        raise FileNotFoundError(f"{checkpoints / TABLE}: no such file")
    comparison = {}
    for name, row in read_table(checkpoints).items():
        path = results / name / _weights_file(checkpoints / name)
        same = path.exists() and hashlib.sha256(half_precision(path)).hexdigest() == row["sha256"]
        comparison[name] = "same" if same else "other" if path.exists() else "missing"
    return comparison


def _weights_file(folder: Path) -> str:
    # Checkpoints from before adapters contain a whole model each.
    name = read_json(folder / MADE_BY).get("weights", MODEL)
    if name not in WEIGHTS_FILES:
        raise FormatError(f"{folder / MADE_BY}: weights must be {' or '.join(WEIGHTS_FILES)}, got {name}")
    return name


def half_precision(path: Path) -> bytes:
    """Return the bytes of a safetensors file with a file's weights in float16, and without its header's metadata.

    Raises
    ------
    ValueError
        If a weight is too large for float16.
    """
    halves = {}
    with safe_open(path, framework="np") as file:
        for name in file.keys():
            tensor = file.get_tensor(name)
            with np.errstate(over="ignore"):
                halves[name] = tensor.astype(np.float16) if tensor.dtype == np.float32 else tensor
            if not np.isfinite(halves[name]).all():
                raise ValueError(f"{path}: {name} has numbers too large for 16 bits")
    return save(halves)


def text_hash(paths: Iterable[Path]) -> str:
    """Return a hash of texts in this order: of their bytes, or of the token ids alone for a safetensors file."""
    digest = hashlib.sha256()
    for path in paths:
        if path.suffix == ".safetensors":
            with safe_open(path, framework="np") as file:
                ids = file.get_tensor("input_ids")
            content = f"{ids.dtype} {ids.shape}".encode() + ids.tobytes()
        else:
            content = path.read_bytes()
        digest.update(hashlib.sha256(content).digest())
    return digest.hexdigest()


def differences(here: object, there: object, key: str = "") -> Iterator[tuple[str, object, object]]:
    """Yield the path of keys and both values wherever two JSON values differ, with None for a missing value."""
    if isinstance(here, dict) and isinstance(there, dict):
        for name in sorted(here.keys() | there.keys()):
            yield from differences(here.get(name), there.get(name), f"{key}.{name}" if key else name)
    elif here != there:
        yield key, here, there


def read_table(checkpoints: Path) -> dict[str, dict[str, str]]:
    """Return the rows of the table of checkpoints by their names, or an empty dict if there is no table."""
    path = checkpoints / TABLE
    found = [Contents(path, row) for row in rows(path)] if path.exists() else []
    return {place_within(path, row["checkpoint"]): row for row in found}


def _hash_of_others(folder: Path) -> str:
    """Return a hash of a checkpoint's ``made_by.json`` and the files that it names."""
    content = (folder / MADE_BY).read_bytes()
    digest = hashlib.sha256(content)
    try:
        names = json.loads(content)["files"]
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f"{folder / MADE_BY}: is damaged ({error}); to restore it: git stash push {folder}") from None
    for name in names:
        path = folder / file_name(folder / MADE_BY, name)
        digest.update(name.encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
