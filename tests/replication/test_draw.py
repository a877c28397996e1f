"""The command that executes a notebook: parameters by their types, and one line for what is missing."""

import json

import nbformat
import pytest
from command_line import run

from replication.files.paths import ROOT

PARAMETERS = 'profile: str = "demo"  # a run\nclaim: int = 2\nshare: float = 0.5'


@pytest.fixture
def notebook(tmp_path):
    def write(*cells):
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in (PARAMETERS, *cells)])
        notebook.cells[0].metadata["tags"] = ["parameters"]
        notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(notebook, tmp_path / "some.ipynb")
        return "some.ipynb"

    return write


def draw(folder, notebook, output="mine.ipynb", **options):
    return run(folder, "draw", notebook, output, config=None, **options)


def test_parameters_have_the_types_of_the_notebook(notebook, tmp_path):
    name = notebook("print(repr((profile, claim, share)))")
    assert draw(tmp_path, name, set=["profile=2024", "claim=3", "share=1"]).exit_code == 0
    (*_, cell) = json.loads((tmp_path / "mine.ipynb").read_text())["cells"]
    assert "".join(cell["outputs"][0]["text"]) == "('2024', 3, 1.0)\n"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("claim=three", "some.ipynb: `claim` must be of type int, got 'three'"),
        ("clam=3", "some.ipynb: `--set` must name one of profile, claim, share, got 'clam=3'"),
    ],
)
def test_a_parameter_that_the_notebook_has_not_is_refused(notebook, tmp_path, value, message):
    done = draw(tmp_path, notebook("1"), set=value)
    assert done.exit_code == 1
    assert done.stderr == f"error: {message}\n"


def test_a_run_that_is_not_there_is_one_line(notebook, tmp_path):
    name = notebook("from replication.files.paths import results_of\nresults_of(profile)")
    done = draw(tmp_path, name, set="profile=nonsense")
    assert done.exit_code == 1
    (line,) = [line for line in done.stderr.splitlines() if "kernel" not in line.lower()]
    assert line.startswith("error: some.ipynb: No results for 'nonsense'")


def test_a_full_disk_is_one_line(notebook, tmp_path):
    done = draw(tmp_path, notebook("1"), output="/dev/full")
    assert done.exit_code == 1
    (line,) = [line for line in done.stderr.splitlines() if "kernel" not in line.lower()]
    assert line.startswith("error: ")
    assert "space left on device" in line


def test_a_fault_of_a_cell_is_shown_without_the_traceback_of_the_command(notebook, tmp_path, capfd):
    done = draw(tmp_path, notebook("1 / 0"))
    assert done.exit_code == 1
    assert done.stderr.splitlines()[-1] == "error: some.ipynb: ZeroDivisionError in cell 2"
    assert "papermill" not in done.stderr


def test_the_number_of_a_claim_may_be_a_text(tmp_path):
    done = draw(ROOT, "notebooks/claims.ipynb", str(tmp_path / "mine.ipynb"), set=["profile=darby", "claim=3"])
    assert done.exit_code == 0, done.stderr
    assert "**3. " in (tmp_path / "mine.ipynb").read_text()
