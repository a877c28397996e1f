"""The manifest of a run: what it lists, and what is refused by name where results leave the folder."""

import json
import multiprocessing
import os
import shutil
from pathlib import Path

import pytest

from replication.files.manifest import MANIFEST, FormatError, changing, encode, making, read_manifest, write_plan
from replication.files.paths import DRAWING, results_of
from replication.files.storage import replacing
from replication.files.verification import inputs, listed_files, prune, unplanned, verify

SETTINGS = {"seed": 0}
OPTIONS = {"options": "o", "code": "c"}


def make(path: Path, content: str = "1", stage: str = "count", read: tuple = (), settings: dict = SETTINGS) -> Path:
    """Run a stage that reads some files and writes one."""
    with making(stage, settings):
        inputs(*read)
        with replacing(path) as temporary:
            temporary.write_text(content)
    return path


@pytest.fixture
def results(tmp_path) -> Path:
    """Return a run of three stages."""
    results = tmp_path / "results" / "tiny"
    make(results / "config.yaml", stage="configuration")
    first = make(results / "task/first.csv", stage="begin")
    make(results / "task/seed0/second.csv", stage="count", read=(first,))
    return results


def entry_of(results: Path, place: str) -> dict:
    return read_manifest(results)["made"][place]


def test_an_entry_has_checksum_stage_options_code_and_inputs(results):
    entry = entry_of(results, "task/seed0/second.csv")
    assert entry["stage"] == "count"
    assert entry["inputs"] == {"task/first.csv": entry_of(results, "task/first.csv")["sha256"][:16]}
    assert {"sha256", "options", "configuration", "code"} <= entry.keys()
    assert (results / MANIFEST).exists()
    assert not [path for path in results.rglob(".*")]
    verify(results, whole=True)


def test_what_no_stage_writes_is_refused_and_pruned(results):
    planned(results, "task", again=["task"])
    make(results / "task/first.csv", stage="begin")
    make(results / "task/seed0/second.csv", stage="count")
    with replacing(results / "mine.csv") as temporary:
        temporary.write_text("by hand")
    with pytest.raises(FormatError, match=r"mine\.csv: was not made by this run; .*replicate prune"):
        verify(results)
    assert unplanned(results) == [results / "mine.csv"]
    prune(results, unplanned(results))
    assert not (results / "mine.csv").exists()
    verify(results)


@pytest.mark.parametrize("growing", [False, True])
def test_a_changed_file_is_refused_with_the_command_that_makes_it_again(results, growing):
    """Its size and time are those that they were."""
    path = results / "task/first.csv"
    times = path.stat()
    path.write_text("2")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    with pytest.raises(
        FormatError, match=r"first\.csv: has changed .*; move it away and run: snakemake .*replicate begin"
    ):
        verify(results, growing=growing)
    with pytest.raises(FormatError, match=r"first\.csv: has changed"):
        inputs(results / "task/first.csv")
    with pytest.raises(FormatError, match=r"first\.csv: has changed"):
        inputs(results / "task")


def test_a_missing_file_is_refused(results):
    (results / "task/first.csv").unlink()
    for check in (verify, lambda root: inputs(root / "task")):
        with pytest.raises(FormatError, match=r"task/first\.csv: is missing"):
            check(results)


@pytest.mark.parametrize("name", ["made.json", "config.yaml", "task/first.csv"])
def test_a_file_of_another_run_is_refused(results, name):
    other = results.with_name("other")
    for path in ("config.yaml", "task/first.csv"):
        make(other / path, content="other", settings={"seed": 1})
    shutil.copy(other / name, results / name)
    with pytest.raises(FormatError, match=name.replace(".", r"\.")):
        verify(results)


def test_a_folder_of_another_run_is_refused_although_its_own_run_is_sound(results):
    make(results.with_name("other") / "captioning/measured.csv")
    shutil.copytree(results.with_name("other") / "captioning", results / "captioning")
    with pytest.raises(FormatError, match=r"captioning/measured\.csv: was not made by this run"):
        verify(results)
    planned(results, "task", "captioning")
    with pytest.raises(FormatError, match=r"captioning/measured\.csv: is not listed"):
        inputs(results / "captioning/measured.csv")
    assert listed_files(results, "*/*.csv") == [results / "task/first.csv"]


def test_a_run_under_another_name_is_refused(results):
    shutil.copytree(results, results.with_name("renamed"))
    with pytest.raises(FormatError, match=r"made\.json: must be of the run renamed, got tiny"):
        verify(results.with_name("renamed"))


def test_a_copied_run_is_sound_without_hidden_files(results, tmp_path):
    copy = tmp_path / "elsewhere/results/tiny"
    shutil.copytree(results, copy, ignore=shutil.ignore_patterns(".*"))
    verify(copy, whole=True)
    verify(copy, growing=True)


