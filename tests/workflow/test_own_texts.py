"""A user's own texts: every file that a corpus is read from is an input, whatever the task, and its content decides.

No name of a user's folder reaches the shell unquoted.
"""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tiny_run import checkout

from replication.files.paths import ROOT

SPLITS = ("train", "valid", "test")
#: Name of every folder of the user; a shell would run the commands in it.
NAME = "my $(touch PWN) 'x'; touch PWN"


@pytest.fixture
def own(tmp_path):
    """The smoke profile with every text, the tokenizer, the sparsified model and the checkpoints in folders of the user."""
    folder = checkout(tmp_path / "checkout", copied=("config",))
    profile = yaml.safe_load((ROOT / "config/smoke.yaml").read_text()) | {"profile": "own", "checkpoints": False}
    texts = folder / NAME
    texts.mkdir()
    for split in SPLITS:
        for ending in ("txt", "en", "de", "fr"):
            (texts / f"{split}.{ending}").write_text(f"a sentence of {split} in {ending} .\n" * 40)
        # By default, Snakemake compares the contents of files up to a megabyte.
        (texts / f"{split}.txt").write_text(f"a sentence of {split} .\n" * 60_000)
    text, pairs = {"source": "folder", "path": str(texts)}, {"source": "folder", "path": str(texts)}
    profile["masked_lm"] |= {"corpus": text, "unseen": {"other": text}}
    profile["translation"]["corpus"] = {"en-de": pairs}
    profile["char_lm"]["corpora"] = {"own": {"source": "text", "path": str(texts)}}
    profile["retrofit"]["corpus"] = text
    for section in profile["forms"].values():
        section["corpus"] = {"fr-en": pairs}
    profile["normalizer_speed"]["corpus"] = {"fr-en": pairs}
    profile["masked_lm"]["tokenizer"] = {"pretrained": str(texts)}
    profile["retrofit"]["model"] = str(texts)
    profile["checkpoints"] = NAME
    profile.pop("patterns")
    regions = {"source": "karpathy", "captions": str(texts / "train.txt"), "regions": str(texts)}
    profile["captioning"]["source"] = regions
    (folder / "config/demo.yaml").write_text(yaml.safe_dump(profile))
    return folder


def snakemake(folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "snakemake", "--cores", "2", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("file", ["train.txt", "valid.de"])
def test_a_file_that_is_dated_in_the_future_stops_the_run_before_any_job(own, file):
    path = own / NAME / file
    os.utime(path, (2e9, 2e9))
    done = subprocess.run([sys.executable, "-m", "snakemake", "--dry-run"], cwd=own, capture_output=True, text=True)
    assert done.returncode == 1
    assert f"{path} is dated in the future (2033-05-18" in done.stdout + done.stderr
    assert f"touch {shlex.quote(str(path))}" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_texts_are_inputs_and_a_change_of_one_makes_its_stage_run(own):
    done = subprocess.run([sys.executable, ROOT / "tests/workflow/plans.py"], cwd=own, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    plans = json.loads(done.stdout)
    inputs = {job: {Path(path).name for path in plan["input"] if NAME in path} for job, plan in plans.items()}
    for rule in ("corpus__masked_lm", "corpus__retrofit"):
        assert inputs[rule] == {"train.txt", "valid.txt"}
    assert inputs["corpus__masked_lm_unseen_other"] == {"valid.txt"}
    assert inputs["characters__char_lm_own"] == {f"{split}.txt" for split in SPLITS}
    of_pair = {
        pair: {f"{split}.{language}" for split in SPLITS for language in pair.split("-")} for pair in ("en-de", "fr-en")
    }
    assert inputs["parallel_corpus__translation_en_de"] == of_pair["en-de"]
    for place in ("forms_sentences_fr_en", "normalizer_speed"):
        assert inputs[f"parallel_corpus__{place}"] == of_pair["fr-en"]
    assert inputs["train_masked_lm"] == set()
    assert inputs["tokenize__masked_lm"] >= {"train.txt"}
    assert inputs["measure_rules"] >= {"train.txt"}
    assert inputs["pictures"] == {"train.txt"}
    assert [plan["command"] for plan in plans.values() if "PWN" in (plan["command"] or "")] == []
    ship = snakemake(own, "ship", "--dry-run", "--printshellcmds")
    commands = [line for line in ship.splitlines() if "replicate ship" in line]
    assert commands
    for command in commands:
        assert NAME in shlex.split(command)
    target = "results/own/char_lm/own/text/test.txt"
    snakemake(own, target)
    # A copied or downloaded file is newer than what was made of the same text.
    for file in (own / NAME).iterdir():
        os.utime(file)
    assert "Nothing to be done" in snakemake(own, "--dry-run", target)
    changed = own / NAME / "test.txt"
    changed.write_text(changed.read_text().replace("a sentence", "sentences"))
    os.utime(changed, (1e9, 1e9))  # as old as a file moved from elsewhere can be
    assert not list(own.glob("**/PWN"))
    assert "characters__char_lm_own" in snakemake(own, "--dry-run", target)
