"""A translator trained by two processes, over gloo on a CPU, through fairseq's own distributed training."""

import os
import random
import shutil
import subprocess
import sys

import pandas as pd
import pytest
import torch
from command_line import CONFIG, configure, list_files

pytest.importorskip("replication.translation.fairseq")
from profiles import TRANSLATION
from replication.corpora.parallel import write_parallel
from replication.files.storage import read_tensors
from replication.translation.data import binarize

ARCHITECTURE = {
    f"{side}_{key}": value
    for side in ("encoder", "decoder")
    for key, value in {"layers": 1, "embed_dim": 32, "ffn_embed_dim": 32, "attention_heads": 2}.items()
}
TRAINING = {"lr": 0.01, "warmup_updates": 5, "max_tokens": 200, "dropout": 0.0, "max_update": 12, "update_freq": 2}
PLACE = "translation/en-de"
SECTION = TRANSLATION | {"corpus": {"en-de": {"source": "folder", "path": "."}}, "architecture": ARCHITECTURE}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Train with so many processes; return the model's folder and the finished process."""
    folder = tmp_path_factory.mktemp("processes")
    rng = random.Random(0)
    for split, count in {"train": 400, "valid": 20}.items():
        source = [
            " ".join(rng.choices("alpha beta gamma delta epsilon zeta".split(), k=rng.randint(2, 9)))
            for _ in range(count)
        ]
        write_parallel(folder / "corpus", split, {"en": source, "de": [line.upper() for line in source]})
    binarize(folder / "corpus", "en", "de", ["train", "valid"], "spaces", 40, folder / "data", None)
    (folder / "stage.py").write_text("from replication.stages import app; app()")

    def train(count, **changes):
        here = folder / "-".join([str(count), *(f"{key}{value}" for key, value in changes.items())])
        results = configure(here, translation=SECTION | {"training": TRAINING | changes}) / PLACE
        shutil.copytree(folder / "data", results / "data")
        list_files(results)
        command = ["train-translation", PLACE, "--config", CONFIG, "--processes", str(count)]
        done = subprocess.run(
            [sys.executable, str(folder / "stage.py"), *command],
            cwd=here,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
        )
        return results / "model", done

    return train


def test_two_processes_train_as_one(trained):
    """Two batches an update for one of them, one batch an update for each of two: the same losses and weights."""
    (alone, one), (together, two) = trained(1), trained(2)
    assert one.returncode == two.returncode == 0, one.stderr[-3000:] + two.stderr
    logs = [pd.read_csv(folder / "training.csv") for folder in (alone, together)]
    assert logs[0][["split", "epoch", "num_updates"]].equals(logs[1][["split", "epoch", "num_updates"]])
    torch.testing.assert_close(*(torch.tensor(log.loss.to_numpy()) for log in logs), rtol=0, atol=1e-3)
    weights = [read_tensors(folder / "model.safetensors", kind="translator") for folder in (alone, together)]
    for name, weight in weights[0].items():
        torch.testing.assert_close(weights[1][name].float(), weight.float(), rtol=0, atol=1e-4)
    assert list((together / "checkpoints").glob("*.partial")) == []


def test_an_update_that_cannot_be_divided_is_named(trained):
    _, done = trained(2, update_freq=3)
    assert done.returncode != 0
    assert "`update_freq` must be a multiple of 2" in " ".join(done.stderr.split())
