"""Every command that a page shows: Snakemake and make plan it, and other programs know its options."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from replication.files.paths import ROOT

PAGES = [*ROOT.glob("*.md"), *ROOT.glob("*/README.md"), *ROOT.glob("docs/*.md"), ROOT / "docs/index.md"]
#: Make targets that need arguments, root or an idle machine only run by hand; here they are only looked up.
PLACEHOLDERS = ("...", "<", "mine.ipynb")


def commands(program: str) -> set[str]:
    """Return the commands of a program in blocks of shell code and between backquotes."""
    found = set()
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        lines = [line for block in text.split("```sh\n")[1:] for line in block.partition("```")[0].splitlines()]
        lines += re.findall(r"`([^`\n]+)`", text.replace("\n", " "))
        found |= {line.partition("#")[0].strip() for line in lines if line.startswith(f"{program} ")}
    return {line for line in found if not any(text in line for text in PLACEHOLDERS)}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Path:
    """A copy of the repository without results."""
    folder = tmp_path_factory.mktemp("checkout")
    kept = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for name in filter(None, kept.stdout.split("\0")):
        if (ROOT / name).is_file() and not name.endswith(".parquet"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


def execute(words: list[str], folder: Path) -> subprocess.CompletedProcess:
    environment = os.environ | {"PYTHONPATH": str(folder)}
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


def test_pages_show_commands():
    assert len(commands("snakemake")) >= 5
    assert len(commands("make")) >= 10
    assert commands("replicate")


@pytest.mark.parametrize("command", sorted(commands("snakemake")))
def test_snakemake_plans_it(checkout, command):
    words = shlex.split(command)
    # A cluster's executor is not installed everywhere, and is not needed to plan.
    words = ["profiles/default" if word == "profiles/slurm" else word for word in words]
    cores = [] if "--cores" in words else ["--cores", "1"]
    done = execute([sys.executable, "-m", "snakemake", *words[1:], *cores, "--dry-run", "--quiet", "all"], checkout)
    said = done.stdout + done.stderr
    # Texts of other profiles are the user's; without them, the only problems are missing folders.
    if "Invalid configuration:" in said:
        problems = said.partition("Invalid configuration:")[2].strip().splitlines()
        assert any("--configfile" in word for word in words)
        assert [line for line in problems if "folder" not in line and "file" not in line] == []
    else:
        assert done.returncode == 0, said


@pytest.mark.parametrize("command", sorted(commands("make")))
def test_make_plans_it(command):
    words = shlex.split(command)
    targets = {line.partition(":")[0] for line in (ROOT / "Makefile").read_text().splitlines() if "  ## " in line}
    assert {word for word in words[1:] if "=" not in word} <= targets
    done = execute(["make", "--dry-run", "--old-file", ".venv/installed", *words[1:]], ROOT)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", sorted(commands("replicate")))
def test_replicate_knows_it(command):
    words = [word for word in shlex.split(command) if not word.startswith("<")]
    done = execute([words[0], *words[1:2], "--help"], ROOT)
    assert done.returncode == 0, done.stderr
    for option in (word for word in words[2:] if word.startswith("--")):
        assert option in done.stdout


@pytest.mark.parametrize("words", [["make"], ["make", "help"]], ids=" ".join)
def test_make_lists_every_target(words):
    listed = re.findall(r"^make ([a-z-]+) +\S", execute(words, ROOT).stdout, re.MULTILINE)
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1].split()
    assert sorted(listed) == sorted(phony)


def test_a_missing_configuration_file_is_one_line(checkout):
    done = execute([sys.executable, "-m", "snakemake", "-n", "--configfile", "config/none.yaml"], checkout)
    assert done.returncode != 0
    (line,) = (done.stdout + done.stderr).strip().splitlines()
    assert line.startswith("--configfile: config/none.yaml does not exist; there are: config/demo.yaml, ")


@pytest.mark.parametrize(
    "words", [["config/smoke.yaml", "fig03_strided"], ["config/smoke.yaml", "config/demo.yaml", "results/x.csv"]]
)
def test_a_target_after_the_configuration_is_told_from_a_file(checkout, words):
    done = execute([sys.executable, "-m", "snakemake", "-n", "--configfile", *words], checkout)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    target = words[-1]
    assert (
        line
        == f"--configfile: {target} is no file; write targets first: snakemake {target} ... --configfile {words[0]}"
    )


def test_the_list_of_rules_has_figures_and_steps(checkout):
    done = execute([sys.executable, "-m", "snakemake", "--list-rules"], checkout)
    assert {"all", "fig04", "sweep__masked_lm_window"} <= set(done.stdout.split())
    assert "Using workflow specific profile" not in done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_folders_that_containers_mount_exist_or_are_made_before(page, checkout):
    for block in page.read_text(encoding="utf-8").split("```sh\n")[1:]:
        made = set()
        for line in block.partition("```")[0].splitlines():
            words = shlex.split(line, comments=True)
            made |= {word.removeprefix("./") for word in words[1:]} if words[:1] == ["mkdir"] else set()
            mounts = [word for option, word in pairwise(words) if option in ("--volume", "--bind")]
            for mount in (part for word in mounts for part in word.split(",")):
                source, target = mount.split(":")[:2]
                assert (checkout / source).is_dir() or source.removeprefix("./") in made, line
                # A read-only image needs the mount point.
                assert target.removeprefix("/sparsefinder/") in (ROOT / "Containerfile").read_text()
