"""What jobs ask of a cluster: every rule something, and more where a configuration says so."""

import csv
import re
import subprocess
import sys

import pytest

from replication.config import load
from replication.files.paths import ROOT
from replication.steps import steps
from workflow.resources import SPARE, TABLE, resources_of

with open(TABLE, encoding="utf-8", newline="") as file:
    ROWS = list(csv.DictReader(file))
#: Rules that have a command, by the names that they are written down with, and the commands of steps.
ASKED = {
    name
    for path in (ROOT / "workflow/rules").glob("*.smk")
    for name in re.findall(r'\*\*needs\("(\w+)"\)', path.read_text(encoding="utf-8"))
} | {"store_predictor"}  # of profiles with a predictor of the user
ASKED |= {step.command for path in (ROOT / "config").glob("*.yaml") for step in steps(load(path))}
#: Bodies of rules that have a command.
COMMANDS = [
    body
    for path in (ROOT / "workflow/rules").glob("*.smk")
    for body in re.split(r"^ *rule\b", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    if re.search(r"^ *shell:", body, re.MULTILINE)
]


def test_every_rule_with_a_command_has_a_row():
    assert {row["rule"] for row in ROWS} == ASKED
    assert len(ASKED) == len(ROWS)
    assert [body for body in COMMANDS if "**needs(" not in body] == []
    assert len(COMMANDS) > 5


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["rule"])
def test_twice_what_was_measured_is_asked_for(row):
    asked = resources_of(row["rule"], "laptop", 1)
    assert asked["mem_mb"] == SPARE * int(row["mem_mb"])
    assert asked["runtime"] >= SPARE * float(row["minutes"])
    more = resources_of(row["rule"], "paper", 1)
    assert all(more[name] >= asked[name] for name in asked)


@pytest.mark.parametrize(
    ("rule", "gpus", "given"),
    [("train_masked_lm", 4, 4), ("train_masked_lm", 0, 0), ("replace", 4, 1), ("replace", 0, 0), ("sweep", 4, 0)],
)
def test_trainings_have_all_gpus_what_evaluates_has_one(rule, gpus, given):
    assert resources_of(rule, "laptop", gpus)["gpu"] == given


def plan(*options: str) -> str:
    command = [sys.executable, "-m", "snakemake", "--dry-run", "--nolock", "--forceall", "--cores", "8"]
    done = subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_gpus_of_a_training_are_its_processes():
    said = plan(
        "--printshellcmds",
        "--configfile",
        "config/smoke.yaml",
        "--config",
        "profile=two-gpus",
        "checkpoints=False",
        "gpus=2",
    )
    for stage in ("train-masked-lm", "train-translation translation/[a-z-]+"):
        assert re.search(rf"REPLICATE_GPUS=2 REPLICATE_THREADS=\d+ replicate {stage} ", said)
