"""The workflow's plan in a run's manifest: options follow from settings alone, and foreign results are not taken over."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from replication.files.manifest import making, options_hash, write_plan
from replication.files.storage import replacing
from workflow.plan import foreign, lost, places, planned, untouchable

SETTINGS = {"seed": 0}


def job(
    outputs: list[Path], command: str = "replicate sweep masked_lm --config c", **params: object
) -> SimpleNamespace:
    return SimpleNamespace(shellcmd=command, output=outputs, params={"code": "c", "config": "c.yaml", **params})


@pytest.fixture
def results(tmp_path) -> Path:
    return tmp_path / "results" / "tiny"


def make(results: Path, name: str, settings: dict = SETTINGS) -> None:
    with making(f"make {name}", settings), replacing(results / name) as temporary:
        temporary.write_text(name)


def test_options_follow_from_settings_alone(results):
    output = results / "sweep/seed0.csv"
    (first,) = planned([job([output], settings={"windows": [0]})], results).values()
    (moved,) = planned([job([output], settings={"windows": [0]}, config="d.yaml")], results).values()
    (other,) = planned([job([output], settings={"windows": [3]})], results).values()
    assert first == moved
    assert first["options"] != other["options"]
    assert first["code"] == other["code"]


def test_files_that_no_stage_makes_or_that_lie_elsewhere_are_not_planned(results):
    notebook = job([results / "notebooks/a.ipynb"], command="jupyter a.ipynb")
    archive = job([results.with_suffix(".zip")])
    assert planned([notebook, archive], results) == {}
    assert places([notebook, archive], results) == ["notebooks/a.ipynb"]


def test_results_of_another_configuration_are_continued_only_where_they_were_made(results, tmp_path):
    known = tmp_path / "known"
    assert not foreign(results, SETTINGS, known)
    make(results, "config.yaml")
    assert not foreign(results, SETTINGS, known)
    assert "was made with another configuration than this one, and not in this checkout" in foreign(
        results, {"seed": 1}, known
    )
    known.write_text(options_hash(SETTINGS))
    assert not foreign(results, {"seed": 1}, known)


def test_touch_needs_a_manifest_with_every_file_and_its_options(results):
    plan = planned([job([results / "sweep.csv"], settings={"windows": [0]})], results)
    changed = planned([job([results / "sweep.csv"], settings={"windows": [3]})], results)
    assert not untouchable(results, plan)
    make(results, "config.yaml")
    assert "sweep.csv is not listed in made.json" in untouchable(results, plan)
    write_plan(results, plan, [], whole=True)
    make(results, "sweep.csv")
    assert not untouchable(results, plan)
    assert "sweep.csv was made with options of another configuration" in untouchable(results, changed)


def test_lost_files_are_made_again(results):
    write_plan(results, planned([job([results / "sweep.csv", results / "data"])], results), [], whole=True)
    for name in ("config.yaml", "sweep.csv", "data/words.bin", "data/lines.bin"):
        make(results, name)
    for settings in (SETTINGS, {"seed": 1}):
        assert lost(results, settings) == []
    (results / "sweep.csv").unlink()
    for settings in (SETTINGS, {"seed": 1}):
        assert lost(results, settings) == [results / "sweep.csv"]
    (results / "data/words.bin").unlink()
    with pytest.raises(
        FileNotFoundError, match=r"words.bin is lost: move \S*/data away, which one step makes as a whole"
    ):
        lost(results, SETTINGS)


def test_files_that_a_killed_run_was_making_again_are_made_again(results):
    """They are neither there nor listed; the plan has them, if it is that of the same configuration."""
    plan = planned([job([results / "model.bin"]), job([results / "measured.csv"])], results)
    write_plan(results, plan, [], whole=True)
    for name in ("config.yaml", "model.bin", "measured.csv"):
        make(results, name)
    write_plan(results, plan, plan, whole=True)
    (results / "model.bin").unlink()
    assert lost(results, SETTINGS) == [results / "model.bin"]
    assert lost(results, {"seed": 1}) == []


@pytest.mark.parametrize("by_hand", [False, True])
def test_touch_refuses_results_of_other_code(results, monkeypatch, by_hand):
    """After an edit, ``--touch`` marked results of the code before it as current."""
    make(results, "config.yaml")
    plan = planned([job([results / "sweep.csv"])], results)
    write_plan(results, plan, [], whole=True)
    if by_hand:  # after an edit of code that the stage does not use
        monkeypatch.setattr("replication.files.manifest.source_hash", lambda: "edited")
        monkeypatch.setattr("workflow.plan.source_hash", lambda: "edited")
    make(results, "sweep.csv")
    assert not untouchable(results, plan)
    monkeypatch.setattr("workflow.plan.source_hash", lambda: "edited again")
    edited = {place: entry | {"code": "other"} for place, entry in plan.items()}
    assert "sweep.csv was made by other code: --touch must not mark it as current" in untouchable(results, edited)
