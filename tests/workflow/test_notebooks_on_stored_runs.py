"""Every notebook on every stored run: it draws or tabulates, or says in one sentence which files the run lacks."""

import re

import matplotlib
import matplotlib.pyplot as plt
import pytest

from replication import plots
from replication.files import paths
from replication.files.needs import code_cells, needs_of

NOTEBOOKS = [path for path in sorted((paths.ROOT / "notebooks").glob("**/[!.]*.ipynb")) if path.name != "index.ipynb"]
# The tutorial trains for a minute and reads no run; nbval runs it.
NOTEBOOKS = [path for path in NOTEBOOKS if ".ipynb_checkpoints" not in path.parts and path.stem != "tutorial"]
RUNS = {path.parent.name: path.parent for path in sorted((paths.ROOT / "reported").glob("*/README.md"))}
SENTENCE = (
    r"{run} stores no [\w -]+; ([\w, -]+ does|[\w, -]+ and [\w-]+ do|no other run here does, but `make results` .*)\."
)


def execute(notebook, profile: str) -> list:
    """Execute a notebook's code cells for a run, and return the figures that it saves."""
    names, saved = {"display": lambda table: None}, []

    def save(figure, folder, name: str) -> None:
        assert folder == paths.ROOT / "results" / profile / "figures"  # the stored run stays as it is
        saved.append(figure)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(plots, "save", save)
        for source, are_parameters in code_cells(notebook):
            exec(compile(source, notebook.name, "exec"), names)
            if are_parameters:
                assert names["profile"] == "demo"
                names["profile"] = profile
    return saved


@pytest.fixture(autouse=True)
def stored_runs_alone(monkeypatch):
    """Results of this checkout, if there are any, do not decide a test."""
    matplotlib.use("Agg")
    monkeypatch.setattr(paths, "stored_runs", lambda: RUNS)
    yield
    plt.close("all")


def test_every_kind_of_run_is_stored():
    assert len(RUNS) > 10
    assert len(NOTEBOOKS) > 30


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_it_draws_or_says_what_the_run_lacks(notebook):
    needs = needs_of(notebook)
    draws = any("plots.save(" in source for source, _ in code_cells(notebook))
    # A notebook that reads nothing draws the same for every run.
    for run in RUNS if needs is not None else ["demo"]:
        if needs and paths.missing_needs(RUNS[run], needs):
            with pytest.raises(paths.NoResults) as error:
                execute(notebook, run)
            assert re.fullmatch(SENTENCE.format(run=run), str(error.value))
        else:
            assert len(execute(notebook, run)) == draws
        plt.close("all")