def test_a_figure_is_drawn_while_other_files_wait_to_be_made_again(results, monkeypatch):
    """After a changed setting, it stopped at a file that it does not read."""
    for path in (results / "task").rglob("*.csv"):
        os.utime(path, (1e9, 1e9))
    planned(results, "task", again=("task",))
    monkeypatch.setattr("replication.files.paths.ROOT", results.parents[1])
    with pytest.raises(FormatError, match="was made by a stage that did not end, or before this plan"):
        results_of(results.name)
    monkeypatch.setenv(DRAWING, str(results))
    assert results_of(results.name) == results


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda text: text[:-9], "is damaged"),
        (lambda text: "[]", "is damaged"),
        (lambda text: "{}", "is damaged"),
        (lambda text: text.replace('"count"', '"guess"'), "has been changed by hand"),
    ],
)
def test_a_changed_manifest_is_refused(results, change, error):
    path = results / MANIFEST
    path.write_text(change(path.read_text()))
    with pytest.raises(FormatError, match=rf"made\.json: {error}"):
        verify(results)


def test_a_run_without_a_manifest_is_refused(results):
    (results / MANIFEST).unlink()
    with pytest.raises(FormatError, match=r"made\.json: no file of the run is listed"):
        verify(results)
    with pytest.raises(FormatError, match=r"first\.csv: is not listed in made\.json"):
        inputs(results / "task/first.csv")


def test_what_was_made_from_an_earlier_version_is_refused(results):
    make(results / "task/first.csv", stage="begin")
    verify(results)
    make(results / "task/first.csv", content="2", stage="begin")
    with pytest.raises(FormatError, match=r"second\.csv: was made from an earlier version of task/first\.csv"):
        verify(results)


def test_a_stage_that_makes_fewer_files_leaves_no_file_listed(results):
    """Of two seeds, the second is removed from the configuration."""
    for seeds in ((0, 1), (0,)):
        with making("sweep", SETTINGS):
            for seed in seeds:
                with replacing(results / f"task/seed{seed}.csv") as temporary:
                    temporary.write_text("1")
    with pytest.raises(FormatError, match=r"task/seed1\.csv: was not made by this run"):
        verify(results)
    assert listed_files(results / "task", "seed*.csv") == [results / "task/seed0.csv"]


def fail_after(path: Path) -> None:
    with making("begin", SETTINGS):
        with replacing(path) as temporary:
            temporary.write_text("2")
        raise OSError("the disk is full")


def test_a_failed_stage_lists_nothing(results):
    with pytest.raises(OSError, match="full"):
        fail_after(results / "task/first.csv")
    with pytest.raises(FormatError, match=r"first\.csv: has changed"):
        verify(results)


def test_by_hand_files_of_two_configurations_are_refused(results):
    make(results / "task/seed0/second.csv", settings={"seed": 1})
    with pytest.raises(FormatError, match=r"second\.csv: was made with another configuration than config\.yaml"):
        verify(results)


def planned(results: Path, *places: str, again: tuple[str, ...] = (), whole: bool = True, **options) -> None:
    write_plan(results, {place: OPTIONS | options for place in places}, again, whole=whole)


def test_a_file_is_made_with_the_options_of_the_plan(results):
    planned(results, "task", again=["task"])
    make(results / "task/first.csv", stage="begin")
    assert entry_of(results, "task/first.csv").items() >= OPTIONS.items()


def test_leftovers_of_an_earlier_configuration_are_refused_and_pruned(results):
    planned(results, "task", again=["task"])
    for name in ("seed0", "seed1"):
        make(results / f"task/{name}.csv", stage=f"sweep {name}")
    shutil.rmtree(results / "task/seed0")
    (results / "task/first.csv").unlink()
    verify(results)
    planned(results, "task/seed0.csv")
    with pytest.raises(FormatError, match=r"task/seed1\.csv: does not belong to this configuration; .*replicate prune"):
        verify(results)
    assert unplanned(results) == [results / "task/seed1.csv"]
    prune(results, unplanned(results))
    verify(results, whole=True)


def test_files_made_with_options_of_another_configuration_are_refused(results):
    planned(results, "task", again=["task"])
    make(results / "task/first.csv", stage="begin")
    planned(results, "task", options="changed")
    with pytest.raises(FormatError, match=r"first\.csv: was made with options of another configuration"):
        verify(results)


def test_by_hand_another_configuration_does_not_pass_for_the_planned_one(results):
    planned(results, "task", again=["task"])
    make(results / "task/first.csv", stage="begin", settings={"seed": 1})
    with pytest.raises(FormatError, match=r"first\.csv: was made with options of another configuration"):
        verify(results)


