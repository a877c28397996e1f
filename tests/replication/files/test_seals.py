"""Seals of single files: what is refused, what is let through, and what a stage leaves."""

import json
import shutil
from pathlib import Path

import pytest

from replication.files import seals
from replication.files.seals import FormatError, making, place, seal_of, verified, verified_folder
from replication.files.storage import replacing


def make(path, content="1", stage="counted", read=()):
    """A stage that reads some files and writes one."""
    with making(stage):
        for one in read:
            verified(one)
        with replacing(path) as temporary:
            temporary.write_text(content)
    return path


@pytest.fixture
def results(tmp_path):
    return tmp_path / "results" / "tiny"


def test_a_seal_says_the_checksum_the_place_the_stage_and_the_origins(results):
    first = make(results / "task/first.csv", stage="began")
    made = make(results / "task/seed0/second.csv", read=[first])
    said = json.loads(seal_of(made).read_text())
    assert said["place"] == "task/seed0/second.csv"
    assert said["stage"] == "counted"
    assert said["made_from"] == {"task/first.csv": json.loads(seal_of(first).read_text())["sha256"]}
    assert verified(made) == made


def test_what_no_stage_writes_has_no_seal(tmp_path):
    with replacing(tmp_path / "figure.svg") as temporary:
        temporary.write_text("drawn")
    assert not seal_of(tmp_path / "figure.svg").exists()
    assert verified(tmp_path / "figure.svg")


def test_a_change_is_refused_by_name_even_if_the_file_was_read_before(results):
    path = verified(make(results / "a.csv"))
    path.write_text("2")
    with pytest.raises(FormatError, match=r"a\.csv: has changed since stage counted made it"):
        verified(path)


@pytest.mark.parametrize(("moved_to", "fits"), [("layer01/a.csv", False), ("b.csv", False), ("layer00/a.csv", True)])
def test_a_file_and_its_seal_in_another_place(results, moved_to, fits):
    path = make(results / "layer00/a.csv")
    target = results.parent / "other" / moved_to
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(path, target)
    shutil.copy(seal_of(path), seal_of(target))
    if fits:
        verified(target)
    else:
        with pytest.raises(FormatError, match=r"was created as layer00/a\.csv"):
            verified(target)


def test_a_whole_profile_can_be_moved_and_a_model_taken_out_of_it(results, tmp_path):
    make(results / "model/config.json")
    shutil.copytree(results, tmp_path / "results" / "renamed")
    verified_folder(tmp_path / "results" / "renamed")
    shutil.copytree(results / "model", tmp_path / "mine")
    verified_folder(tmp_path / "mine")


def test_a_stage_that_goes_on_from_its_checkpoint_is_not_made_from_it(results):
    checkpoint = make(results / "checkpoint", stage="train")
    log = make(results / "log.csv", stage="train", read=[checkpoint])
    make(checkpoint, content="2", stage="train")
    assert verified(log) == log


def test_what_was_made_from_something_that_changed_since_is_refused(results):
    first = make(results / "first.csv", stage="began")
    second = make(results / "second.csv", read=[first])
    make(first, stage="began")
    verified(second)
    make(first, content="2", stage="began")
    with pytest.raises(FormatError, match=r"second\.csv: was made from an earlier version of first\.csv"):
        verified(second)
    first.unlink()
    seal_of(first).unlink()
    verified(second)


@pytest.mark.parametrize(
    "change", [lambda text: text[:-9], lambda text: text.replace("counted", "guessed"), lambda text: "[]"]
)
def test_a_changed_seal_is_refused(results, change):
    path = make(results / "a.csv")
    seal_of(path).write_text(change(seal_of(path).read_text()))
    with pytest.raises(FormatError, match=r"a\.csv: its seal"):
        verified(path)


def test_a_file_written_anew_has_a_new_seal(results):
    make(results / "a.csv")
    verified(make(results / "a.csv", content="2"))
    with replacing(results / "a.csv") as temporary:
        temporary.write_text("by hand")
    assert verified(results / "a.csv").read_text() == "by hand"


def test_a_file_is_hashed_once_a_process(results, monkeypatch):
    path, counted = make(results / "a.csv"), []
    monkeypatch.setattr(seals, "checksum", lambda path, of=seals.checksum: counted.append(path) or of(path))
    for _ in range(3):
        verified(path)
    assert counted == [path]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/x/results/demo/masked_lm/a.csv", "masked_lm/a.csv"),
        ("/results/x/results/demo/a.csv", "a.csv"),
        ("/x/results/a.csv", "a.csv"),
        ("/x/y/a.csv", "a.csv"),
    ],
)
def test_places(path, expected):
    assert place(Path(path)) == expected
