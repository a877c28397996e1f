"""Files that the current plan did not make: unlisted, of other options or code, or in a folder with a reserved name."""

import os
from pathlib import Path

import pytest
from test_manifest import SETTINGS, entry_of, make

from replication.files import manifest, storage
from replication.files.manifest import MANIFEST, FormatError, read_manifest, write_plan
from replication.files.paths import DRAWING, results_of
from replication.files.runs import is_left_out, place_of, root_of
from replication.files.verification import inputs, verify

PLAN = {"table.csv": {"options": "8", "code": "c"}, "later.csv": {"options": "8", "code": "c"}}


def options(value: str) -> dict:
    return {place: entry | {"options": value} for place, entry in PLAN.items()}


@pytest.fixture
def results(tmp_path, monkeypatch) -> Path:
    """A whole run of two tables."""
    results = tmp_path / "results/tiny"
    monkeypatch.setattr("replication.files.paths.ROOT", tmp_path)
    make(results / "config.yaml", stage="configuration")
    write_plan(results, PLAN, [], whole=True)
    for place in PLAN:
        make(results / place, stage=f"measure {place}")
    verify(results, whole=True)
    return results


def stopped(results: Path, value: str = "4") -> None:
    """Start the run with another setting, and stop it before its first step."""
    make(results / "config.yaml", stage="configuration", content="changed", settings={"seed": value})
    write_plan(results, options(value), list(PLAN), whole=True)


def test_tables_of_earlier_settings_are_refused_after_a_stopped_start(results):
    """Notebooks and the ledger read tables of eight sequences below a configuration of four."""
    stopped(results)
    refused = rf"({'|'.join(PLAN)}): was made by a stage that did not end, or before this plan"
    for check in (verify, lambda root: results_of("tiny")):
        with pytest.raises(FormatError, match=refused):
            check(results)
    with pytest.raises(FormatError, match=r"table\.csv: is not listed in made\.json"):
        inputs(results / "table.csv")


def test_a_newer_time_does_not_make_them_current(results):
    stopped(results)
    for place in PLAN:
        os.utime(results / place)
    with pytest.raises(FormatError, match="was made by a stage that did not end, or before this plan"):
        verify(results)


def test_a_notebook_beside_a_running_job_accepts_what_that_job_is_writing(results):
    stopped(results)
    for place in PLAN:
        (results / place).unlink()
    make(results / "table.csv", stage="measure", settings={"seed": "4"})
    with storage.replacing(results / "later.csv") as temporary:
        temporary.write_text("not listed yet")
    assert results_of("tiny") == results
    with pytest.raises(FormatError, match=r"later\.csv: was made by a stage that did not end"):
        verify(results)


def test_with_the_earlier_settings_back_the_files_are_listed_again(results):
    before = read_manifest(results)["made"]["table.csv"]
    stopped(results)
    make(results / "config.yaml", stage="configuration")
    (results / "later.csv").write_text("changed meanwhile")
    write_plan(results, PLAN, [], whole=True)
    assert entry_of(results, "table.csv") == before
    with pytest.raises(FormatError, match=r"later\.csv: was made by a stage that did not end"):
        verify(results)


def test_inputs_of_other_options_are_refused(results):
    write_plan(results, options("4"), [], whole=True)
    with pytest.raises(FormatError, match=r"table\.csv: was made with options of another configuration"):
        inputs(results / "table.csv")


def test_inputs_made_from_an_earlier_version_are_refused(results):
    make(results / "later.csv", stage="later", read=(results / "table.csv",))
    make(results / "table.csv", stage="measure", content="2")
    with pytest.raises(FormatError, match=r"later\.csv: was made from an earlier version of table\.csv"):
        inputs(results / "later.csv")


def test_a_figure_of_the_workflow_is_drawn_beside_what_waits_to_be_made_again(results, monkeypatch):
    """Snakemake draws a figure alone, without the ledger that is made from the same tables."""
    make(results / "later.csv", stage="later", read=(results / "table.csv",))
    make(results / "table.csv", stage="measure", content="2")
    with pytest.raises(FormatError, match=r"later\.csv: was made from an earlier version of table\.csv"):
        results_of("tiny")
    monkeypatch.setenv(DRAWING, "1")
    assert results_of("tiny") == results


def test_inputs_without_a_manifest_are_refused(results):
    (results / MANIFEST).unlink()
    with pytest.raises(FormatError, match=r"table\.csv: is not listed in made\.json"):
        inputs(results / "table.csv")


def test_a_changed_byte_with_the_same_size_and_time_is_refused(results):
    path, times = results / "table.csv", (results / "table.csv").stat()
    path.write_bytes(bytes([path.read_bytes()[0] ^ 1]) + path.read_bytes()[1:])
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    with pytest.raises(FormatError, match=r"table\.csv: has changed"):
        results_of("tiny")


def test_the_code_of_an_entry_is_the_plans_only_if_nothing_changed_since(results, monkeypatch):
    assert entry_of(results, "table.csv")["code"] == "c"
    monkeypatch.setattr(manifest, "source_hash", lambda: "edited")
    make(results / "table.csv", stage="measure")
    assert entry_of(results, "table.csv")["code"] == "edited"


#: Folders that manifests leave out at the top of a run, or in a model's folder, and places of runs.
NAMES = ("figures", "notebooks", "logs", "checkpoints", "checkpoint.safetensors", "README.md", "made.json")
NAMES += ("results", "reported", "model", "seed0")
OF_USERS = ("char_lm/{}/text/train.txt", "captioning/models/{}/seed0/model.safetensors", "masked_lm/unseen/{}/tokens/v")
OF_USERS += ("char_lm/c/models/{}/seed0/log.csv", "patterns/text/{}/baselines.csv")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("place", OF_USERS)
def test_a_corpus_or_model_of_any_name_is_listed_and_compared(results, place, name):
    path = results / place.format(name)
    assert root_of(path) == results
    assert place_of(path) == place.format(name)
    write_plan(results, PLAN | {place.format(name): PLAN["table.csv"]}, [], whole=True)
    make(path, stage=f"make {name}")
    assert place_of(path) in read_manifest(results)["made"]
    assert len(list(results.rglob(MANIFEST))) == 1 + (name == MANIFEST)
    path.write_text("changed")
    with pytest.raises(FormatError, match="has changed"):
        inputs(path)


def test_a_run_whose_first_file_is_of_a_corpus_called_results_has_one_manifest(tmp_path):
    make(tmp_path / "results/tiny/char_lm/results/text/train.txt")
    assert [path.parent for path in tmp_path.rglob(MANIFEST)] == [tmp_path / "results/tiny"]


def test_a_checkout_in_a_folder_called_results_has_its_own_runs(tmp_path):
    path = make(tmp_path / "results/today/repository/results/tiny/table.csv", settings=SETTINGS)
    assert root_of(path) == path.parent


@pytest.mark.parametrize(
    "folder",
    [
        "masked_lm/model/checkpoints/checkpoint-2",
        "translation/de-en/pretraining/model/checkpoints",
        "forms/sentences/de-en/top-k_k8_seed0/checkpoints",
        "normalizer_speed/models/torch/softmax/checkpoints",
        "captioning/models/checkpoints/seed0/checkpoints",
    ],
)
def test_unfinished_trainings_are_left_out(folder):
    assert is_left_out(f"{folder}/weights.pt")
    assert is_left_out("char_lm/checkpoint.safetensors/models/a/seed0/checkpoint.safetensors")
