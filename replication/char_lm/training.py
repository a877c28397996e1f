"""Training a character model over a stream, so that an interrupted run goes on as if nothing had happened."""

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pandas as pd
import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_
from tqdm import tqdm

from replication.char_lm.data import IGNORED, Alphabet, Stream
from replication.char_lm.evaluation import evaluate, total_nats
from replication.char_lm.models import accelerator, build_model, save_model
from replication.char_lm.recurrent import Memory, RecurrentModel
from replication.files.storage import read_header, read_tensors, write_tensors
from replication.training import check_loss, matmul_precision
from sparselib.checks import at_least

CHECKPOINT = "character model in training"


@dataclass(frozen=True)
class Recipe:
    """How to train: ``steps`` of one segment of ``length`` in every row each, a line of the log every ``log_every`` steps.

    Adam's learning rate rises linearly over ``warmup_steps``, then falls to 0 as a cosine (Transformer-XL's code); gradients
    are clipped to a norm of ``clip_norm``. ``matmul_precision`` is that of :func:`replication.training.matmul_precision`.
    """

    steps: int
    length: int
    learning_rate: float
    warmup_steps: int
    clip_norm: float
    log_every: int
    matmul_precision: str = "highest"

    def __post_init__(self):
        for name in ("steps", "length", "log_every"):
            at_least(name, getattr(self, name), 1)

    def rate(self, step: int) -> float:
        """The learning rate of a step, counted from 0."""
        if step < self.warmup_steps:
            return self.learning_rate * (step + 1) / self.warmup_steps
        share = (step - self.warmup_steps) / max(1, self.steps - self.warmup_steps)
        return self.learning_rate * (1 + math.cos(math.pi * share)) / 2


@dataclass
class Progress:
    """A run after some step: with it, the steps that follow are determined."""

    model: RecurrentModel
    optimizer: torch.optim.Optimizer
    step: int = 0
    memory: Memory | None = None
    log: list[dict[str, float]] = field(default_factory=list)


def train(
    settings: Mapping[str, object],
    alphabet: Alphabet,
    text: Stream,
    valid: Stream,
    recipe: Recipe,
    seed: int,
    folder: str | Path,
) -> tuple[RecurrentModel, pd.DataFrame]:
    """Train the model of these settings; leave it in ``folder/model.safetensors``.

    At every line of the log a checkpoint is written. A run that was interrupted goes on from it if it was started with the same
    settings, and starts anew otherwise.

    Parameters
    ----------
    settings : as in :func:`replication.char_lm.models.build_model`
    text, valid : what is trained on, over and over, and what is evaluated for the log

    Returns
    -------
    The model, and its log: ``step, train_bits, valid_bits, attended_positions`` and what the model measures of itself, such as
    ``mean_span``.
    """
    folder = Path(folder)
    checkpoint = checkpoint_of(folder)
    model = build_model(settings, len(alphabet), seed).to(accelerator())
    progress = Progress(model, torch.optim.Adam(model.parameters()))
    run = {"settings": dict(settings), "recipe": asdict(recipe), "seed": seed}
    run |= {"symbols": list(alphabet.symbols), "text": _digest(text), "valid": _digest(valid)}
    if checkpoint.exists() and read_header(checkpoint, kind=CHECKPOINT)["run"] == json.loads(json.dumps(run)):
        _restore(checkpoint, progress)
    with torch.random.fork_rng(), matmul_precision(recipe.matmul_precision):
        _advance(progress, text, valid, recipe, seed, lambda: _save(checkpoint, progress, run))
    save_model(folder / "model.safetensors", model, settings, alphabet)
    checkpoint.unlink()
    return model.eval(), pd.DataFrame(progress.log)


def checkpoint_of(folder: str | Path) -> Path:
    """The file that is in the folder of a run while it is not complete."""
    return Path(folder) / "checkpoint.safetensors"


def _advance(
    progress: Progress, text: Stream, valid: Stream, recipe: Recipe, seed: int, save: Callable[[], None]
) -> None:
    """Take the steps that are left; ``save()`` after each line of the log."""
    nats = characters = 0
    bar = tqdm(total=recipe.steps, initial=progress.step, desc="train", unit="step", mininterval=5)
    with bar:
        while progress.step < recipe.steps:
            place = progress.step % text.count(recipe.length)
            if place == 0:
                progress.memory = None
            inputs, targets = text.segment(place, recipe.length)
            # Dropout from a seed per step, so that it does not matter where a run was interrupted.
            torch.manual_seed(seed * 1_000_003 + progress.step)
            nats += step(progress, inputs, targets, recipe)
            characters += int((targets != IGNORED).sum())
            bar.update()
            if progress.step % recipe.log_every == 0 or progress.step == recipe.steps:
                measured = evaluate(progress.model, valid, recipe.length)
                progress.log.append(
                    {"step": progress.step, "train_bits": nats / characters / math.log(2)}
                    | {"valid_bits": measured.bits_per_character, "attended_positions": measured.attended_positions}
                    | progress.model.measurements()
                )
                save()
                nats = characters = 0


def step(progress: Progress, inputs: Tensor, targets: Tensor, recipe: Recipe) -> float:
    """One step on a segment ``[B, length]``; its nats, summed over characters."""
    model, optimizer = progress.model.train(), progress.optimizer
    device = model.output.weight.device
    for group in optimizer.param_groups:
        group["lr"] = recipe.rate(progress.step)
    logits, progress.memory = model(inputs.to(device), progress.memory)
    nats = total_nats(logits, targets.to(device))
    optimizer.zero_grad()
    (nats / (targets != IGNORED).sum() + model.penalty()).backward()
    clip_grad_norm_(model.parameters(), recipe.clip_norm)
    optimizer.step()
    model.constrain()
    progress.step += 1
    return check_loss(nats.item(), progress.step, recipe.learning_rate)


def _save(path: Path, progress: Progress, run: dict[str, object]) -> None:
    tensors = {f"model.{name}": tensor for name, tensor in progress.model.state_dict().items()}
    tensors |= {f"memory.{layer}": tensor for layer, tensor in enumerate(progress.memory or [])}
    for number, state in progress.optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{number}.{name}": tensor for name, tensor in state.items()}
    # A header has its keys sorted, a line of the log has its own order.
    log = [list(line.items()) for line in progress.log]
    write_tensors(path, tensors, kind=CHECKPOINT, run=run, step=progress.step, log=log)


def _restore(path: Path, progress: Progress) -> None:
    header, tensors = read_header(path, kind=CHECKPOINT), read_tensors(path, kind=CHECKPOINT)
    progress.step, progress.log = header["step"], [dict(line) for line in header["log"]]
    of_model, moments, memory = {}, {}, {}
    for name, tensor in tensors.items():
        part, _, rest = name.partition(".")
        if part == "model":
            of_model[rest] = tensor
        elif part == "memory":
            memory[int(rest)] = tensor
        else:
            number, _, moment = rest.partition(".")
            moments.setdefault(int(number), {})[moment] = tensor
    progress.model.load_state_dict(of_model)
    progress.optimizer.load_state_dict(progress.optimizer.state_dict() | {"state": moments})
    device = progress.model.output.weight.device
    progress.memory = [memory[layer].to(device) for layer in sorted(memory)]


def _digest(stream: Stream) -> str:
    return hashlib.sha256(stream.inputs.numpy().tobytes() + stream.targets.numpy().tobytes()).hexdigest()
