"""Training through fairseq, and the model that remains of it."""

import json
import logging
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import torch

from replication.files.storage import replacing
from replication.training import COUNT, check_loss, is_first, matmul_precision, share
from replication.translation.fairseq import commands
from replication.translation.saving import check_vocabulary, command_line, read_state, save_translator, words_of

#: Decided here because the paper's transformer (Vaswani et al. 2017) does not work otherwise, or fairseq's default hinders.
FIXED = {
    "task": "translation",
    "arch": "sparse_transformer",
    "criterion": "label_smoothed_cross_entropy",
    "label-smoothing": 0.1,
    "optimizer": "adam",
    "adam-betas": "(0.9, 0.98)",
    "lr_scheduler": "inverse_sqrt",
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
    """Train, or go on with, a translator; ``output/model.safetensors`` is its best checkpoint, without the optimiser.

    Processes that torchrun has started share the batches of an update, and the first of them writes.

    Parameters
    ----------
    data : folder of :func:`replication.translation.data.binarize`
    architecture, training : fairseq's options, ``{"encoder_layers": 6, ...}``, ``{"max_epoch": 20, ...}``
        And ``matmul_precision``, of :func:`replication.training.matmul_precision`; ``highest`` if it is left out.
    initial : a ``model.safetensors`` to start from, with the same dictionary

    Returns
    -------
    What fairseq logged at the end of every epoch: a row per split and epoch.

    Raises
    ------
    FileNotFoundError
        If ``data`` has no dictionary of the target language.
    ValueError
        If ``initial`` has another dictionary than ``data``, training diverges, or an update's batches cannot be divided.
    """
    checkpoints = output / "checkpoints"
    words_of(data, target)
    if not math.isfinite(training["lr"]):
        raise ValueError(f"training diverged before it began, at a learning rate of {training['lr']:g}")
    log, first = checkpoints / "log.txt", checkpoints / "initial.pt"
    if initial is not None:
        check_vocabulary(initial, data)
    if initial is not None and is_first():
        write_initial(initial, first)
    checkpoints.mkdir(parents=True, exist_ok=True)
    settings = FIXED | architecture | training
    # How PyTorch multiplies is no option of fairseq's, and not what the model is.
    precision = settings.pop("matmul_precision", "highest")
    updates = share("update_freq", training.get("update_freq", 1))
    arguments = [str(data), "--save-dir", str(checkpoints), "--source-lang", source, "--target-lang", target]
    arguments += ["--seed", str(seed), "--distributed-world-size", str(COUNT)]
    # fairseq gives PyTorch's own wrapper the number of a GPU, also where there is none.
    on_cpu = ["--cpu", "--distributed-backend", "gloo", "--ddp-backend", "legacy_ddp"]
    arguments += [] if torch.cuda.is_available() else on_cpu
    arguments += [] if initial is None else ["--finetune-from-model", str(first)]
    with matmul_precision(precision), logged(log if is_first() else Path(os.devnull)):
        try:
            commands.train(arguments + command_line(settings | {"update_freq": updates}))
        except Exception as error:
            # fairseq looks then for the layer where it began, which fails with this torch.
            origin = next((one for one in (error, error.__context__) if isinstance(one, FloatingPointError)), None)
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


def write_initial(model: Path, path: Path) -> None:
    """A translator as a checkpoint of fairseq with nothing but weights, which ``--finetune-from-model`` reads."""
    # What its loader asks for and resets; with it, fairseq does not take the file for one of an older version.
    history = [{"optimizer_name": "", "lr_scheduler_state": {}, "num_updates": 0}]
    extra = {"train_iterator": {"epoch": 0}}
    with replacing(path) as temporary:
        torch.save({"model": read_state(model), "optimizer_history": history, "extra_state": extra}, temporary)


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
