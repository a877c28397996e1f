"""An unfinished training goes on only under the code that began it, and only from what it has written."""

import json
import random
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest
from command_line import assert_one_line, configure, run, succeed

from profiles import CAPTIONING, MASKED_LM, PATTERNS, TRANSLATION
from replication.files import manifest, unfinished
from replication.files.manifest import read_manifest, write_plan

TOY, PAIR = "patterns/text/toy", "translation/grc-en"
PATTERN = PATTERNS["text"] | {"recipe": PATTERNS["text"]["recipe"] | {"steps": 4}}
SECTIONS = {"masked_lm": MASKED_LM, "patterns": {"text": PATTERN}, "captioning": CAPTIONING}
#: Stage, place, options and the folder of the model of each training.
TRAININGS = {
    "masked_lm": ("train-masked-lm", (), {}, "masked_lm/model"),
    "characters": ("train-characters", (TOY,), {"model": "dense", "seed": 0}, f"{TOY}/models/dense/seed0"),
    "captioner": ("train-captioner", (), {"model": "softmax", "seed": 0}, "captioning/models/softmax/seed0"),
}
if find_spec("fairseq"):
    SECTIONS |= {"translation": TRANSLATION}
    TRAININGS |= {"translator": ("train-translation", (PAIR,), {}, f"{PAIR}/model")}


@pytest.fixture(scope="module")
def begun(tmp_path_factory) -> Path:
    """A run in which every training stopped after a checkpoint, before its model was written."""
    folder = tmp_path_factory.mktemp("begun") / "run"
    results = configure(folder, **SECTIONS)
    succeed(folder, "corpus", "masked_lm")
    succeed(folder, "tokenize", "masked_lm")
    succeed(folder, "characters", TOY)
    succeed(folder, "pictures")
    if "translation" in SECTIONS:
        succeed(folder, "parallel-corpus", PAIR)
        succeed(folder, "binarize", PAIR)

    def stop(*_, **__):
        raise OSError("stopped")

    with pytest.MonkeyPatch.context() as patched:
        for name in ("masked_lm", "captioning", "char_lm", "translation"):
            saving = {"char_lm": "save_model", "translation": "save_translator"}.get(name, "save_trained")
            if name != "translation" or "translation" in SECTIONS:
                patched.setattr(f"replication.{name}.training.{saving}", stop)
        for command, places, options, _ in TRAININGS.values():
            assert_one_line(run(folder, command, *places, **options), "stopped")
    for *_, model in TRAININGS.values():
        assert checkpoints(results / model)
        assert not (results / model / "model.safetensors").exists()
    return folder


@pytest.fixture
def folder(begun, tmp_path) -> Path:
    return shutil.copytree(begun, tmp_path / "copy")


def checkpoints(model: Path) -> list[Path]:
    """Return the files from which a training goes on."""
    of_fairseq = [*model.glob("checkpoints/checkpoint_last.pt"), *model.glob("checkpoints/checkpoint_best.pt")]
    inner = [
        path for path in model.glob("checkpoints/checkpoint-*/*") if path.suffix in (".safetensors", ".pt", ".pth")
    ]
    return sorted([*model.glob("checkpoint.safetensors"), *of_fairseq, *inner])


def resume(folder: Path, name: str):
    command, places, options, _ = TRAININGS[name]
    return run(folder, command, *places, **options)


@pytest.mark.parametrize("name", TRAININGS)
def test_it_goes_on_under_the_same_code(folder, name):
    assert resume(folder, name).exit_code == 0
    assert (folder / "results/tiny" / TRAININGS[name][3] / "model.safetensors").exists()


@pytest.mark.parametrize("name", TRAININGS)
def test_it_does_not_go_on_under_edited_code(folder, name, monkeypatch):
    """It went on, and the model was listed with the hash of the new code."""
    model = folder / "results/tiny" / TRAININGS[name][3]
    before = {path: path.read_bytes() for path in checkpoints(model)}
    for module in (manifest, unfinished):
        monkeypatch.setattr(module, "source_hash", lambda: "edited")
    assert_one_line(resume(folder, name), "this training was begun by other code")
    assert {path: path.read_bytes() for path in checkpoints(model)} == before


@pytest.mark.parametrize(("code", "goes_on"), [("closure", True), ("edited", False)])
def test_under_a_plan_only_the_code_that_the_stage_imports_counts(folder, code, goes_on):
    results, place = folder / "results/tiny", "masked_lm/model/model.safetensors"
    record = results / "masked_lm/model/checkpoints/settings.json"
    record.write_text(json.dumps(json.loads(record.read_text()) | {"code": "closure", "source": "before"}))
    listed = read_manifest(results)["made"]
    plan = {name: {"options": entry["options"], "code": "c"} for name, entry in listed.items()}
    write_plan(results, plan | {place: {"options": "o", "code": code}}, [], whole=True)
    assert (resume(folder, "masked_lm").exit_code == 0) == goes_on


@pytest.mark.parametrize("name", TRAININGS)
def test_a_flipped_bit_is_refused(folder, name):
    """Anywhere in the tensors of any file of the checkpoint."""
    model = folder / "results/tiny" / TRAININGS[name][3]
    for path in checkpoints(model):
        before = bytearray(path.read_bytes())
        changed = bytearray(before)
        changed[len(before) // 2] ^= 1 << random.Random(0).randrange(8)
        path.write_bytes(changed)
        assert_one_line(resume(folder, name), f"{path.name}: has changed since the training wrote it")
        assert not (model / "model.safetensors").exists()
        path.write_bytes(before)
    assert resume(folder, name).exit_code == 0


def test_a_training_of_an_earlier_version_is_refused(folder):
    """Nothing says which code began it."""
    record = folder / "results/tiny/masked_lm/model/checkpoints/settings.json"
    recorded = json.loads(record.read_text())
    record.write_text(json.dumps(recorded["settings"]))
    assert_one_line(resume(folder, "masked_lm"), "this training was begun by other code (None")


@pytest.mark.parametrize("content", ["", "{", "3"])
def test_a_damaged_record_is_refused(folder, content):
    record = folder / "results/tiny/masked_lm/model/checkpoints/settings.json"
    record.write_text(content)
    assert_one_line(resume(folder, "masked_lm"), "settings.json: has changed since the training wrote it")
    assert checkpoints(record.parents[1])
