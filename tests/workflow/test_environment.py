"""conda and the lock install the same versions, and what is installed is what they say."""

import itertools
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

from replication.files.packages import PACKAGES
from replication.files.paths import ROOT
from workflow.environment import use_own_environment

LIBRARY, REPLICATION = (
    tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"] for folder in (".", "replication")
)


def pins(requirements):
    """Name to version, without the platforms that a pin is for."""
    return dict(line.split(";")[0].strip().lower().split("==") for line in requirements)


*_, CONDA = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
PINS = pins(CONDA["pip"])
LOCK = pins((ROOT / "requirements.lock").read_text().splitlines())
HASHED = (ROOT / "requirements.hashed").read_text()


def test_the_lock_holds_the_same_pins():
    assert {name: LOCK.get(name) for name in PINS} == PINS


def test_the_lock_holds_every_package_that_is_asked_for():
    asked = set()
    for project in (LIBRARY, REPLICATION):
        for requirement in itertools.chain(project["dependencies"], *project["optional-dependencies"].values()):
            asked.add(re.match(r"[a-z0-9-]+", requirement)[0])
    assert asked - {"sparselib"} <= LOCK.keys()


def test_each_locked_package_has_hashes_but_torch():
    entries = re.findall(
        r"^(\S+?==\S+)[^\n]*\\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", HASHED, flags=re.MULTILINE
    )
    hashed = {re.sub("[._]", "-", name): pin for name, pin in pins(entry for entry, _ in entries).items()}
    assert hashed == {re.sub("[._]", "-", name): pin for name, pin in LOCK.items() if name != "torch"}


def test_pip_refuses_a_file_with_another_hash(tmp_path):
    """pip stops before it installs anything."""
    wheel = tmp_path / "tiny-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
    (tmp_path / "hashed").write_text(f"{wheel} --hash=sha256:{'0' * 64}\n")
    command = next(line for line in (ROOT / "Makefile").read_text().splitlines() if "--require-hashes" in line)
    arguments = command.split()[1:-1]
    done = subprocess.run(
        [sys.executable, "-m", "pip", *arguments, tmp_path / "hashed"], capture_output=True, text=True
    )
    assert done.returncode != 0
    assert "DO NOT MATCH THE HASHES" in done.stderr


def test_the_lock_leaves_out_what_slows_every_notebook():
    """jsonschema imports it if it is there, for one format that nothing here uses, and it compiles a grammar for seconds."""
    assert "rfc3987-syntax" not in LOCK


@pytest.mark.parametrize("name", ["fairseq", *PACKAGES])
def test_conda_users_are_told_the_packages_to_install_without_dependencies(name):
    assert f"{name}=={LOCK[name]}" in (ROOT / "environment.yml").read_text()


@pytest.mark.parametrize("name", PINS)
def test_what_is_installed_is_what_is_pinned(name):
    assert version(name).split("+")[0] == PINS[name]


def planned(folder, *arguments):
    """What make would do for the environment."""
    done = subprocess.run(["make", "--dry-run", "env", *arguments], cwd=folder, capture_output=True, text=True)
    return done.stdout + done.stderr


@pytest.fixture
def installed(tmp_path):
    """A folder whose environment was made there, last of all."""
    folder = tmp_path / "first"
    for name in (
        "requirements.lock",
        "requirements.hashed",
        "pyproject.toml",
        "replication/pyproject.toml",
        "workflow/terminal/pyproject.toml",
        "setup.py",
        "kernels/support.cpp",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    (folder / "Makefile").write_text((ROOT / "Makefile").read_text())
    (folder / ".venv").mkdir()
    (folder / ".venv/installed").write_text(f"{folder}\n")
    (folder / ".venv/compiled").touch()
    return folder


def test_an_environment_is_made_again_after_a_move_or_a_copy(installed):
    assert "Nothing to be done" in planned(installed)
    moved = installed.rename(installed.with_name("second"))
    assert "venv --clear .venv" in planned(moved)
    (moved / ".venv/installed").write_text("")  # of an earlier version
    assert "venv --clear .venv" in planned(moved)
    assert "Nothing to be done" in planned(moved, "--assume-old=.venv/installed", "--assume-old=.venv/compiled")


def test_kernels_are_compiled_again_after_an_edit(installed):
    later = (installed / ".venv/compiled").stat().st_mtime + 1
    os.utime(installed / "kernels/support.cpp", (later, later))
    assert "build_ext --inplace" in planned(installed)
    assert "venv --clear .venv" not in planned(installed)


def test_another_python_is_refused_before_anything_is_installed(installed, tmp_path):
    (installed / ".venv/installed").unlink()
    python = tmp_path / "python3.13"
    python.write_text(f"#!{sys.executable}\nimport sys\nsys.version_info = (3, 13, 0)\nexec(sys.argv[2])\n")
    python.chmod(0o755)
    done = subprocess.run(["make", "env", f"PYTHON={python}"], cwd=installed, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("PYTHON must be Python 3.11 or 3.12, got 3.13; run: make env PYTHON=python3.11\n")
    assert [path.name for path in (installed / ".venv").iterdir()] == ["compiled"]


@pytest.mark.parametrize(
    "path", [None, "/somewhere", f"{Path(sys.executable).parent}", f"/somewhere:{Path(sys.executable).parent}"]
)
def test_jobs_find_the_commands_of_this_environment_first(monkeypatch, path):
    given = {} if path is None else {"PATH": path}
    monkeypatch.setattr(os, "environ", given)
    use_own_environment()
    assert given["PATH"].split(":")[0] == f"{Path(sys.executable).parent}"
    assert set(given["PATH"].split(":")) >= set((path or "").split(":")) - {""}
