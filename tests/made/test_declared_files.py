"""Notebooks and stages of the default run read only files that the workflow declares as their inputs."""

import json
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pytest
from IPython.display import display

from replication.config import load
from replication.files import paths
from replication.files.manifest import MANIFEST, encode, excerpt, read_manifest
from replication.files.runs import root_of
from replication.files.schema import table_at
from replication.run.layout import results_folder
from workflow.notebooks import notebooks

ROOT = paths.ROOT
RUN = load(ROOT / "config/demo.yaml")
RESULTS = results_folder(RUN.profile)
REPORTED = sorted(path.parent.name for path in (ROOT / "reported").glob("*/claims.csv"))
NOTEBOOKS = {notebook.name: notebook for notebook in notebooks(RUN, REPORTED)}


def declared_alone(notebook, folder: Path) -> None:
    """Make a folder that has a notebook's declared inputs, with their manifests, and no other files of the run."""
    reads = {Path(path) for path in notebook.reads} | {RESULTS / "config.yaml"}
    files = {file for path in reads for file in ((ROOT / path).rglob("*") if (ROOT / path).is_dir() else [ROOT / path])}
    for file in files:
        link = folder / file.relative_to(ROOT)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(file)
    for root in {root_of(file) for file in files} - {None}:
        (folder / root.relative_to(ROOT) / MANIFEST).write_bytes(encode(excerpt(read_manifest(root), root, files)))


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs_with_its_declared_files_alone(name, tmp_path, monkeypatch):
    notebook = NOTEBOOKS[name]
    declared_alone(notebook, tmp_path)
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    matplotlib.use("Agg")
    cells = json.loads((ROOT / notebook.path).read_text(encoding="utf-8"))["cells"]
    variables: dict[str, object] = {"display": display}
    with chdir(tmp_path):
        for cell in cells:
            if cell["cell_type"] == "code":
                exec("".join(cell["source"]), variables)
                if "parameters" in cell["metadata"].get("tags", []):
                    variables |= notebook.parameters | {"profile": RUN.profile}
    plt.close("all")


def test_every_table_of_the_run_is_listed_among_the_tables():
    """docs/tables.md lists them, and each was checked when it was written."""
    places = [Path(place) for place in read_manifest(ROOT / RESULTS)["made"]]
    found = [place for place in places if place.suffix in (".csv", ".parquet")]
    assert len(found) > 100
    assert [place for place in found if table_at(ROOT / RESULTS / place) is None] == []


def test_a_stage_reads_declared_files_only():
    """A stage reads files of jobs that its own job needs: a change of theirs then makes it run again."""
    plan = [sys.executable, "tests/workflow/plans.py"]
    jobs = json.loads(subprocess.run(plan, cwd=ROOT, capture_output=True, text=True, check=True).stdout)
    made, undeclared = read_manifest(ROOT / RESULTS)["made"], set()
    for job in jobs.values():
        needed = [path for name in job["needs"] for path in jobs[name]["output"]]
        declared = {Path(path) for path in [*job["input"], *needed]}
        for place, entry in made.items():
            if {RESULTS / place, *(RESULTS / place).parents} & {Path(path) for path in job["output"]}:
                read = [RESULTS / origin for origin in entry["inputs"] if origin != "config.yaml"]
                undeclared |= {(entry["stage"], path) for path in read if not {path, *path.parents} & declared}
    assert undeclared == set()
