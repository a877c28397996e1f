"""Two processes that train together, over gloo on a CPU, as torchrun starts one per GPU."""

import json
import os
import subprocess
import sys

import pandas as pd
import pytest
import torch
from command_line import CONFIG
from safetensors.torch import load_file
from tiny import TRAINING, configured

from replication import training as processes

STAGE = "from replication.stages import app; app()"
#: What several processes could do otherwise than one: steps of both losses, and batches in parts.
CHANGES = {"causal_steps": 6, "gradient_accumulation_steps": 2, "max_steps": 12}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Train once with so many processes; return the model's folder and the finished process."""
    folder, done = tmp_path_factory.mktemp("processes"), {}
    (folder / "stage.py").write_text(STAGE)

    def train(count, **changes):
        name = "-".join([str(count), *(f"{key}{value}" for key, value in changes.items())])
        if name not in done:
            results = configured(folder / name, **changes)
            command = ["train-masked-lm", "--config", CONFIG, "--processes", str(count)]
            process = subprocess.run(
                [sys.executable, str(folder / "stage.py"), *command],
                cwd=folder / name,
                env=os.environ | {"OMP_NUM_THREADS": "1"},
                capture_output=True,
                text=True,
            )
            done[name] = results / "model", process
        return done[name]

    return train


def test_two_processes_train_as_one(trained):
    """The same batches, masked at the same places, and the mean over all of them: the same losses and weights."""
    (alone, one), (together, two) = trained(1, **CHANGES), trained(2, **CHANGES)
    assert one.returncode == two.returncode == 0, one.stderr[-3000:] + two.stderr[-3000:]
    losses = [pd.read_csv(folder / "training.csv").loss for folder in (alone, together)]
    assert len(losses[0]) == CHANGES["max_steps"]
    torch.testing.assert_close(*(torch.tensor(one.to_numpy()) for one in losses), rtol=0, atol=1e-4)
    weights = [load_file(folder / "model.safetensors") for folder in (alone, together)]
    for name, weight in weights[0].items():
        torch.testing.assert_close(weights[1][name], weight, rtol=0, atol=1e-4)


def test_one_of_them_writes(trained):
    output, _ = trained(2, **CHANGES)
    assert {path.name for path in output.iterdir() if not path.name.startswith(".")} == {
        *("model.safetensors", "config.json", "training.csv", "training.json")
    }
    summary = json.loads((output / "training.json").read_text())
    assert summary["training"]["per_device_train_batch_size"] == TRAINING["per_device_train_batch_size"]


def test_a_batch_that_cannot_be_divided_is_named(trained):
    _, done = trained(2, per_device_train_batch_size=3)
    assert done.returncode != 0
    assert "`per_device_train_batch_size` must be a multiple of 2" in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("count", "before", "after"), [(1, None, "0"), (1, "2,3", "2"), (1, "", ""), (2, "0,1", "0,1")], ids=str
)
def test_a_process_that_is_alone_sees_one_gpu(monkeypatch, count, before, after):
    monkeypatch.setattr(processes, "COUNT", count)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if before is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", before)
    processes.see_one_gpu()
    assert os.environ["CUDA_VISIBLE_DEVICES"] == after
