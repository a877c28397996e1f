"""Trained models that are shipped: their weights in half precision, and what made them, which has to fit where they are used.

A checkpoint is a folder with ``weights.safetensors``, ``made_by.json`` and the small files that training leaves beside a model.
A table of all checkpoints, ``weights.csv``, lists the hash of each weights file, which depends on the weights alone.
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

from replication.files.storage import FormatError, replacing, write_json

WEIGHTS, MADE_BY, TABLE = "weights.safetensors", "made_by.json", "weights.csv"
#: What training stages write, besides which each has files of its own.
MODEL, SUMMARY = "model.safetensors", "training.json"


def ship(
    trained: Path,
    checkpoints: Path,
    name: str,
    run: dict[str, object],
    text: list[Path],
    code: str,
    beside: list[str],
    measured: list[Path],
) -> str:
    """Make ``checkpoints/name`` of the folder in which a training stage left its model.

    Parameters
    ----------
    run : its settings and its seed, as plain JSON
    text : what it was trained on, files of :func:`text_hash`
    code : a hash of the code that trained it
    beside : names of further files of ``trained`` that belong to the checkpoint
    measured : CSV tables of what was measured with the model, for information

    Returns
    -------
    The hash of its weights, as the table lists it.
    """
    if not (trained / MODEL).exists():
        raise FileNotFoundError(f"{trained / MODEL}: no such file")
    weights = half_precision(trained / MODEL)
    with safe_open(trained / MODEL, framework="np") as file:
        header = file.metadata()
    made_by = {
        "run": run,
        "text": text_hash(text),
        "code": code,
        "measured": {path.name: rows(path) for path in measured},
    }
    made_by |= {"training": json.loads((trained / SUMMARY).read_text()), "header": header, "files": sorted(beside)}
    folder = checkpoints / name
    with replacing(folder / WEIGHTS) as temporary:
        temporary.write_bytes(weights)
    for file in beside:
        with replacing(folder / file) as temporary:
            shutil.copyfile(trained / file, temporary)
    write_json(folder / MADE_BY, made_by)
    listed = read_table(checkpoints) | {name: hashlib.sha256(weights).hexdigest()}
    with replacing(checkpoints / TABLE) as temporary, open(temporary, "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([("checkpoint", "sha256"), *sorted(listed.items())])
    return listed[name]


def unpack(
    checkpoints: Path, name: str, run: dict[str, object], text: list[Path], code: str, output: Path
) -> list[str]:
    """Put a shipped model where training would have: the same files, weights in single precision.

    Returns
    -------
    What the checkpoint does not say of itself but a user should know: that other code trained it.

    Raises
    ------
    FileNotFoundError
        If there is no such checkpoint.
    FormatError
        If the weights are not those that the table lists.
    ValueError
        If the settings, the seed or the text are not the checkpoint's; each difference is named.
    """
    folder = checkpoints / name
    for file in (WEIGHTS, MADE_BY):
        if not (folder / file).exists():
            raise FileNotFoundError(f"{folder / file}: no such file")
    content, promised = (folder / WEIGHTS).read_bytes(), read_table(checkpoints).get(name)
    if (found := hashlib.sha256(content).hexdigest()) != promised:
        listed = f"lists {promised[:16]}" if promised else f"does not list {name}"
        raise FormatError(f"{folder / WEIGHTS}: its hash is {found[:16]}, {checkpoints / TABLE} {listed}")
    made_by = json.loads((folder / MADE_BY).read_text())
    different = [f"{key} is {here}, the checkpoint's {there}" for key, here, there in differences(run, made_by["run"])]
    if (hashed := text_hash(text)) != made_by["text"]:
        different.append(f"the text ({', '.join(path.name for path in text)}) has hash {hashed[:16]}, "
                         f"the checkpoint's {made_by['text'][:16]}")  # fmt: skip
    if different:
        raise ValueError(f"{folder} does not fit: {'; '.join(different)}")
    with safe_open(folder / WEIGHTS, framework="np") as file:
        tensors = {key: file.get_tensor(key) for key in file.keys()}
    single = {key: value.astype(np.float32) if value.dtype == np.float16 else value for key, value in tensors.items()}
    with replacing(output / MODEL) as temporary:
        temporary.write_bytes(save(single, made_by["header"]))
    for file in made_by["files"]:
        with replacing(output / file) as temporary:
            shutil.copyfile(folder / file, temporary)
    write_json(output / SUMMARY, made_by["training"])
    return [] if code == made_by["code"] else [f"{folder}: trained by code {made_by['code']}, here it is {code}"]


def compare(checkpoints: Path, results: Path) -> dict[str, str]:
    """For each listed checkpoint whether the model of that name below ``results`` has its weights, ``same`` or ``other``.

    Models that are not there are ``missing``. Raises ``FileNotFoundError`` if there are no checkpoints.
    """
    if not (checkpoints / TABLE).exists():
        raise FileNotFoundError(f"{checkpoints / TABLE}: no such file")
    found = {}
    for name, promised in read_table(checkpoints).items():
        path = results / name / MODEL
        same = path.exists() and hashlib.sha256(half_precision(path)).hexdigest() == promised
        found[name] = "same" if same else "other" if path.exists() else "missing"
    return found


def half_precision(path: Path) -> bytes:
    """A safetensors file's weights as a file of their own, floating-point numbers with 16 bits and nothing else said.

    Raises ``ValueError`` if one of them is too large for 16 bits.
    """
    halves = {}
    with safe_open(path, framework="np") as file:
        for name in file.keys():
            tensor = file.get_tensor(name)
            with np.errstate(over="ignore"):
                halves[name] = tensor.astype(np.float16) if tensor.dtype == np.float32 else tensor
            if not np.isfinite(halves[name]).all():
                raise ValueError(f"{path}: {name} has numbers that 16 bits cannot hold")
    return save(halves)


def text_hash(paths: Iterable[Path]) -> str:
    """Hash of texts, in this order: of a file's bytes, and of the token ids alone where it holds sequences of them."""
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
    """Where two JSON values differ: the path of keys, and both values; what one lacks is None."""
    if isinstance(here, dict) and isinstance(there, dict):
        for name in sorted(here.keys() | there.keys()):
            yield from differences(here.get(name), there.get(name), f"{key}.{name}" if key else name)
    elif here != there:
        yield key, here, there


def read_table(checkpoints: Path) -> dict[str, str]:
    """Hashes of weights by the names of the checkpoints; none without a table."""
    path = checkpoints / TABLE
    return {row["checkpoint"]: row["sha256"] for row in rows(path)} if path.exists() else {}


def rows(path: Path) -> list[dict[str, str]]:
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
