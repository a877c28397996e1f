"""A run is archived, and made again from the archive: in a process that has no network, without training, byte for byte."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tiny_run import PROFILE, checkout

from replication.archives.container import opened, write
from replication.files.manifest import encode

#: Every socket but those within the machine, on which notebooks and their kernels talk.
WITHOUT_NETWORK = """
import socket
connect = socket.socket.connect
def refuse(self, address):
    if self.family != socket.AF_UNIX and address[0] not in ("127.0.0.1", "::1", "localhost"):
        raise OSError(f"the network was asked for: {address}")
    return connect(self, address)
socket.socket.connect = refuse
"""


def call(folder: Path, *command: str) -> subprocess.CompletedProcess:
    """Run a module in a checkout of its own."""
    paths = os.pathsep.join([str(folder / "guard"), str(folder)])
    environment = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, env=environment, capture_output=True, text=True, timeout=600
    )


def replay(folder: Path, archive: str, name: str) -> subprocess.CompletedProcess:
    program = "import sys; from replication.stages import app; app(sys.argv[1:])"
    (folder / "stages.py").write_text(program)
    return call(folder, "stages", "replay", archive, "--output", name, "--cores", "2")


@pytest.fixture(scope="module")
def archived(tmp_path_factory):
    """A checkout whose run is in ``results/tiny.zip``, and with everything in ``ran``, for runs of other configurations."""
    # Notebooks look for results beside the package that they import.
    folder = checkout(
        tmp_path_factory.mktemp("archived") / "mit Umlaut, ö", ("kernels", "notebooks", "replication", "sparselib")
    )
    done = call(folder, "snakemake", "archive", "--cores", "2", "--configfile", f"{PROFILE}.yaml")
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    (folder / "ran").mkdir()
    shutil.move(folder / "results" / PROFILE, folder / "ran" / PROFILE)
    (folder / "guard").mkdir()
    (folder / "guard/sitecustomize.py").write_text(WITHOUT_NETWORK)
    return folder


def test_an_archive_gives_every_table_and_figure_again(archived):
    done = replay(archived, f"results/{PROFILE}.zip", "again")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the ledger, every table and every figure are what they were" in done.stdout
    with opened(archived / f"results/{PROFILE}.zip") as file:
        figures = [name for name in file.namelist() if name.endswith((".svg", ".pdf"))]
        assert len(figures) > 4
        for name in figures:
            again = archived / "again" / name
            assert again.read_bytes() == file.read(name)


def contents(archived: Path) -> dict[str, bytes]:
    with opened(archived / f"results/{PROFILE}.zip") as file:
        return {name: file.read(name) for name in file.namelist()}


def test_a_table_that_does_not_follow_from_what_was_measured_is_named(archived):
    ledger, drawn = f"results/{PROFILE}/claims.csv", (f"results/{PROFILE}/notebooks/", f"results/{PROFILE}/figures/")
    held = contents(archived)
    # One notebook has to run: an archive needs one.
    notebook = min(name for name in held if name.startswith(drawn[0]))
    held = {name: content for name, content in held.items() if name == notebook or not name.startswith(drawn)}
    write(archived / "forged.zip", held | {ledger: held[ledger].replace(b"untested", b"holds")})
    done = replay(archived, "forged.zip", "forged")
    assert done.returncode == 1
    assert f"differs: {ledger}" in done.stderr, done.stderr


def test_what_an_archive_has_beyond_this_checkout_is_named_and_neither_run_nor_judged(archived):
    """A predictor of its author, and a claim that this checkout does not have."""
    held, results = contents(archived), f"results/{PROFILE}"
    code = b"raise SystemExit('this code ran')\n"
    manifest = json.loads(held[f"{results}/made.json"])
    place, manifest["plan"] = "predictors/mine.py", {}
    del manifest["checksum"]
    manifest["made"][place] = manifest["made"]["config.yaml"] | {"sha256": hashlib.sha256(code).hexdigest()}
    claims, judged = held["config/published/claims.csv"], held[f"{results}/claims.csv"]
    newer, row = (next(line for line in text.splitlines() if line.startswith(b"clm-")) for text in (claims, judged))
    held |= {
        f"{results}/{place}": code,
        f"{results}/made.json": encode(manifest),
        "config/published/claims.csv": claims + re.sub(b"^[^,]*", b"clm-newer", newer) + b"\n",
        f"{results}/claims.csv": judged + re.sub(b"^[^,]*", b"clm-newer", row) + b"\n",
    }
    # One notebook has to run, and not that of the ledger, which has a row more.
    drawn = sorted(name for name in held if name.startswith((f"{results}/notebooks/", f"{results}/figures/")))
    notebook = next(name for name in drawn if name.endswith(".ipynb") and "claims" not in name)
    held = {name: content for name, content in held.items() if name == notebook or name not in drawn}
    write(archived / "beyond.zip", held)
    done = replay(archived, "beyond.zip", "beyond")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "not judged again, because this checkout does not have these claims: clm-newer\n" in done.stdout
    assert f"has predictors of its author, whose code is not run: {results}/{place}\n" in done.stdout
    assert (archived / "beyond" / results / place).read_bytes() == code


def test_an_archive_without_a_file_that_the_ledger_reads_is_refused(archived):
    held = contents(archived)
    (table,) = (name for name in held if name.endswith("reach.csv"))
    write(archived / "less.zip", {name: content for name, content in held.items() if name != table})
    done = replay(archived, "less.zip", "less")
    assert done.returncode == 1
    assert "reach.csv: is missing" in done.stderr


def touch(archived: Path, **changed: object) -> subprocess.CompletedProcess:
    """Mark the results as current for a changed configuration."""
    shutil.rmtree(archived / "results" / PROFILE, ignore_errors=True)
    shutil.copytree(archived / "ran" / PROFILE, archived / "results" / PROFILE)
    settings = yaml.safe_load((archived / f"{PROFILE}.yaml").read_text()) | changed
    (archived / "changed.yaml").write_text(yaml.safe_dump(settings))
    return call(
        archived,
        "snakemake",
        f"results/{PROFILE}/claims.csv",
        "--touch",
        "--forceall",
        "--cores",
        "1",
        "--configfile",
        "changed.yaml",
    )


def test_touch_does_not_mark_results_of_another_configuration_as_current(archived):
    done = touch(archived, seed=7)
    assert done.returncode != 0
    assert "was made with options of another configuration: --touch must not mark it" in done.stdout + done.stderr


def test_touch_marks_copied_results_of_this_configuration_as_current(archived):
    done = touch(archived)
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_no_step_of_this_configuration_makes_stops_a_run_before_any_work(archived):
    touch(archived)
    left = archived / f"results/{PROFILE}/char_lm/left.csv"
    left.write_text("of a method that the configuration no longer has")
    done = call(archived, "snakemake", "--cores", "1", "--forcerun", "claims", "--configfile", "changed.yaml")
    left.unlink()
    assert done.returncode != 0
    assert f"results/{PROFILE}/char_lm/left.csv: does not belong to this configuration" in done.stdout + done.stderr
    assert f"replicate prune results/{PROFILE}" in done.stdout + done.stderr


def test_results_of_another_configuration_are_not_continued_in_another_checkout(archived):
    touch(archived)
    shutil.rmtree(archived / ".snakemake")
    settings = yaml.safe_load((archived / f"{PROFILE}.yaml").read_text()) | {"seed": 7}
    (archived / "changed.yaml").write_text(yaml.safe_dump(settings))
    done = call(archived, "snakemake", "--dry-run", "--cores", "1", "--configfile", "changed.yaml")
    assert done.returncode != 0
    assert "was made with another configuration than this one, and not in this checkout" in done.stdout + done.stderr


def test_a_changed_byte_is_found_before_anything_is_unpacked(archived):
    whole = bytearray((archived / f"results/{PROFILE}.zip").read_bytes())
    whole[len(whole) // 2] ^= 1
    (archived / "changed.zip").write_bytes(whole)
    done = replay(archived, "changed.zip", "changed")
    assert done.returncode == 1
    assert done.stderr.startswith("error: changed.zip: is not an archive, or has changed")
    assert not (archived / "changed").exists()


def test_nothing_is_written_over(archived):
    (archived / "mine").mkdir()
    done = replay(archived, f"results/{PROFILE}.zip", "mine")
    assert done.stderr == "error: mine: already exists; choose a new folder\n"
