"""Every profile that no run here can end is at least planned to its end, on local files of the form that it reads."""

import copy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
#: What has to be in the plan, by the profile's name.
JOBS = {
    "paper": {
        "train_masked_lm",
        "train_translation",
        "evaluate_blocks",
        "characters",
        "normalizer_speed",
        "claims",
        "report",
    },
    "paper-news": {"parallel_corpus", "binarize", "claims", "report"},
    "paper-captions": {"train_captioner", "measure_captioners", "claims", "report"},
    "local": {"train_masked_lm", "train_translation", "sparsify", "scaling", "claims", "report"},
    "minilm": {"sparsify", "measure_rules", "claims", "report"},
}


def sections(config: object) -> Iterator[dict]:
    """Every mapping, the innermost last."""
    if isinstance(config, dict):
        yield config
    for inner in config.values() if isinstance(config, dict) else config if isinstance(config, list) else ():
        yield from sections(inner)


def with_local_files(config: dict, folder: Path) -> dict:
    """The configuration with files of one line in place of those that a user brings."""
    config = copy.deepcopy(config)
    names = {f"{split}.{ending}" for split in ("train", "valid", "test") for ending in ("txt", "en", "de", "fr")}
    names |= {
        f"{name}.{language}"
        for section in sections(config)
        for name in section.get("names", {}).values()
        for language in ("en", "de", "fr")
    }
    (folder / "text").mkdir()
    for name in names:
        (folder / "text" / name).write_text("One line .\n", encoding="utf-8")
    for section in sections(config):
        match section:
            case {"source": "folder", "path": _}:
                section["path"] = str(folder / "text")
            case {"source": "text", "path": path}:
                section["path"] = str(folder / Path(path).name)
                Path(section["path"]).write_text("One line .\n", encoding="utf-8")
            case {"source": "karpathy"}:
                section["captions"], section["regions"] = str(folder / "captions.json"), str(folder / "regions")
                Path(section["captions"]).write_text("{}", encoding="utf-8")
                Path(section["regions"]).mkdir()
    return config


def test_these_are_all_profiles_but_those_that_run_here():
    """A rehearsal plans the week's profile (test_paper_week)."""
    planned_elsewhere = {"demo", "smoke", "paper-week"}
    assert {path.stem for path in (ROOT / "config").glob("*.yaml")} == JOBS.keys() | planned_elsewhere


@pytest.mark.parametrize("profile", JOBS)
def test_a_profile_is_planned_to_its_end(profile, tmp_path):
    config = with_local_files(
        yaml.safe_load((ROOT / "config" / f"{profile}.yaml").read_text(encoding="utf-8")), tmp_path
    )
    (tmp_path / "profile.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "snakemake",
        "--dry-run",
        "--nolock",
        "--forceall",
        "--quiet",
        "rules",
        "--cores",
        "8",
    ]
    done = subprocess.run(
        [*command, "--configfile", str(tmp_path / "profile.yaml")], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    planned = {
        line.partition("__")[0].split()[0]
        for line in done.stdout.splitlines()
        if len(line.split()) == 2 and line.split()[1].isdigit()
    }
    assert planned >= JOBS[profile], sorted(planned)
