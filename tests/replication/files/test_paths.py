"""Where results lie, and one sentence where there are none."""

import pytest
from IPython.core.interactiveshell import InteractiveShell

from replication.files import paths
from replication.files.manifest import making
from replication.files.storage import replacing


@pytest.fixture
def runs(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    for folder in ("results/demo", "reported/demo", "reported/brown"):
        (tmp_path / folder).mkdir(parents=True)
        with making("claims"), replacing(tmp_path / folder / "claims.csv") as temporary:
            temporary.touch()
    return tmp_path


def test_results_come_before_what_is_kept_of_a_run(runs):
    assert paths.results_of("demo") == runs / "results/demo"
    assert paths.results_of("brown") == runs / "reported/brown"


def test_figures_are_never_drawn_over_those_of_a_kept_run(runs):
    assert paths.figures_of("brown") == runs / "results/brown/figures"
    # Nor are they taken for a run of their own then.
    (runs / "results/brown/figures").mkdir(parents=True)
    assert paths.results_of("brown") == runs / "reported/brown"


def test_a_run_that_is_not_there_is_told_in_one_sentence(runs):
    with pytest.raises(
        FileNotFoundError, match=r"^No results for 'paper': run .*config/paper\.yaml`; there are: brown, demo\.$"
    ):
        paths.results_of("paper")


def test_a_notebook_shows_the_sentence_alone(runs, capsys):
    shell = InteractiveShell.instance()
    result = shell.run_cell("from replication.files.paths import results_of\nresults_of('paper')")
    assert isinstance(result.error_in_exec, paths.NoResults)
    shown = capsys.readouterr().out
    assert shown.startswith("No results for 'paper'")
    assert "Traceback" not in shown
    assert shown.strip().count("\n") == 0


def test_without_any_run_it_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    with pytest.raises(paths.NoResults, match="there are: none"):
        paths.results_of("demo")


def test_a_misspelt_run_is_met_with_the_nearest_name(runs):
    with pytest.raises(
        paths.NoResults, match=r"^No results for 'brwn': did you mean brown\? There are: brown, demo\.$"
    ):
        paths.results_of("brwn")


@pytest.mark.parametrize(
    ("stored", "sentence"),
    [
        ([], "brown stores no graphs; no other run here does, but `make results` makes a demo that does."),
        (["results/demo"], "brown stores no graphs; demo does."),
        (["results/demo", "reported/a", "reported/b"], "brown stores no graphs; a, b and demo do."),
    ],
)
def test_a_run_that_lacks_files_names_the_runs_that_have_them(runs, stored, sentence):
    for folder in stored:
        (runs / folder / "graphs").mkdir(parents=True)
        (runs / folder / "graphs/layer00").touch()
        (runs / folder / "claims.csv").touch()
    with pytest.raises(paths.NoResults) as error:
        paths.results_of("brown", needs={"graphs": "graphs/layer*"})
    assert str(error.value) == sentence


def test_folders_beside_the_runs_are_no_runs(runs):
    """Figures that compare runs, and the papers' own tables."""
    (runs / "reported/figures").mkdir()
    (runs / "reported/figures/initialisation.svg").touch()
    (runs / "reported/papers").mkdir()
    (runs / "reported/papers/claims.csv").touch()
    assert set(paths.stored_runs()) == {"brown", "demo"}
