"""``replicate prune`` deletes only what a whole plan does not have, only below the run, and only if somebody agrees."""

import os
import pty
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

import pytest
from typer.testing import CliRunner

from replication.files import manifest
from replication.files.manifest import MANIFEST, FormatError, changing, making, write_plan
from replication.files.paths import ROOT
from replication.files.storage import replacing
from replication.files.verification import unplanned, verify
from replication.stages import app

OPTIONS = {"options": "o", "code": "c"}


def make(path: Path, stage: str) -> Path:
    with making(stage, {}), replacing(path) as temporary:
        temporary.write_text(stage)
    return path


@pytest.fixture
def results(tmp_path) -> Path:
    """A run with a file of its plan, and one of a seed that its plan no longer has."""
    results = tmp_path / "results/tiny"
    make(results / "config.yaml", "configuration")
    write_plan(results, {"kept.csv": OPTIONS}, [], whole=True)
    make(results / "kept.csv", "keep it")
    make(results / "seed1.csv", "sweep 1")
    return results


def prune(results: Path, *options: str, answer: str = ""):
    return CliRunner().invoke(app, ["prune", str(results), *options], input=answer)


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}


def test_without_a_terminal_it_only_lists(results):
    before = files(results)
    done = prune(results, answer="y\n")
    assert done.exit_code == 0
    assert done.stdout == f"{results / 'seed1.csv'}\n"
    assert "nothing is deleted; " in done.stderr
    assert files(results) == before


@pytest.mark.parametrize(("answer", "is_kept"), [(b"n\n", True), (b"\n", True), (b"y\n", False)])
def test_on_a_terminal_it_asks(results, answer, is_kept):
    ours, theirs = pty.openpty()
    program = "import sys; from replication.stages import app; app(sys.argv[1:])"
    command = [sys.executable, "-c", program, "prune", str(results)]
    with subprocess.Popen(command, stdin=theirs, stdout=subprocess.PIPE, text=True) as running:
        os.write(ours, answer)
        output = running.stdout.read()
    os.close(ours)
    os.close(theirs)
    assert output.startswith(f"{results / 'seed1.csv'}\nDelete these 1 files?")
    assert (results / "seed1.csv").exists() == is_kept


def test_with_yes_it_deletes_what_the_plan_does_not_have(results):
    assert prune(results, "--yes").exit_code == 0
    assert {"kept.csv", "config.yaml", MANIFEST} <= files(results)
    assert not (results / "seed1.csv").exists()
    verify(results, whole=True)
    assert "has no files of another configuration" in prune(results, "--yes").stdout


def test_links_are_neither_followed_nor_deleted(results, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mine.csv").write_text("mine")
    (results / "folder").symlink_to(outside)
    (results / "file.csv").symlink_to(outside / "mine.csv")
    (results / "loop").symlink_to(results.parent)
    assert unplanned(results) == [results / "seed1.csv"]
    prune(results, "--yes")
    assert (outside / "mine.csv").read_text() == "mine"
    assert (results / "folder").is_symlink()
    assert (results / "file.csv").is_symlink()


def test_it_refuses_a_run_without_a_plan_or_with_the_plan_of_a_part(results):
    """An emptied manifest and one stage by hand made it delete 136 of 154 files."""
    before = files(results)
    (results / MANIFEST).unlink()
    make(results / "kept.csv", "keep it")
    for _ in range(2):
        done = prune(results, "--yes")
        assert done.exit_code == 1
        assert "made.json: must have the plan of a whole run, got none" in done.stderr
        write_plan(results, {"kept.csv": OPTIONS}, [], whole=False)
    assert files(results) == before


def test_planned_files_that_are_not_listed_stay(results):
    with changing(results) as changed:
        changed["made"].clear()
    prune(results, "--yes")
    assert {"kept.csv", "config.yaml"} <= files(results)


def test_a_manifest_is_on_the_disk_before_it_replaces_the_last_one(results, monkeypatch):
    """A power cut left an empty one."""
    calls = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(manifest.os, "fsync", lambda handle: (calls.append(os.fstat(handle).st_ino), fsync(handle)))
    monkeypatch.setattr(manifest.os, "replace", lambda *paths: (calls.append("replace"), replace(*paths)))
    with changing(results):
        pass
    assert calls == [(results / MANIFEST).stat().st_ino, "replace", results.stat().st_ino]


@pytest.mark.parametrize("content", ["", "{", "[]", '{"checksum": 1}'])
def test_a_damaged_manifest_is_refused_without_advice_to_delete(results, content):
    (results / MANIFEST).write_text(content)
    for call in (verify, unplanned):
        with pytest.raises(FormatError, match=r"made\.json: .*restore it from a copy, or move .* away") as error:
            call(results)
        assert "delete" not in str(error.value)


def test_an_archives_name_reaches_the_command_as_it_is(tmp_path):
    """A name with backquotes ran a command, and ``x/.zip`` removed all earlier replays."""
    name = "x/`touch one`$(shell touch two)$$(touch three);'touch four' a\"b.zip"
    (tmp_path / ".venv/bin").mkdir(parents=True)
    replicate = tmp_path / ".venv/bin/replicate"
    replicate.write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
    replicate.chmod(0o755)
    (tmp_path / "build/replayed/demo").mkdir(parents=True)
    make = ["make", "--file", str(ROOT / "Makefile"), "--assume-old", "env", "--silent", "replay"]
    for archive in (name, "x/.zip"):
        done = subprocess.run([*make, f"ARCHIVE={archive}"], cwd=tmp_path, capture_output=True, text=True)
        assert done.stdout == f"replay|--cores|2|--|{archive}|", done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {".venv", "build"}
    assert (tmp_path / "build/replayed/demo").exists()


def test_a_replay_has_a_new_folder(tmp_path, monkeypatch):
    from replication.archives import replay

    chosen = []
    monkeypatch.setattr(replay, "replay", lambda archive, folder, *rest: chosen.append(str(folder)) or [])
    (tmp_path / "build/replayed/.zip").mkdir(parents=True)
    with chdir(tmp_path):
        for name in ("x/.zip", "runs/demo.zip"):
            assert CliRunner().invoke(app, ["replay", name]).exit_code == 0
    assert chosen == ["build/replayed/.zip-2", "build/replayed/demo"]
