"""Training through fairseq, and the model that remains of it."""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import torch

from replication.storage import replacing
from sparselib.integrations.fairseq import commands

#: Decided here because the paper's transformer (Vaswani et al. 2017) does not work otherwise, or fairseq's default hinders.
FIXED = {
    "task": "translation",
    "arch": "sparse_transformer",
    "criterion": "label_smoothed_cross_entropy",
    "label-smoothing": 0.1,
    "optimizer": "adam",
    "adam-betas": "(0.9, 0.98)",
    "lr-scheduler": "inverse_sqrt",
    "share-all-embeddings": True,
    "no-epoch-checkpoints": True,
    "log-format": "json",
    "skip-invalid-size-inputs-valid-test": True,
    # Dropping a parameter's gradient clip to fairseq's default 0 would leave entmax' first steps unbounded.
    "clip-norm": 1.0,
    # A worker of the data loader is waited for five seconds when it ends; these corpora are in memory.
    "num-workers": 0,
}


def train(
    data: Path,
    source: str,
    target: str,
    architecture: dict[str, object],
    training: dict[str, object],
    seed: int,
    output: Path,
    initial: Path | None = None,
) -> pd.DataFrame:
    """Train, or go on with, a translator; ``output/model.pt`` is its best checkpoint, without the optimiser.

    Parameters
    ----------
    data : folder of :func:`replication.translation.data.binarize`
    architecture, training : fairseq's options, ``{"encoder_layers": 6, ...}``, ``{"max_epoch": 20, ...}``
    initial : a ``model.pt`` to start from, with the same dictionary

    Returns
    -------
    What fairseq logged at the end of every epoch: a row per split and epoch.

    Raises
    ------
    FileNotFoundError
        If ``data`` has no dictionary of the target language.
    ValueError
        If ``initial`` has another dictionary than ``data``.
    """
    checkpoints = output / "checkpoints"
    if not (dictionary := data / f"dict.{target}.txt").exists():
        raise FileNotFoundError(f"{dictionary}: no such file; it is written by binarize")
    if initial is not None:
        check_vocabulary(initial, data, target)
    log = checkpoints / "log.txt"
    checkpoints.mkdir(parents=True, exist_ok=True)
    arguments = [str(data), "--save-dir", str(checkpoints), "--source-lang", source, "--target-lang", target]
    arguments += ["--seed", str(seed)]
    arguments += [] if torch.cuda.is_available() else ["--cpu"]
    arguments += [] if initial is None else ["--finetune-from-model", str(initial)]
    with logged(log):
        commands.train(arguments + options(FIXED | architecture | training))
    keep_model(checkpoints / "checkpoint_best.pt", output / "model.pt")
    return read_log(log)


@contextmanager
def logged(path: Path) -> Iterator[None]:
    """Append what fairseq logs to a file; its own ``--log-file`` misses the losses."""
    handler = logging.FileHandler(path, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(name)s | %(message)s"))
    root = logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    try:
        yield
    finally:
        root.setLevel(before)
        root.removeHandler(handler)
        handler.close()


def options(settings: dict[str, object]) -> list[str]:
    """``{"max_epoch": 3, "share_all_embeddings": True}`` -> ``["--max-epoch", "3", "--share-all-embeddings"]``."""
    arguments: list[str] = []
    for key, value in settings.items():
        flag = f"--{key.replace('_', '-')}"
        if value is True:
            arguments.append(flag)
        elif value is not False:
            arguments += [flag, str(value)]
    return arguments


def keep_model(checkpoint: Path, path: Path) -> None:
    """Copy a checkpoint of fairseq without what only training needs."""
    state = torch.load(checkpoint, map_location="cpu", weights_only=True)
    with replacing(path) as temporary:
        torch.save({key: value for key, value in state.items() if key != "last_optimizer_state"}, temporary)


def check_vocabulary(model: Path, data: Path, language: str) -> None:
    """Raise ``ValueError`` unless the model has an embedding for each word of the dictionary of ``data``."""
    state = torch.load(model, map_location="cpu", weights_only=True, mmap=True)
    rows = len(state["model"]["decoder.embed_tokens.weight"])
    with open(data / f"dict.{language}.txt", encoding="utf-8") as file:
        words = sum(1 for _ in file) + 4  # <s>, <pad>, </s> and <unk> are not listed
    if rows != words:
        raise ValueError(f"vocabulary of {data} has {words} entries, the checkpoint {model} was trained with {rows}")


def read_log(path: Path) -> pd.DataFrame:
    """The lines of fairseq's log that end an epoch: ``split, epoch, loss, nll_loss, ppl, num_updates``."""
    rows: dict[tuple[str, int], dict[str, object]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        split, _, entry = line.partition(" | ")
        if split in ("train", "valid") and entry.startswith("{"):
            values = json.loads(entry)
            # An epoch that an interruption cut off is repeated: the last time counts.
            rows[split, values["epoch"]] = {"split": split, "epoch": values["epoch"]} | {
                key: float(values[f"{split}_{key}"]) for key in ("loss", "nll_loss", "ppl", "num_updates")
            }
    return pd.DataFrame(rows.values())
