"""Shipped models: the same training gives the same hash, what fits is unpacked as it was trained, what does not is refused."""

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file
from typer.testing import CliRunner

from replication.char_lm.data import read_streams
from replication.char_lm.evaluation import evaluate
from replication.char_lm.models import load_model
from replication.files.checkpoints import half_precision, text_hash
from replication.files.seals import seal_of
from replication.files.storage import write_tensors
from replication.stages import app

SETTINGS = {"architecture": "transformer_xl", "memory_length": 8, "layers": 1, "dimension": 8, "heads": 2, "inner": 8}
RECIPE = {"steps": 4, "length": 8, "learning_rate": 0.01, "warmup_steps": 1, "clip_norm": 1.0, "log_every": 2}
ROWS = {"train": 2, "valid": 2, "test": 2}
RUN = {"settings": SETTINGS | {"dropout": 0.0}, "recipe": RECIPE, "rows": ROWS, "seed": 3}
NAME = "char_lm/tiny"


def stage(command: str, **options):
    arguments = [command]
    for name, value in options.items():
        for one in value if isinstance(value, list) else [value]:
            arguments += [f"--{name}", json.dumps(one) if isinstance(one, dict) else str(one)]
    return CliRunner().invoke(app, arguments)


def succeed(command: str, **options):
    result = stage(command, **options)
    assert result.exit_code == 0, result.output
    return result


def text_of(folder: Path) -> list[Path]:
    return [folder / "text/train.txt", folder / "text/valid.txt"]


