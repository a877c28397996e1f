"""What every training shares: divergence, matmul precision, several processes, and resuming from checkpoints."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from replication.files.storage import replacing

# Imported inside functions: a process chooses its GPU before torch is imported.
if TYPE_CHECKING:
    from transformers import Trainer

#: What torchrun tells each process; one that it has not started is alone.
COUNT = int(os.environ.get("WORLD_SIZE", "1"))
INDEX = int(os.environ.get("RANK", "0"))


def check_loss(loss: float, step: int, learning_rate: float) -> float:
    """The loss itself, if it is finite.

    Raises ``ValueError``, which names the step and the learning rate, if it is not.
    """
    if not math.isfinite(loss):
        raise ValueError(
            f"training diverged: the loss of step {step} is {loss}, at a learning rate of {learning_rate:g}"
        )
    return loss


@contextmanager
def matmul_precision(precision: str) -> Iterator[None]:
    """Inside, products are as precise as ``highest``, ``high`` or ``medium`` are to PyTorch.

    With ``medium``, factors are rounded to bfloat16 where the processor is faster for it, and nothing else is: weights, sums
    and what lies between layers stay in float32.

    Raises ``RuntimeError`` if there is no such precision.

    >>> import torch
    >>> with matmul_precision("medium"):
    ...     torch.get_float32_matmul_precision()
    'medium'
    >>> torch.get_float32_matmul_precision()
    'highest'
    """
    import torch

    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def is_first() -> bool:
    """Whether this is the process that writes what they have made together."""
    return INDEX == 0


def share(name: str, whole: int) -> int:
    """What falls to each of the processes, so that together they do what one would.

    Raises ``ValueError``, which names what was to be divided, if it leaves a remainder.
    """
    if whole % COUNT:
        raise ValueError(f"{name} {whole} cannot be divided among {COUNT} processes")
    return whole // COUNT


def start(count: int) -> None:
    """Begin this very command anew in so many processes; returns in each of them, and at once where one is enough."""
    if count > 1 and "WORLD_SIZE" not in os.environ:
        torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}"]
        sys.stdout.flush()
        os.execv(sys.executable, [*torchrun, *sys.argv])


def see_one_gpu() -> None:
    """For a process that is alone: libraries train on every GPU that they see, with a larger batch."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")
    if COUNT == 1 and visible:
        os.environ["CUDA_VISIBLE_DEVICES"] = visible[0]


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
    from safetensors.torch import load_model
    from transformers.trainer_utils import get_last_checkpoint

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
