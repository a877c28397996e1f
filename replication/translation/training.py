"""Training with fairseq, and the saved translator."""

import hashlib
import json
import logging
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import torch

from replication.files.notes import note
from replication.files.storage import replacing
from replication.files.unfinished import keep_whole_checkpoints
from replication.training import (
    COUNT,
    check_loss,
    is_first,
    matmul_precision,
    room_for_checkpoints,
    share,
)
from replication.translation.fairseq import commands
from replication.translation.lengths import POSITIONS, left_out, lengths
from replication.translation.saving import FIXED, check_vocabulary, command_line, read_state, save_translator, words_of


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
    """Train a translator, or resume its training, and write its best checkpoint to ``output/model.safetensors``.

    The file does not contain the optimiser. An interrupted training resumes if it was started with the same settings, seed and
    data; its checkpoints stay until :func:`replication.training.remove_checkpoints`. Processes started by torchrun share the
    batches of each update, and the first process writes the files.

    Parameters
    ----------
    data : Path
        Folder of :func:`replication.translation.data.binarize`.
    source, target : str
        Language codes.
    architecture, training : dict
        Options of fairseq, such as ``{"encoder_layers": 6}`` and ``{"max_epoch": 20}``. ``matmul_precision`` is an argument of
        :func:`replication.training.matmul_precision` instead, ``highest`` by default.
    seed : int
        Seed of the weights and of the batch order.
    output : Path
        Folder of the model and its checkpoints.
    initial : Path, optional
        A ``model.safetensors`` to start from, with the same dictionary.

    Returns
    -------
    DataFrame
        A row per split and epoch, as logged by fairseq at the end of the epoch; empty in all processes but the first.

    Raises
    ------
    FileNotFoundError
        If ``data`` has no dictionary of the target language.
    ValueError
        If ``initial`` and ``data`` have different dictionaries, all pairs are too long, half precision has no GPU, training
        diverges, or an update's batches cannot be divided among the processes.
    """
    checkpoints = output / "checkpoints"
    words_of(data, target)
    if not math.isfinite(training["lr"]):
        raise ValueError(f"`lr` must be finite, got {training['lr']:g}: training diverged before it began")
    if training.get("fp16") and not torch.cuda.is_available():
        raise ValueError("`fp16` must be false on a machine without a GPU; remove the key, or train on a GPU")
    too_long = left_out(data, (source, target), training)
    if is_first() and any(too_long.values()):
        counts = ", ".join(f"{count} {split} pairs" for split, count in too_long.items() if count)
        note(f"{counts} are longer than max_tokens ({training['max_tokens']}) or {POSITIONS}, and are left out")
    log, first = checkpoints / "log.txt", checkpoints / "initial.pt"
    if initial is not None:
        check_vocabulary(initial, data)
    settings = FIXED | architecture | training
    if is_first():
        files = sorted(path for path in data.iterdir() if path.is_file() and not path.name.startswith("."))
        run = {"settings": settings, "seed": seed, "pair": [source, target], "data": _hash(*files)}
        keep_whole_checkpoints(checkpoints, run | {"initial": initial and _hash(initial)})
    if initial is not None and is_first():
        write_initial(initial, first)
    # fairseq has no option for matmul precision, which is not a property of the model either.
    precision = settings.pop("matmul_precision", "highest")
    updates = share("update_freq", training.get("update_freq", 1))
    arguments = [str(data), "--save-dir", str(checkpoints), "--source-lang", source, "--target-lang", target]
    arguments += ["--seed", str(seed), "--distributed-world-size", str(COUNT)]
    # fairseq does not leave out validation pairs that are longer than a batch, but stops.
    longest = max(length for length in lengths(data, "valid", (source, target)) if length <= POSITIONS)
    if longest > training["max_tokens"]:
        arguments += ["--max-tokens-valid", str(longest)]
    # fairseq passes a GPU number to PyTorch's own wrapper even on machines without a GPU, so the CPU needs another backend.
    cpu_arguments = ["--cpu", "--distributed-backend", "gloo", "--ddp-backend", "legacy_ddp"]
    arguments += [] if torch.cuda.is_available() else cpu_arguments
    arguments += [] if initial is None else ["--finetune-from-model", str(first)]
    with (
        room_for_checkpoints(checkpoints),
        matmul_precision(precision),
        logged(log if is_first() else Path(os.devnull)),
    ):
        try:
            # fairseq would take one more update after a checkpoint of the last one.
            if _updates(checkpoints / "checkpoint_last.pt") < training.get("max_update", math.inf):
                commands.train(arguments + command_line(settings | {"update_freq": updates}))
        except Exception as error:
            # fairseq then searches for the layer that diverged, and the search itself fails with this torch version.
            causes = (error, error.__context__)
            origin = next((cause for cause in causes if isinstance(cause, FloatingPointError)), None)
            if origin is None:
                raise
            raise ValueError(f"training diverged: {origin}, at a learning rate of {settings['lr']:g}") from origin
    if not is_first():
        return pd.DataFrame()
    for line in read_log(log).itertuples():
        check_loss(line.loss, int(line.num_updates), settings["lr"])
    state = torch.load(checkpoints / "checkpoint_best.pt", map_location="cpu", weights_only=True)["model"]
    save_translator(output / "model.safetensors", state, settings, source, target, data)
    return read_log(log)


def _hash(*paths: Path) -> str:
    """Return a hash of files' names and contents."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _updates(checkpoint: Path) -> int:
    """Return the number of updates before a fairseq checkpoint, or 0 if there is none."""
    if not checkpoint.exists():
        return 0
    state = torch.load(checkpoint, map_location="cpu", weights_only=True)
    return state["optimizer_history"][-1]["num_updates"]


@contextmanager
def logged(path: Path) -> Iterator[None]:
    """Append fairseq's log to a file, because fairseq's own ``--log-file`` omits the losses."""
    handler = logging.FileHandler(path, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(name)s | %(message)s"))
    root = logging.getLogger()
    previous_level = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    try:
        yield
    finally:
        root.setLevel(previous_level)
        root.removeHandler(handler)
        handler.close()


def write_initial(model: Path, path: Path) -> None:
    """Write a translator's weights as a fairseq checkpoint for ``--finetune-from-model``."""
    # The loader requires and then resets these entries; without them fairseq assumes a file of an older version.
    history = [{"optimizer_name": "", "lr_scheduler_state": {}, "num_updates": 0}]
    extra = {"train_iterator": {"epoch": 0}}
    with replacing(path) as temporary:
        torch.save({"model": read_state(model), "optimizer_history": history, "extra_state": extra}, temporary)


def read_log(path: Path) -> pd.DataFrame:
    """Read the end-of-epoch lines of fairseq's log.

    Returns
    -------
    DataFrame
        A row per split and epoch: ``split, epoch, loss, nll_loss, ppl, num_updates``.
    """
    rows: dict[tuple[str, int], dict[str, object]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        split, _, entry = line.partition(" | ")
        if split in ("train", "valid") and entry.startswith("{"):
            values = json.loads(entry)
            # An interrupted epoch is repeated, and its last entry counts.
            rows[split, values["epoch"]] = {"split": split, "epoch": values["epoch"]} | {
                key: float(values[f"{split}_{key}"]) for key in ("loss", "nll_loss", "ppl", "num_updates")
            }
    return pd.DataFrame(rows.values())
