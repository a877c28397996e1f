"""The stage that trains a masked language model: what it leaves, and that a failure at its end costs no training."""

import json

import pandas as pd
import pytest
import tiny
from command_line import run

from replication.corpora.blocks import KIND
from replication.corpora.tokens import save_tokenizer
from replication.files import storage
from replication.masked_lm.training import MaskedLMTrainer

TRAINING = tiny.TRAINING | {"max_steps": 6, "save_steps": 2, "held_out": 4, "patience": 3, "learning_rate": 1e-4}
LEFT = {"model.safetensors", "config.json", "training.csv", "training.json"}


@pytest.fixture
def options(tmp_path):
    tokenizer, input_ids = tiny.text()
    save_tokenizer(tokenizer, tmp_path / "tokenizer")
    storage.write_tensors(tmp_path / "train.safetensors", {"input_ids": input_ids}, kind=KIND)
    given = {"tokens": tmp_path / "train.safetensors", "tokenizer": tmp_path / "tokenizer", "model": tiny.ARCHITECTURE}
    return given | {"training": TRAINING, "seed": 0, "output": tmp_path / "model"}


def visible(folder):
    return {path.name for path in folder.iterdir() if not path.name.startswith(".")}


def test_it_leaves_the_model_and_its_log_with_held_out_losses(options):
    result = run("train-masked-lm", **options)
    assert result.exit_code == 0, result.output
    assert visible(options["output"]) == LEFT
    log = pd.read_csv(options["output"] / "training.csv").set_index("step")
    assert log["loss"].notna().all()
    assert log.index[log["held_out_loss"].notna()].tolist() == [2, 4, 6]
    assert json.loads((options["output"] / "training.json").read_text())["training"]["held_out"] == 4


def test_a_failure_after_the_last_step_costs_no_training(options, monkeypatch):
    """A workflow deletes what a failed job has written; the second try takes no step."""

    def full_disk(*_, **__):
        raise OSError("No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(storage, "write_json", full_disk)
        assert run("train-masked-lm", **options).exit_code == 1
    for name in LEFT & visible(options["output"]):
        (options["output"] / name).unlink()
    steps = []
    monkeypatch.setattr(MaskedLMTrainer, "training_step", lambda *_, **__: steps.append(1))
    result = run("train-masked-lm", **options)
    assert result.exit_code == 0, result.output
    assert steps == []
    assert visible(options["output"]) == LEFT
