"""A file of the default run that is lost is made again, also if no later step needs it."""

import shutil
import subprocess
import sys

import pytest

from replication.files.paths import ROOT

RESULTS = ROOT / "results/demo"


@pytest.mark.parametrize("place", ["masked_lm/model/adapters.safetensors", "masked_lm/tags.csv", "scaling.csv"])
def test_a_lost_file_is_planned_again(place, tmp_path):
    path = RESULTS / place
    shutil.move(path, tmp_path)
    try:
        plan = [sys.executable, "-m", "snakemake", "--cores", "1", "--dry-run"]
        planned = subprocess.run(plan, cwd=ROOT, capture_output=True, text=True, check=True)
    finally:
        shutil.move(tmp_path / path.name, path)
    assert str(path.relative_to(ROOT)) in planned.stdout + planned.stderr
    assert "Nothing to be done" not in planned.stdout + planned.stderr
