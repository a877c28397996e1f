"""Resuming a Trainer of transformers from its checkpoints."""

import json
import shutil
from pathlib import Path

from safetensors.torch import load_model
from transformers import Trainer
from transformers.trainer_utils import get_last_checkpoint

from replication.storage import replacing


def keep_whole_checkpoints(folder: Path, settings: dict[str, object]) -> None:
    """Remove those in ``folder`` that were made with other settings, and those that a kill has left half-written."""
    record = folder / "settings.json"
    as_text = json.dumps(settings, sort_keys=True, default=str)
    if folder.exists() and not (record.exists() and record.read_text() == as_text):
        shutil.rmtree(folder)
    with replacing(record) as temporary:
        temporary.write_text(as_text)
    for checkpoint in folder.glob("checkpoint-*"):
        if not _is_whole(checkpoint):
            shutil.rmtree(checkpoint)


def train_to_the_end(trainer: Trainer) -> list[dict[str, float]]:
    """Train until the last step, from the last checkpoint if there is one, and return the training log.

    From a checkpoint of the last step itself nothing is trained: the Trainer would take one more step.
    """
    last = get_last_checkpoint(trainer.args.output_dir)
    state = json.loads(Path(last, "trainer_state.json").read_text()) if last else {"global_step": 0}
    if state["global_step"] < trainer.args.max_steps:
        trainer.train(resume_from_checkpoint=last)
        return trainer.state.log_history
    load_model(trainer.model, Path(state["best_model_checkpoint"] or last, "model.safetensors"))
    return state["log_history"]


def runtime(log: list[dict[str, float]]) -> float | None:
    """Return the seconds of the last start of a training; None if it had nothing left to train."""
    return next((entry["train_runtime"] for entry in reversed(log) if "train_runtime" in entry), None)


def remove_checkpoints(folder: Path) -> None:
    """Remove the checkpoints of a training in ``folder``, once everything that it leaves there has been written.

    Until then a failure costs nothing: a workflow deletes the outputs of a failed job, but not its checkpoints.
    """
    shutil.rmtree(folder / "checkpoints")


def _is_whole(checkpoint: Path) -> bool:
    """The Trainer writes ``trainer_state.json`` last, so it tells: it is missing or cut off if anything is."""
    try:
        json.loads((checkpoint / "trainer_state.json").read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return False
    return True
