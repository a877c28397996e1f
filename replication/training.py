"""Parts that all trainings share: divergence, matmul precision, several processes, checkpoints, and the end of a training."""

from __future__ import annotations

import errno
import json
import math
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from replication.files.manifest import add_output
from replication.files.storage import is_full, replacing
from replication.files.unfinished import seal

# torch and transformers are imported inside functions, because a process chooses its GPU before it imports torch.
if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel, Trainer, TrainingArguments

#: Number of processes, and the index of this one, as torchrun sets them; a process that torchrun has not started is alone.
COUNT = int(os.environ.get("WORLD_SIZE", "1"))
INDEX = int(os.environ.get("RANK", "0"))


def check_loss(loss: float, step: int, learning_rate: float) -> float:
    """Return the loss if it is finite.

    Raises
    ------
    ValueError
        If the loss is NaN or infinite; the error names the step and the learning rate.
    """
    if not math.isfinite(loss):
        raise ValueError(
            f"training diverged: the loss of step {step} is {loss}, at a learning rate of {learning_rate:g}"
        )
    return loss


@contextmanager
def matmul_precision(precision: str) -> Iterator[None]:
    """Set PyTorch's float32 matmul precision inside a block.

    Parameters
    ----------
    precision : str
        ``highest``, ``high`` or ``medium``. With ``medium``, factors are rounded to bfloat16 if the processor is faster with
        them. Sums, weights and hidden states stay in float32.

    Raises
    ------
    RuntimeError
        If there is no such precision.

    Examples
    --------
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
    """Return whether this process is the one that writes the results of all."""
    return INDEX == 0


def share(name: str, whole: int) -> int:
    """Return each process's share of a number.

    Parameters
    ----------
    name : str
        Name of the number, for the error.
    whole : int
        Number to divide among the processes.

    Raises
    ------
    ValueError
        If the number is not a multiple of the number of processes.
    """
    if whole % COUNT:
        raise ValueError(f"`{name}` must be a multiple of {COUNT}, the number of processes, got {whole}")
    return whole // COUNT


def start(count: int) -> None:
    """Restart this command in ``count`` processes, and return in each of them; return at once if ``count`` is 1."""
    if count > 1 and "WORLD_SIZE" not in os.environ:
        torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}"]
        sys.stdout.flush()
        os.execv(sys.executable, [*torchrun, *sys.argv])


def see_one_gpu() -> None:
    """Hide all GPUs but the first from a process that is alone: libraries train on every visible GPU, with a larger batch."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")
    if COUNT == 1 and visible:
        os.environ["CUDA_VISIBLE_DEVICES"] = visible[0]


class MeanLossMixin:
    """Mixin of a ``transformers.Trainer`` whose loss is a mean over a batch; training stops if the loss is not finite.

    Its checkpoints have checksums, and an earlier one is removed only after that.
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        # The Trainer then divides the loss by the number of accumulated batches.
        self.model_accepts_loss_kwargs = False

    def training_step(self, *args, **kwargs) -> Tensor:
        loss = super().training_step(*args, **kwargs)
        check_loss(loss.item(), self.state.global_step + 1, self.args.learning_rate)
        return loss

    def _save_checkpoint(self, *args, **kwargs) -> None:
        from torch import distributed
        from transformers.trainer_utils import rotate_checkpoints

        super()._save_checkpoint(*args, **kwargs)
        if COUNT > 1:
            distributed.barrier()  # Each process writes the state of its random numbers.
        if self.args.should_save:
            folder = self.args.output_dir
            seal(Path(folder, f"checkpoint-{self.state.global_step}"))
            rotate_checkpoints(folder, 1, self.state.best_model_checkpoint, use_mtime=True)


def training_arguments(folder: Path, seed: int, **arguments: object) -> TrainingArguments:
    """Return ``TrainingArguments`` with checkpoints in ``folder/checkpoints``, and without reports."""
    import torch
    from transformers import TrainingArguments

    return TrainingArguments(
        output_dir=str(folder / "checkpoints"),
        seed=seed,
        report_to="none",
        use_cpu=not torch.accelerator.is_available(),
        dataloader_pin_memory=torch.cuda.is_available(),
        **arguments,
    )


@contextmanager
def room_for_checkpoints(folder: Path) -> Iterator[None]:
    """Let errors of a full disk inside a block name the folder of the checkpoints, as libraries' own errors do not."""
    try:
        yield
    except Exception as error:
        if not is_full(error):
            raise
        raise OSError(errno.ENOSPC, "no room for a checkpoint; free some and run again", str(folder)) from error


def train_to_the_end(trainer: Trainer) -> list[dict[str, float]]:
    """Train until the last step, from the last checkpoint if there is one, and return the training log.

    After a checkpoint of the last step nothing is trained, since the Trainer would take one more step.
    """
    from safetensors.torch import load_model
    from transformers.trainer_utils import get_last_checkpoint

    last = get_last_checkpoint(trainer.args.output_dir)
    state = json.loads(Path(last, "trainer_state.json").read_text()) if last else {"global_step": 0}
    if state["global_step"] < trainer.args.max_steps:
        with room_for_checkpoints(Path(trainer.args.output_dir)):
            trainer.train(resume_from_checkpoint=last)
        return trainer.state.log_history
    # The recorded path is that of the folder that the training began in.
    best = Path(last).with_name(Path(state["best_model_checkpoint"] or last).name)
    load_model(trainer.model, best / "model.safetensors")
    return state["log_history"]


def save_trained(model: PreTrainedModel, folder: Path) -> None:
    """Write a model's weights and configuration to ``folder``."""
    from safetensors.torch import save_model

    with replacing(folder / "model.safetensors") as temporary:
        save_model(model, str(temporary))
        _sort_metadata(temporary)
    model.config.save_pretrained(folder)
    add_output(folder / "config.json")


def runtime(log: list[dict[str, float]]) -> float | None:
    """Return the seconds of a training since its last start, or None if nothing was left to train."""
    return next((entry["train_runtime"] for entry in reversed(log) if "train_runtime" in entry), None)


def remove_checkpoints(folder: Path) -> None:
    """Remove the checkpoints of a training in ``folder``.

    Call this after all outputs are written. A workflow deletes the outputs of a failed job, and the next job resumes from the
    checkpoints.
    """
    shutil.rmtree(folder / "checkpoints")


def _sort_metadata(path: Path) -> None:
    """Sort the metadata of a safetensors file in place: safetensors writes it in a random order."""
    with open(path, "r+b") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
        if "__metadata__" in header:
            header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
        text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
        file.seek(8)
        file.write(text.ljust(length))
