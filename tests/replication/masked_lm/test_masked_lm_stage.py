"""The stage that trains a masked language model: what it leaves, and that a failure at its end costs no training."""

import json

import pandas as pd
import pytest
import tiny
from command_line import assert_one_line, configure, run, succeed

from profiles import MASKED_LM
from replication.files import storage
from replication.files.manifest import add_output, making
from replication.masked_lm.training import MaskedLMTrainer

TRAINING = {"max_steps": 6, "save_steps": 2, "held_out": 4, "patience": 3, "learning_rate": 1e-4}
LEFT = {"model.safetensors", "config.json", "training.csv", "training.json"}


@pytest.fixture
def results(tmp_path):
    return tiny.configured(tmp_path, **TRAINING)


def visible(folder):
    return {path.name for path in folder.iterdir() if not path.name.startswith(".")}


def test_it_leaves_the_model_and_its_log_with_held_out_losses(results, tmp_path):
    succeed(tmp_path, "train-masked-lm")
    output = results / "model"
    assert visible(output) == LEFT
    log = pd.read_csv(output / "training.csv").set_index("step")
    assert log["loss"].notna().all()
    assert log.index[log["held_out_loss"].notna()].tolist() == [2, 4, 6]
    assert json.loads((output / "training.json").read_text())["training"]["held_out"] == 4


@pytest.mark.parametrize("whole", [True, False])
def test_a_random_vocabulary_head_is_told_and_recorded(tmp_path, whole):
    tokenizer, _ = tiny.text()
    pretrained = tiny.network(tokenizer)
    (pretrained if whole else pretrained.roberta).save_pretrained(tmp_path / "pretrained")
    results = tiny.configured(tmp_path, {"pretrained": str(tmp_path / "pretrained")}, **TRAINING)
    done = run(tmp_path, "train-masked-lm")
    assert done.exit_code == 0, done.output
    assert ("note: " in done.stderr and "no weights of a vocabulary head" in done.stderr) is not whole
    recorded = json.loads((results / "model" / "training.json").read_text())["architecture"]
    assert recorded["random_head"] is not whole


def test_a_failure_after_the_last_step_costs_no_training(results, tmp_path, monkeypatch):
    """A workflow deletes what a failed job has written; the second try takes no step."""

    def full_disk(*_, **__):
        raise OSError("No space left on device")

    output = results / "model"
    with monkeypatch.context() as patched:
        patched.setattr(storage, "write_json", full_disk)
        assert run(tmp_path, "train-masked-lm").exit_code == 1
    for name in LEFT & visible(output):
        (output / name).unlink()
    steps = []
    monkeypatch.setattr(MaskedLMTrainer, "training_step", lambda *_, **__: steps.append(1))
    succeed(tmp_path, "train-masked-lm")
    assert steps == []
    assert visible(output) == LEFT


@pytest.mark.parametrize("file", ["tokenizer.json", "tokenizer_config.json"])
def test_a_tokenizer_that_has_changed_is_refused(results, tmp_path, file):
    path = results / "tokenizer" / file
    with making(f"tokenize {file}"):
        add_output(path)
    path.write_bytes(path.read_bytes() + b" ")
    assert_one_line(run(tmp_path, "train-masked-lm"), f"{file}: has changed since stage tokenize made it")
    assert not (results / "model").exists()


@pytest.mark.parametrize("command", ["fit-blocks", "evaluate-blocks", "time-blocks"])
def test_a_configuration_without_blocks_is_named(tmp_path, command):
    configure(tmp_path, masked_lm={key: value for key, value in MASKED_LM.items() if key != "blocks"})
    assert_one_line(run(tmp_path, command), "masked_lm.blocks: the configuration tiny has no such section")
