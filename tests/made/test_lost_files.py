"""A file of the default run that is lost is made again, also if no later step needs it, or if a killed run was making it.

A file that waits to be made again disturbs no other.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from replication.files.manifest import MANIFEST, changing
from replication.files.paths import ROOT
from replication.files.storage import replacing

RESULTS = Path("results/demo")


@pytest.fixture(scope="module")
def checkout():
    """Return hard links to the checkout's files, because other tests read the run's files meanwhile."""
    with TemporaryDirectory(dir=ROOT / "build") as folder:
        skipped = shutil.ignore_patterns(".git", ".venv", "build", "__pycache__")
        yield shutil.copytree(ROOT, Path(folder, "checkout"), copy_function=os.link, ignore=skipped)


def planned(checkout: Path) -> str:
    """What a dry run prints, which ends with a table of its jobs by rule."""
    plan = [sys.executable, "-m", "snakemake", "--cores", "1", "--dry-run"]
    done = subprocess.run(plan, cwd=checkout, capture_output=True, text=True, check=True)
    return done.stdout + done.stderr


@pytest.mark.parametrize("is_listed", [True, False])
@pytest.mark.parametrize(
    ("place", "job"),
    [
        ("masked_lm/model/adapters.safetensors", r"weights_\d+_masked_lm"),
        ("masked_lm/tags.csv", "tags"),
        ("scaling.csv", "scaling"),
    ],
)
def test_a_lost_file_is_planned_again(place, job, is_listed, checkout, tmp_path):
    results = checkout / RESULTS
    path, manifest = results / place, results / MANIFEST
    before = manifest.read_bytes()
    shutil.move(path, tmp_path)
    try:
        if not is_listed:
            with changing(results) as changed:
                del changed["made"][place]
        found = planned(checkout)
    finally:
        shutil.move(tmp_path / path.name, path)
        with replacing(manifest) as restored:
            restored.write_bytes(before)
    assert re.search(rf"^{job} +1$", found, re.MULTILINE)


def test_a_ledger_is_written_beside_the_report_of_an_earlier_configuration(checkout):
    """Its files are not listed from when a run is planned until they are made again."""
    with changing(checkout / RESULTS) as changed:
        for place in ("claims.csv", "report.html", "explorer.html"):
            changed["made"].pop(place, None)
    (checkout / RESULTS / "claims.csv").unlink()  # as Snakemake does
    command = "from replication.stages import app; app()"
    arguments = ["claims", str(RESULTS), "--output", str(RESULTS / "claims.csv")]
    done = subprocess.run([sys.executable, "-c", command, *arguments], cwd=checkout, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
