"""Notebooks stay thin: parameters, few short cells, no library code, a claim checked, and differences from the paper."""

import json
import subprocess
import sys

import pytest

from replication.files.paths import ROOT

INDEX = ROOT / "notebooks/index.ipynb"
PATHS = [path for path in sorted((ROOT / "notebooks").rglob("*.ipynb")) if ".ipynb_checkpoints" not in path.parts]
PATHS.remove(INDEX)
#: Trains its own model instead of drawing a run.
TUTORIAL = ROOT / "notebooks/tutorial.ipynb"


@pytest.fixture(params=PATHS, ids=lambda path: path.stem)
def path(request):
    return request.param


@pytest.fixture
def notebook(path) -> dict:
    return json.loads(path.read_text())


@pytest.fixture
def code(notebook) -> list[str]:
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def test_there_are_notebooks():
    assert len(PATHS) >= 8


def test_one_code_cell_is_tagged_parameters(notebook, path):
    tagged = [cell for cell in notebook["cells"] if "parameters" in cell["metadata"].get("tags", [])]
    assert [cell["cell_type"] for cell in tagged] == ["code"]
    assert ("profile" in "".join(tagged[0]["source"])) != (path == TUTORIAL)


def test_cells_are_few_and_short(code):
    assert len(code) <= 12
    assert max(len(cell.splitlines()) for cell in code) <= 16


def test_nothing_is_defined(code):
    lines = [line.strip() for cell in code for line in cell.splitlines()]
    assert [line for line in lines if line.startswith(("def ", "async def ", "class ", "@"))] == []


def test_something_is_asserted(code):
    assert any(line.strip().startswith("assert ") for cell in code for line in cell.splitlines())


def test_it_lists_differences_from_the_paper(notebook):
    """Under a heading, and in words that follow it."""
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "markdown"]
    section = next(cell for cell in cells if cell.startswith("## Differences from the paper"))
    assert len(section.split()) > 20


def test_it_begins_with_a_title(notebook):
    first = notebook["cells"][0]
    assert first["cell_type"] == "markdown"
    assert "".join(first["source"]).startswith("# ")


def test_its_kernel_is_python3(notebook):
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"


def test_it_is_small(path):
    assert path.stat().st_size < 500_000


def test_no_stored_output_is_an_error_or_a_warning(notebook):
    """A warning also names a folder of the machine that it came from."""
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", [])]
    assert [output for output in outputs if output["output_type"] == "error" or output.get("name") == "stderr"] == []


def test_a_figure_is_shown_when_it_is_finished(notebook):
    """In the cell that saves it: an earlier one would show it without what is drawn later."""
    saving = [cell for cell in notebook["cells"] if "plots.save(" in "".join(cell["source"])]
    for cell in saving:
        assert any("image/png" in output.get("data", {}) for output in cell["outputs"])


def test_the_index_has_every_notebook_as_it_is():
    text = "".join("".join(cell["source"]) for cell in json.loads(INDEX.read_text())["cells"])
    assert [path for path in PATHS if f"]({path.relative_to(INDEX.parent).as_posix()})" not in text] == []
    check = [sys.executable, str(ROOT / "workflow/scripts/index.py"), "--check"]
    done = subprocess.run(check, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_index_has_the_metadata_of_an_executed_notebook():
    """Else JupyterLab adds what the kernel says of itself, and shows the index as modified."""
    index, executed = (json.loads(path.read_text())["metadata"] for path in (INDEX, PATHS[1]))
    assert index == {name: executed[name] for name in ("kernelspec", "language_info")}
    assert index["language_info"]["version"]
