"""Two edits add a predictor to the workflow: its file, and its arguments and row in ``methods.py``, as the guide shows."""

import json
import re
import shutil
import subprocess
import sys

from replication.files.paths import ROOT

FILE, ROW = re.findall(r"```py(?:thon)?\n(.*?)```", (ROOT / "docs/add-a-predictor.md").read_text(), re.DOTALL)
METHODS = {"long-keys": {"predictor": "LongKeys", "length": [0.5, 1.0]}}
SCRIPT = """
import json, sys, yaml
from replication.config import parse
from replication.graphs.grids import expand
from replication.settings import ARGUMENTS
from workflow.closure import closure

profile, methods = yaml.safe_load(open("config/smoke.yaml")), json.loads(sys.argv[1])
profile["masked_lm"]["methods"] |= methods
config = parse(profile)
members = expand({name: method.given() for name, method in config.masked_lm.methods.items()})
built = [member.build({}, 0) for member in members if member.method == "long-keys"]
print(*built, "length" in ARGUMENTS, "sparselib/predictors/norms.py" in closure("sweep", ["LongKeys"]))
"""


def test_two_edits_add_a_predictor(tmp_path):
    for name in ("config", "kernels", "replication", "sparselib", "workflow"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "requirements.lock", tmp_path)
    definition, _ = FILE.split("\n\nx = torch")
    (tmp_path / "sparselib/predictors/norms.py").write_text(definition + "\n")
    with (tmp_path / "replication/methods.py").open("a") as methods:
        methods.write(f"\n\n{ROW}")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(METHODS)], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stdout.split("\n")[0] == "LongKeys(length=0.5) LongKeys(length=1.0) True True", done.stderr
