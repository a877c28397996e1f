"""A cut-down copy of the workflow, run: its model is shipped, trained to the same hash again, refused where it does not fit."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from replication.files.paths import ROOT

SIDES = ("encoder", "decoder")
SENTENCES = {
    "corpus": {"kjv-en": {"source": "bible", "train": ["Jonah"], "valid": ["2 John"], "test": ["3 John"]}},
    "words": "spaces",
    "merges": 20,
    "architecture": {f"{side}_layers": 1 for side in SIDES}
    | {f"{side}_{size}": 8 for side in SIDES for size in ("embed_dim", "ffn_embed_dim")}
    | {f"{side}_attention_heads": 2 for side in SIDES},
    "training": {
        "lr": 0.01, "warmup_updates": 2, "max_tokens": 400, "max_update": 4, "dropout": 0.0, "log_interval": 2
    },
    "beam": 1,
    "runs": [{"forms": ["Full"], "budgets": [2], "seeds": [0]}],
    "models_per_job": 1,
}  # fmt: skip
CUT_DOWN = {"seed": 0, "student_seeds": [0], "forms": {"sentences": SENTENCES}}
MODEL = "forms/sentences/kjv-en/full_seed0"


class Workflow:
    """Runs of the cut-down copy; the results of each lie in a folder of their own, which goes with the tests."""

    def __init__(self, folder: Path):
        self.folder, self.checkpoints, self.made = folder, folder / "checkpoints", []

    def results(self, run: str) -> Path:
        return ROOT / f"results/test-{os.getpid()}-{run}"

    def run(self, run: str, target: str, **changed) -> subprocess.CompletedProcess:
        results = self.results(run)
        self.made.append(results)
        config = self.folder / f"{run}.yaml"
        config.write_text(
            yaml.safe_dump(CUT_DOWN | {"profile": results.name, "checkpoints": str(self.checkpoints)} | changed)
        )
        command = [sys.executable, "-m", "snakemake", "--cores", "1", "--nolock", "--show-failed-logs"]
        command += ["--configfile", str(config), "--", target.format(results=results.relative_to(ROOT))]
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=os.environ | {"PATH": path})


@pytest.fixture(scope="module")
def workflow(tmp_path_factory):
    started = Workflow(tmp_path_factory.mktemp("shipped"))
    yield started
    for results in started.made:
        shutil.rmtree(results, ignore_errors=True)


@pytest.fixture(scope="module")
def shipped(workflow):
    done = workflow.run("made", "ship")
    assert done.returncode == 0, done.stderr
    return workflow


def test_trained_anew_it_has_the_promised_hash(shipped):
    done = shipped.run("retrained", f"{{results}}/{MODEL}/model.safetensors", checkpoints=False)
    assert done.returncode == 0, done.stderr
    replicate = str(Path(sys.executable).with_name("replicate"))
    command = [replicate, "compare-weights", str(shipped.results("retrained"))]
    command += ["--checkpoints", str(shipped.checkpoints)]
    compared = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert compared.stdout.split() == ["same", MODEL], compared.stderr


def test_a_changed_byte_or_setting_stops_the_run_and_is_named(shipped):
    other = SENTENCES | {"training": SENTENCES["training"] | {"lr": 0.02}}
    changed = shipped.run("other", f"{{results}}/{MODEL}/model.safetensors", forms={"sentences": other})
    assert changed.returncode != 0
    assert "training.lr must be 0.01, got 0.02" in changed.stderr

    weights = shipped.checkpoints / MODEL / "weights.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    flipped = shipped.run("flipped", f"{{results}}/{MODEL}/model.safetensors")
    assert flipped.returncode != 0
    assert f"{weights}: its hash is" in flipped.stderr
    for run in ("other", "flipped"):
        assert not (shipped.results(run) / MODEL / "model.safetensors").exists()
