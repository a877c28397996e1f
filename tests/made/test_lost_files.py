"""A file of the default run that is lost is made again, also if no later step needs it."""

import re
import shutil
import subprocess
import sys

import pytest

from replication.files.paths import ROOT

RESULTS = ROOT / "results/demo"


@pytest.mark.parametrize(
    ("place", "job"),
    [
        ("masked_lm/model/adapters.safetensors", r"weights_\d+_masked_lm"),
        ("masked_lm/tags.csv", "tags"),
        ("scaling.csv", "scaling"),
    ],
)
def test_a_lost_file_is_planned_again(place, job, tmp_path):
    path = RESULTS / place
    shutil.move(path, tmp_path)
    try:
        plan = [sys.executable, "-m", "snakemake", "--cores", "1", "--dry-run"]
        planned = subprocess.run(plan, cwd=ROOT, capture_output=True, text=True, check=True)
    finally:
        shutil.move(tmp_path / path.name, path)
    # The dry run ends with a table of its jobs by rule.
    assert re.search(rf"^{job} +1$", planned.stdout + planned.stderr, re.MULTILINE)