def test_a_file_that_is_yet_to_be_made_is_missed_only_in_a_whole_run(results):
    planned(results, "task", "later.csv", again=["task"])
    for path in (results / "task").rglob("*.csv"):
        make(path, stage=f"make {path.name}")
    verify(results)
    with pytest.raises(FormatError, match=r"later\.csv: has not been made yet"):
        verify(results, whole=True)


def test_a_partial_run_keeps_the_plan_of_other_files(results):
    planned(results, "task", again=["task"])
    planned(results, "figure.csv", whole=False)
    assert read_manifest(results)["plan"].keys() == {"task", "figure.csv"}


def write_many(results: Path, number: int) -> None:
    for file in range(5):
        make(results / f"many/{number}_{file}.csv", stage=f"write {number} {file}")


def test_jobs_that_run_at_the_same_time_list_all_of_their_files(results):
    context = multiprocessing.get_context("fork")
    jobs = [context.Process(target=write_many, args=(results, number)) for number in range(8)]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
    assert sum(place.startswith("many/") for place in read_manifest(results)["made"]) == 40
    verify(results)


def test_a_user_file_outside_of_runs_only_has_to_exist(tmp_path):
    (tmp_path / "text.txt").write_text("mine")
    inputs(tmp_path / "text.txt")
    with pytest.raises(FileNotFoundError, match=r"none\.txt: no such file"):
        inputs(tmp_path / "none.txt")


@pytest.mark.parametrize("part", ["made", "plan"])
@pytest.mark.parametrize("place", ["../outside.csv", "/etc/hostname", "task/../../outside.csv"])
def test_a_manifest_that_names_files_outside_of_its_run_is_refused(results, part, place):
    """Verification read them, and stages took them for inputs of the run."""
    with changing(results) as manifest:
        manifest[part][place] = next(iter(manifest["made"].values()))
    with pytest.raises(FormatError, match=rf"made\.json: files must be names in this folder, got {place}"):
        verify(results)


def test_the_manifest_is_readable(results):
    text = (results / MANIFEST).read_text()
    assert json.loads(text)["profile"] == "tiny"
    assert text.count("\n") > 10


#: Manifests of another form, by what they lack or have: a right checksum says nothing about them.
FORMS = {
    "profile is missing": lambda it: it.pop("profile"),
    "made is a list": lambda it: it.update(made=[]),
    "plan is missing": lambda it: it.pop("plan"),
    "plan is a text": lambda it: it.update(plan="task"),
    "an entry is a list": lambda it: it["made"].update({"task/first.csv": []}),
    "a checksum is missing": lambda it: it["made"]["task/first.csv"].pop("sha256"),
    "a checksum is a number": lambda it: it["made"]["task/first.csv"].update(sha256=3),
    "a stage is missing": lambda it: it["made"]["task/first.csv"].pop("stage"),
    "a stage is empty": lambda it: it["made"]["task/first.csv"].update(stage=" "),
    "inputs are a list": lambda it: it["made"]["task/first.csv"].update(inputs=["config.yaml"]),
    "an input is a number": lambda it: it["made"]["task/first.csv"].update(inputs={"config.yaml": 3}),
    "options are missing": lambda it: it["made"]["task/first.csv"].pop("options"),
    "configuration is missing": lambda it: it["made"]["task/first.csv"].pop("code"),
    "a plan is a text": lambda it: it["plan"].update({"task": "o"}),
    "a plan has no options": lambda it: it["plan"].update({"task": {"code": "c"}}),
    "a machine is unknown": lambda it: it["made"]["task/first.csv"].update(machine="none"),
    "a machine is a list": lambda it: it["made"]["task/first.csv"].update(machine=["none"]),
    "machines are a list": lambda it: it.update(machines=[]),
    "whole is a text": lambda it: it.update(whole="yes"),
    "dropped is a list": lambda it: it.update(dropped=["task"]),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_manifest_of_another_form_is_refused_by_name(results, form):
    """Each ended in a traceback."""
    manifest = json.loads((results / MANIFEST).read_text())
    del manifest["checksum"]
    FORMS[form](manifest)
    (results / MANIFEST).write_bytes(encode(manifest))
    for check in (verify, unplanned, lambda root: inputs(root / "task/first.csv")):
        with pytest.raises(FormatError, match=r"made\.json: .* must be .*, got .*; restore it"):
            check(results)


@pytest.mark.parametrize("content", ["[]", "3", '"text"', "null"])
def test_a_manifest_that_is_no_object_is_refused(results, content):
    (results / MANIFEST).write_text(content)
    with pytest.raises(FormatError, match=r"made\.json: is damaged"):
        verify(results)
