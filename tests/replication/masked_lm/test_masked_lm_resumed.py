"""An interrupted training goes on as if nothing had happened, or starts anew where it must."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import tiny
import torch
from tiny import assert_same_weights, train_tiny

from replication.masked_lm import training


def interrupt(folder: Path, monkeypatch, at_loss: int, **changes) -> None:
    """Train until the loss is asked for the so-manieth time."""
    losses, real = 0, training.masked_loss

    def loss(*arguments):
        nonlocal losses
        losses += 1
        if losses == at_loss:
            raise KeyboardInterrupt
        return real(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(training, "masked_loss", loss)
        with pytest.raises(KeyboardInterrupt):
            train_tiny(folder, **changes)
    assert not (folder / "model.safetensors").exists()


def is_json(path: Path) -> bool:
    try:
        return bool(json.loads(path.read_text()))
    except (ValueError, FileNotFoundError):  # still being written, or already replaced
        return False


def test_training_goes_on_after_a_kill_as_if_nothing_had_happened(tmp_path):
    steps, killed, whole = 60, tmp_path / "killed", tmp_path / "whole"
    script = [sys.executable, str(Path(tiny.__file__)), str(killed), str(steps)]
    process = subprocess.Popen(script, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 90
    while not any(is_json(path) for path in killed.glob("checkpoints/checkpoint-*/trainer_state.json")):
        assert process.poll() is None, "the training ended before it could be killed"
        assert time.monotonic() < deadline, "no checkpoint appeared"
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert not (killed / "model.safetensors").exists()
    resumed = train_tiny(killed, causal_steps=10_000, max_steps=steps)
    assert_same_weights(resumed, train_tiny(whole, causal_steps=10_000, max_steps=steps))


CAUSAL = {"causal_steps": 99}


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory) -> Path:
    """A causal training after its first checkpoint. To be copied."""
    folder = tmp_path_factory.mktemp("masked_lm") / "interrupted"
    with pytest.MonkeyPatch.context() as patched:
        interrupt(folder, patched, 9, **CAUSAL)
    return folder


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> torch.nn.Module:
    """The same training, not interrupted."""
    return train_tiny(tmp_path_factory.mktemp("whole"), **CAUSAL)


def test_a_resumed_run_ends_with_the_weights_of_a_causal_one(tmp_path, interrupted, whole):
    shutil.copytree(interrupted, tmp_path / "resumed")
    assert_same_weights(train_tiny(tmp_path / "resumed", **CAUSAL), whole)


@pytest.mark.parametrize(
    "changes",
    [
        CAUSAL | {"input_ids": tiny.text()[1][:24]},
        {},
        {"causal_steps": 6},
        {"dropout": 0.1},
        {"held_out": 4, "patience": 3},
    ],
    ids=["several epochs", "masked", "causal first", "dropout", "early stopping"],
)
def test_a_resumed_run_ends_with_the_weights_of_an_uninterrupted_one(tmp_path, monkeypatch, changes):
    uninterrupted = train_tiny(tmp_path / "whole", **changes)
    interrupt(tmp_path / "resumed", monkeypatch, 9, **changes)
    assert_same_weights(train_tiny(tmp_path / "resumed", **changes), uninterrupted)


def test_resuming_does_not_start_anew(tmp_path, monkeypatch):
    interrupt(tmp_path, monkeypatch, 9)
    interrupt(tmp_path, monkeypatch, tiny.STEPS - 5)  # so many losses are left after the checkpoint of step 5
    assert max(int(path.name.split("-")[1]) for path in tmp_path.glob("checkpoints/checkpoint-*")) == 20


@pytest.mark.parametrize("last", [None, "", '{"best'])
def test_a_half_written_checkpoint_is_ignored(tmp_path, interrupted, whole, last):
    shutil.copytree(interrupted, tmp_path / "resumed")
    checkpoints = tmp_path / "resumed" / "checkpoints"
    shutil.copytree(checkpoints / "checkpoint-5", checkpoints / "checkpoint-10")
    state = checkpoints / "checkpoint-10" / "trainer_state.json"
    state.unlink() if last is None else state.write_text(last)
    assert_same_weights(train_tiny(tmp_path / "resumed", **CAUSAL), whole)


@pytest.mark.parametrize(
    "changed",
    [
        {"learning_rate": 0.001},
        {"seed": 1},
        {"causal_steps": 98},
        {"held_out": 4},
        {"dropout": 0.1},
        {"input_ids": tiny.text()[1].flip(0)},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_checkpoints_of_other_settings_are_discarded(tmp_path, monkeypatch, interrupted, changed):
    folder = tmp_path / "resumed"
    shutil.copytree(interrupted, folder)
    interrupt(folder, monkeypatch, 1, **CAUSAL | changed)
    assert list(folder.glob("checkpoints/checkpoint-*")) == []


def test_checkpoints_of_the_same_settings_are_kept(tmp_path, monkeypatch, interrupted):
    shutil.copytree(interrupted, tmp_path / "resumed")
    interrupt(tmp_path / "resumed", monkeypatch, 1, **CAUSAL)
    assert [path.name for path in tmp_path.glob("resumed/checkpoints/checkpoint-*")] == ["checkpoint-5"]
