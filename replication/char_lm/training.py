"""Training of a character model over a stream; an interrupted run resumes with the same result."""

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
from replication.files.unfinished import changed_since, check_origin, origin
from replication.training import check_loss, matmul_precision
from sparselib.checks import at_least

CHECKPOINT = "character model in training"


@dataclass(frozen=True)
class Recipe:
    """Hyper-parameters of a training with Adam.

    Parameters
    ----------
    steps : int
        Optimiser steps; each reads one segment in every row.
    length : int
        Characters of a segment.
    learning_rate : float
        Largest learning rate.
    warmup_steps : int
        Steps over which the rate rises linearly. It then falls to 0 as a cosine, as in Transformer-XL's code.
    clip_norm : float
        Norm to which gradients are clipped.
    log_every : int
        Steps between two lines of the log.
    matmul_precision : str
        As in :func:`replication.training.matmul_precision`.

    Raises
    ------
    ValueError
        If ``steps``, ``length`` or ``log_every`` is below 1.
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
        """Return the learning rate of a step, counted from 0."""
        if step < self.warmup_steps:
            return self.learning_rate * (step + 1) / self.warmup_steps
        share = (step - self.warmup_steps) / max(1, self.steps - self.warmup_steps)
        return self.learning_rate * (1 + math.cos(math.pi * share)) / 2


@dataclass
class Progress:
    """The state of a run, which determines all further steps."""

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
    """Train a model and write it to ``folder/model.safetensors``.

    A checkpoint is written with every line of the log. An interrupted run resumes from it if it was started with the same
    settings, and starts anew otherwise.

    Parameters
    ----------
    settings : mapping
        As in :func:`replication.char_lm.models.build_model`.
    alphabet : Alphabet
        Symbols of the text.
    text : Stream
        Training text, read again from its beginning as often as the steps need.
    valid : Stream
        Text that is evaluated for the log.
    recipe : Recipe
        Hyper-parameters.
    seed : int
        Seed of the weights and of dropout.
    folder : str or Path
        Folder of the model.

    Returns
    -------
    model : RecurrentModel
        The trained model, in evaluation mode.
    log : DataFrame
        Columns ``step, train_bits, valid_bits, attended_positions``, and the model's own measurements such as ``mean_span``.

    Raises
    ------
    ValueError
        If the settings are invalid, if other code began the training, if its checkpoint has changed, or if the loss diverges.
    """
    folder = Path(folder)
    checkpoint = checkpoint_of(folder)
    model = build_model(settings, len(alphabet), seed).to(accelerator())
    progress = Progress(model, torch.optim.Adam(model.parameters()))
    run = {"settings": dict(settings), "recipe": asdict(recipe), "seed": seed}
    run |= {"symbols": list(alphabet.symbols), "text": _digest(text), "valid": _digest(valid)}
    begun = origin(folder)
    if checkpoint.exists():
        header = read_header(checkpoint, kind=CHECKPOINT)
        if header["run"] == json.loads(json.dumps(run)):
            check_origin(checkpoint, header.get("begun", {}), begun)
            _restore(checkpoint, progress)
    with torch.random.fork_rng(), matmul_precision(recipe.matmul_precision):
        _advance(progress, text, valid, recipe, seed, lambda: _save(checkpoint, progress, run, begun))
    save_model(folder / "model.safetensors", model, settings, alphabet)
    checkpoint.unlink()
    return model.eval(), pd.DataFrame(progress.log)


def checkpoint_of(folder: str | Path) -> Path:
    """Return the path of a run's checkpoint, which exists until the run is complete."""
    return Path(folder) / "checkpoint.safetensors"


def _advance(
    progress: Progress, text: Stream, valid: Stream, recipe: Recipe, seed: int, save: Callable[[], None]
) -> None:
    """Take the remaining steps, and call ``save()`` after each line of the log."""
    nats = characters = 0
    bar = tqdm(total=recipe.steps, initial=progress.step, desc="train", unit="step", mininterval=5)
    with bar:
        while progress.step < recipe.steps:
            place = progress.step % text.count(recipe.length)
            if place == 0:
                progress.memory = None
            inputs, targets = text.segment(place, recipe.length)
            # Dropout has a seed per step, so that an interruption does not change it.
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
    """Take one optimiser step on a segment ``[B, length]``.

    Returns
    -------
    float
        The nats of the segment, summed over characters.

    Raises
    ------
    ValueError
        If the loss is not finite.
    """
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


def _save(path: Path, progress: Progress, run: dict[str, object], begun: dict[str, str]) -> None:
    tensors = {f"model.{name}": tensor for name, tensor in progress.model.state_dict().items()}
    tensors |= {f"memory.{layer}": tensor for layer, tensor in enumerate(progress.memory or [])}
    for number, state in progress.optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{number}.{name}": tensor for name, tensor in state.items()}
    # Pairs keep the order of the columns, since a header sorts the keys of a dict.
    log = [list(line.items()) for line in progress.log]
    state = {"run": run, "begun": begun, "step": progress.step, "log": log}
    write_tensors(path, tensors, kind=CHECKPOINT, **state, checksum=_checksum(state, tensors))


def _restore(path: Path, progress: Progress) -> None:
    header, tensors = read_header(path, kind=CHECKPOINT), read_tensors(path, kind=CHECKPOINT)
    if header["checksum"] != _checksum({name: header[name] for name in ("run", "begun", "step", "log")}, tensors):
        raise changed_since(path)
    progress.step, progress.log = header["step"], [dict(line) for line in header["log"]]
    weights, moments, memory = {}, {}, {}
    for name, tensor in tensors.items():
        part, _, rest = name.partition(".")
        if part == "model":
            weights[rest] = tensor
        elif part == "memory":
            memory[int(rest)] = tensor
        else:
            number, _, moment = rest.partition(".")
            moments.setdefault(int(number), {})[moment] = tensor
    progress.model.load_state_dict(weights)
    progress.optimizer.load_state_dict(progress.optimizer.state_dict() | {"state": moments})
    device = progress.model.output.weight.device
    progress.memory = [memory[layer].to(device) for layer in sorted(memory)]


def _checksum(state: dict[str, object], tensors: dict[str, Tensor]) -> str:
    digest = hashlib.sha256(json.dumps(state, sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(
            f"{name} {tensor.dtype} {list(tensor.shape)}".encode() + tensor.cpu().contiguous().numpy().tobytes()
        )
    return digest.hexdigest()


def _digest(stream: Stream) -> str:
    return hashlib.sha256(stream.inputs.numpy().tobytes() + stream.targets.numpy().tobytes()).hexdigest()
