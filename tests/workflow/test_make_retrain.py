"""The workflow takes from a folder of checkpoints what is there, trains the rest, and does nothing else differently."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from replication.files.paths import ROOT

NORMALIZERS = [
    f"{whose}/{name}" for whose in ("entmax", "sparselib") for name in ("entmax15", "entmax_alpha", "sparsemax")
]
SPEED = [f"normalizer_speed/models/{name}" for name in ("torch/softmax", "sparselib/topk", *NORMALIZERS)]
SHIPPED = [
    "masked_lm/model",
    "translation/kjv-en/model",
    "char_lm/bible/models/block/seed0",
    "forms/sentences/grc-en/full_seed0",
    "forms/sentences/grc-en/full_seed1",
    *SPEED,
]


def plan(tmp_path: Path, shipped: list[str], *config: str) -> tuple[dict[str, int], str]:
    """How many jobs of each rule there are, and what else is said."""
    (tmp_path / "weights.csv").touch()
    for folder in shipped:
        (tmp_path / folder).mkdir(parents=True)
        for path in (ROOT / "checkpoints" / folder).iterdir():
            (tmp_path / folder / path.name).touch()
    command = [sys.executable, "-m", "snakemake", "--dry-run", "--nolock", "--forceall", "--printshellcmds"]
    command += ["--configfile", "config/demo.yaml", "--config", *config]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    table = done.stdout.partition("Job stats:")[2].partition("\n\n")[0]
    return {name: int(count) for name, count in re.findall(r"^(\w+) +(\d+)$", table, re.MULTILINE)}, done.stdout


def trained(jobs: dict[str, int]) -> dict[str, int]:
    return {name: count for name, count in jobs.items() if name.startswith("train_")}


@pytest.fixture(scope="module")
def without(tmp_path_factory) -> dict[str, int]:
    return plan(tmp_path_factory.mktemp("none"), [], "checkpoints=False")[0]


@pytest.fixture(scope="module")
def shipped(tmp_path_factory) -> tuple[dict[str, int], str]:
    folder = tmp_path_factory.mktemp("shipped")
    return plan(folder, SHIPPED, f"checkpoints={folder}")


def test_what_is_shipped_is_not_trained(shipped, without):
    jobs, text = shipped
    # One of each text, whatever the number of models.
    taken = sorted(name for name in jobs if name.startswith("weights_"))
    sections = ["char_lm", "forms", "masked_lm", "normalizer_speed", "translation"]
    assert sorted(name.split("_", 2)[2] for name in taken) == sections
    commands = [line for line in text.splitlines() if "replicate weights " in line]
    assert sum(line.count(f" {name} ") for line in commands for name in SHIPPED) == len(SHIPPED)
    assert not {"train_masked_lm", "train_normalizers"} & jobs.keys()
    for command in ("train_translation", "train_characters"):
        counts = [sum(name.startswith(f"{command}__") for name in names) for names in (jobs, without)]
        assert counts[0] == counts[1] - 1
    commands = [line for line in text.splitlines() if "replicate train-forms" in line and "forms/sentences" in line]
    assert any("full_seed2" in line for line in commands)
    assert not any("full_seed0" in line or "full_seed1" in line for line in commands)


def test_nothing_else_differs(shipped, without):
    jobs, _ = shipped
    of_models = ("train_", "weights_", "total")
    others = [{name: n for name, n in some.items() if not name.startswith(of_models)} for some in (jobs, without)]
    assert others[0] == others[1]
    assert len(others[0]) > 20


def test_normalizers_are_compared_from_one_training(tmp_path):
    """One job trains all of them: without one checkpoint, the others are not taken either."""
    jobs, _ = plan(tmp_path, SPEED[1:], f"checkpoints={tmp_path}")
    assert jobs["train_normalizers"] == 1
    assert not any(name.startswith("weights_") for name in jobs)


def test_without_checkpoints_all_is_trained_in_a_folder_of_its_own(tmp_path, without):
    jobs, text = plan(tmp_path, SHIPPED, "checkpoints=False", "profile=retrained")
    assert trained(jobs) == trained(without)
    assert not any(name.startswith("weights_") for name in jobs)
    assert re.search(r"REPLICATE_GPUS=1 \S+ replicate train-masked-lm --config results/retrained/config.yaml", text)
    assert "results/demo" not in text