def train(folder: Path, output: Path, run: dict = RUN) -> None:
    succeed("train-characters", text=folder / "text", output=output, **run)


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A text, a model trained on it, and its checkpoint."""
    folder = tmp_path_factory.mktemp("made")
    source = {"source": "grammar", "words": {"train": 120, "valid": 40, "test": 40}, "seed": 0}
    succeed("characters", source=source, output=folder / "text")
    train(folder, folder / "results" / NAME)
    (folder / "measured.csv").write_text("bits_per_character\n4.5\n")
    succeed(
        "ship", model=folder / "results" / NAME, run=RUN, text=text_of(folder), code="c0de", name=NAME, beside="log.csv",
        measured=folder / "measured.csv", checkpoints=folder / "checkpoints",
    )  # fmt: skip
    return folder


@pytest.fixture
def folder(made, tmp_path) -> Path:
    """A copy to mutate."""
    return shutil.copytree(made, tmp_path / "copy")


def unpack(folder: Path, run: dict = RUN, code: str = "c0de"):
    at = {"checkpoints": folder / "checkpoints", "output": folder / "unpacked"}
    return stage("weights", **at, model={"name": NAME, "run": run}, text=text_of(folder), code=code)


def assert_refused(folder: Path, *named: str, run: dict = RUN) -> None:
    result = unpack(folder, run)
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    for name in named:
        assert name in result.stderr
    assert not (folder / "unpacked").exists()


def test_a_checkpoint_is_half_as_large_and_says_what_made_it(made):
    folder = made / "checkpoints" / NAME
    made_by = json.loads((folder / "made_by.json").read_text())
    assert (made_by["run"], made_by["code"]) == (RUN, "c0de")
    assert made_by["training"].keys() >= {"hardware", "torch", "train_runtime"}
    assert made_by["measured"] == {"measured.csv": [{"bits_per_character": "4.5"}]}
    halves, trained = (
        load_file(folder / "weights.safetensors"),
        load_file(made / "results" / NAME / "model.safetensors"),
    )
    assert halves.keys() == trained.keys()
    for name, half in halves.items():
        assert half.dtype == np.float16
        np.testing.assert_allclose(half, trained[name], rtol=2**-11, atol=2**-25)


def test_unpacked_it_is_what_training_left(folder):
    result = unpack(folder)
    assert (result.exit_code, result.output) == (0, "")
    trained, unpacked = folder / "results" / NAME, folder / "unpacked" / NAME
    for name in ("log.csv", "training.json"):
        assert (unpacked / name).read_bytes() == (trained / name).read_bytes()
    files = {path.name for path in unpacked.iterdir() if path.suffix != ".seal"}
    assert files == {"model.safetensors", "log.csv", "training.json"}
    assert load_file(unpacked / "model.safetensors")["output.weight"].dtype == np.float32
    _, streams = read_streams(folder / "text", ROWS, RECIPE["length"])
    measured = [evaluate(load_model(at / "model.safetensors")[0], streams["test"], 8) for at in (trained, unpacked)]
    assert measured[1].bits_per_character == pytest.approx(measured[0].bits_per_character, abs=1e-3)
    # Shipped once more, the rounded weights are the same: nothing is lost twice.
    assert half_precision(unpacked / "model.safetensors") == half_precision(trained / "model.safetensors")


def test_trained_again_it_has_the_promised_hash_and_from_another_seed_it_has_not(folder):
    at = {"checkpoints": folder / "checkpoints", "results": folder / "again"}
    result = stage("compare-weights", **at)
    assert (result.exit_code, result.stdout.split()) == (1, ["missing", NAME])
    train(folder, folder / "again" / NAME)
    assert succeed("compare-weights", **at).stdout.split() == ["same", NAME]
    train(folder, folder / "again" / NAME, RUN | {"seed": 4})
    result = stage("compare-weights", **at)
    assert (result.exit_code, result.stdout.split()) == (1, ["other", NAME])


def test_the_hash_is_that_of_the_file(made):
    table = (made / "checkpoints/weights.csv").read_text().splitlines()
    content = (made / "checkpoints" / NAME / "weights.safetensors").read_bytes()
    assert table == ["checkpoint,sha256", f"{NAME},{hashlib.sha256(content).hexdigest()}"]


def test_one_changed_weight_is_refused(folder):
    path = folder / "checkpoints" / NAME / "weights.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert_refused(folder, str(path), "weights.csv lists")


def test_weights_that_the_table_does_not_list_are_refused(folder):
    (folder / "checkpoints/weights.csv").write_text("checkpoint,sha256\n")
    assert_refused(folder, f"does not list {NAME}")


@pytest.mark.parametrize(
    ("run", "named"),
    [
        (RUN | {"seed": 4}, "seed is 4, the checkpoint's 3"),
        (RUN | {"recipe": RECIPE | {"steps": 5}}, "recipe.steps is 5, the checkpoint's 4"),
        (RUN | {"settings": RUN["settings"] | {"top_k": 2}}, "settings.top_k is 2, the checkpoint's None"),
        ({key: RUN[key] for key in RUN if key != "rows"}, "rows is None, the checkpoint's {"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_another_config_or_seed_is_refused_by_name(folder, run, named):
    assert_refused(folder, str(folder / "checkpoints" / NAME), named, run=run)


def test_every_difference_is_named(folder):
    run = RUN | {"seed": 4, "recipe": RECIPE | {"length": 9}}
    assert_refused(folder, "seed is 4", "recipe.length is 9", run=run)


def test_a_changed_character_of_the_text_is_refused(folder):
    path = folder / "text/train.txt"
    path.write_bytes(path.read_bytes()[:-1] + b"#")
    assert_refused(folder, "train.txt: has changed since stage characters made it")
    seal_of(path).unlink()
    assert_refused(folder, "the text (train.txt, valid.txt) has hash")


def test_other_code_is_said_and_not_refused(folder):
    result = unpack(folder, code="0ther")
    assert result.exit_code == 0
    assert "warning: " in result.stderr
    assert "trained by code c0de, here it is 0ther" in result.stderr
    assert (folder / "unpacked" / NAME / "model.safetensors").exists()


def test_a_checkpoint_that_is_not_there(folder):
    shutil.rmtree(folder / "checkpoints" / NAME)
    assert_refused(folder, f"{NAME}/weights.safetensors: no such file")


def test_a_number_too_large_for_half_precision_is_refused(tmp_path):
    save_file({"weight": np.array([1.0, 7e4], np.float32)}, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="weight has numbers that 16 bits cannot hold"):
        half_precision(tmp_path / "model.safetensors")


def test_the_hash_of_a_text_is_that_of_its_token_ids_and_their_order(tmp_path):
    ids = torch.arange(6).view(2, 3)
    paths = [tmp_path / f"{name}.safetensors" for name in ("one", "tagged", "reshaped")]
    for path, tensors in zip(
        paths, ({"input_ids": ids}, {"input_ids": ids, "tags": ids + 1}, {"input_ids": ids.view(3, 2)}), strict=True
    ):
        write_tensors(path, tensors, kind="any")
    one, tagged, reshaped = (text_hash([path]) for path in paths)
    assert one == tagged != reshaped
    assert text_hash([paths[0], paths[2]]) != text_hash([paths[2], paths[0]])
