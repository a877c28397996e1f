"""Shipped models: the same training gives the same hash, what fits is unpacked as it was trained, what does not is refused."""

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from command_line import assert_one_line, configure, run, succeed
from safetensors.numpy import load_file, save_file

from replication.char_lm.data import read_streams
from replication.char_lm.evaluation import evaluate
from replication.char_lm.models import load_model
from replication.files.checkpoints import _hash_of_others, differences, half_precision, read_table, text_hash
from replication.files.manifest import add_output, making
from replication.files.storage import replacing, write_tensors

XL = {"architecture": "transformer_xl", "memory_length": 8}
SPAN = {"architecture": "adaptive_span", "maximal_span": 8, "ramp": 4, "span_penalty": 0.0, "initial_span": 0.5}
MODELS = {
    "block": XL,
    "transformer-xl": XL,
    "transformer-xl-top-k": XL,
    "adaptive-span": SPAN,
    "adaptive-span-top-32": SPAN,
    "adaptive-span-top-8": SPAN,
}
SIZES = {"layers": 1, "dimension": 8, "heads": 2, "inner": 8, "dropout": 0.0}
RECIPE = {"steps": 4, "length": 8, "learning_rate": 0.01, "warmup_steps": 1, "clip_norm": 1.0, "log_every": 2}
ROWS = {"train": 2, "valid": 2, "test": 2}
SECTION = {
    "corpora": {"toy": {"source": "bible", "train": ["Philemon"], "valid": ["2 John"], "test": ["3 John"]}},
    "rows": ROWS,
    "recipe": RECIPE,
    "seeds": [3, 4],
    "sizes": SIZES,
    "models": MODELS,
}
RUN = {"settings": SIZES | XL, "recipe": RECIPE, "rows": ROWS, "seed": 3}
PLACE = "char_lm/toy"
NAME, OTHER = (f"{PLACE}/models/transformer-xl/seed{seed}" for seed in (3, 4))
TEXT = f"results/tiny/{PLACE}/text"


def train(folder: Path, seed: int = 3) -> None:
    succeed(folder, "train-characters", PLACE, model="transformer-xl", seed=seed)


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A run with a text and a model trained on it, and the model's checkpoint."""
    folder = tmp_path_factory.mktemp("made") / "run"
    results = configure(folder, char_lm=SECTION, checkpoints="checkpoints")
    succeed(folder, "characters", PLACE)
    train(folder)
    with making("measure-characters", {}), replacing(results / NAME / "measured.csv") as temporary:
        temporary.write_text("bits_per_character\n4.5\n")
    succeed(folder, "ship", NAME, code="c0de")
    return folder


@pytest.fixture
def folder(made, tmp_path) -> Path:
    """A copy to mutate, whose model lies beside the results."""
    folder = shutil.copytree(made, tmp_path / "copy")
    (folder / "results/tiny" / NAME).rename(folder / "trained")
    return folder


def unpack(folder: Path, name: str = NAME, code: str = "c0de", **changes: object):
    configure(folder, char_lm=SECTION | changes, checkpoints="checkpoints")
    return run(folder, "weights", name, code=code)


def assert_refused(folder: Path, *named: str, name: str = NAME, **changes: object) -> None:
    result = unpack(folder, name, **changes)
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    for part in named:
        assert part in result.stderr
    assert not (folder / "results/tiny" / name).exists()


def test_a_checkpoint_is_half_as_large_and_says_what_made_it(made):
    folder = made / "checkpoints" / NAME
    made_by = json.loads((folder / "made_by.json").read_text())
    assert (made_by["run"], made_by["code"]) == (RUN, "c0de")
    assert made_by["training"].keys() >= {"hardware", "torch", "train_runtime"}
    assert made_by["measured"] == {"measured.csv": [{"bits_per_character": "4.5"}]}
    halves, trained = (
        load_file(folder / "weights.safetensors"),
        load_file(made / "results/tiny" / NAME / "model.safetensors"),
    )
    assert halves.keys() == trained.keys()
    for name, half in halves.items():
        assert half.dtype == np.float16
        np.testing.assert_allclose(half, trained[name], rtol=2**-11, atol=2**-25)


def test_unpacked_it_is_what_training_left(folder):
    result = unpack(folder)
    assert (result.exit_code, result.output) == (0, "")
    trained, unpacked = folder / "trained", folder / "results/tiny" / NAME
    for name in ("log.csv", "training.json"):
        assert (unpacked / name).read_bytes() == (trained / name).read_bytes()
    files = {path.name for path in unpacked.iterdir()}
    assert files == {"model.safetensors", "log.csv", "training.json"}
    assert load_file(unpacked / "model.safetensors")["output.weight"].dtype == np.float32
    _, streams = read_streams(folder / TEXT, ROWS, RECIPE["length"])
    measured = [evaluate(load_model(at / "model.safetensors")[0], streams["test"], 8) for at in (trained, unpacked)]
    assert measured[1].bits_per_character == pytest.approx(measured[0].bits_per_character, abs=1e-3)
    # Shipped once more, the rounded weights are the same: nothing is lost twice.
    assert half_precision(unpacked / "model.safetensors") == half_precision(trained / "model.safetensors")


def test_trained_again_it_has_the_promised_hash_and_from_another_seed_it_has_not(folder):
    def compare():
        result = run(folder, "compare-weights", "results/tiny", config=None, checkpoints="checkpoints")
        return result.exit_code, result.stdout.split()

    assert compare() == (1, ["missing", NAME])
    train(folder)
    assert compare() == (0, ["same", NAME])
    train(folder, seed=4)
    results = folder / "results/tiny"
    shutil.copy(results / OTHER / "model.safetensors", results / NAME / "model.safetensors")
    assert compare() == (1, ["other", NAME])


def test_the_hash_is_that_of_the_file(made):
    table = (made / "checkpoints/weights.csv").read_text().splitlines()
    content = (made / "checkpoints" / NAME / "weights.safetensors").read_bytes()
    assert table[0] == "checkpoint,sha256,others"
    assert table[1].startswith(f"{NAME},{hashlib.sha256(content).hexdigest()},")
    assert len(table) == 2


def test_one_changed_weight_is_refused(folder):
    path = folder / "checkpoints" / NAME / "weights.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert_refused(folder, f"{NAME}/weights.safetensors", "weights.csv lists")


@pytest.mark.parametrize("file", ["log.csv", "made_by.json"])
def test_a_changed_file_beside_the_weights_is_refused(folder, file):
    path = folder / "checkpoints" / NAME / file
    path.write_text(path.read_text().replace("1", "2", 1))
    assert_refused(folder, f"{NAME}/made_by.json", "weights.csv lists")


@pytest.mark.parametrize("damage", [lambda text: text[:-9], lambda text: "[]"])
def test_a_damaged_description_is_refused(folder, damage):
    path = folder / "checkpoints" / NAME / "made_by.json"
    path.write_text(damage(path.read_text()))
    assert_refused(folder, f"{NAME}/made_by.json: is damaged")


def test_a_file_outside_of_the_checkpoint_is_neither_read_nor_written(folder):
    path = folder / "checkpoints" / NAME / "made_by.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"files": ["../../evil"]}))
    (path.parents[2] / "evil").write_text("evil")
    assert_refused(folder, f"{NAME}/made_by.json: files must be names in this folder, got ../../evil")
    assert not list((folder / "results").rglob("evil"))


def resign(folder: Path, **changes: object) -> None:
    """Change a checkpoint's description, and list its hash as whoever sends a checkpoint would."""
    path = folder / "checkpoints" / NAME / "made_by.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    table = read_table(folder / "checkpoints")
    row = table[NAME] | {"others": _hash_of_others(path.parent)}
    (folder / "checkpoints/weights.csv").write_text(f"{','.join(row)}\n{','.join(row.values())}\n")


@pytest.mark.parametrize("name", ["{folder}/x.pth", "../x.pth", "x.pth", "training.json", "", None, ["model"]])
def test_the_weights_are_written_to_no_other_file(folder, name):
    """An absolute path won over the folder: a tensor in site-packages/x.pth runs when Python starts."""
    name = name.format(folder=folder) if isinstance(name, str) else name
    resign(folder, weights=name)
    assert_refused(folder, f"{NAME}/made_by.json: weights must be model.safetensors or adapters.safetensors, got")
    assert not list(folder.rglob("x.pth"))
    compared = run(folder, "compare-weights", "results/tiny", config=None, checkpoints="checkpoints")
    assert_one_line(compared, "weights must be model.safetensors or adapters.safetensors")


@pytest.mark.parametrize("name", ["../evil", "/etc/hostname", "a/b", "", ".", 3, "a\0b"])
def test_files_beside_the_weights_have_plain_names(folder, name):
    path = folder / "checkpoints" / NAME / "made_by.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"files": [name]}))
    assert_refused(folder, f"{NAME}/made_by.json: files must be names in this folder")


@pytest.mark.parametrize("name", ["../../outside", "/outside"])
def test_the_table_of_checkpoints_names_folders_below_it(folder, name):
    table = folder / "checkpoints/weights.csv"
    table.write_text(table.read_text().replace(NAME, name))
    compared = run(folder, "compare-weights", "results/tiny", config=None, checkpoints="checkpoints")
    assert_one_line(compared, f"weights.csv: files must be names in this folder, got {name}")


def test_weights_that_the_table_does_not_list_are_refused(folder):
    (folder / "checkpoints/weights.csv").write_text("checkpoint,sha256\n")
    assert_refused(folder, f"does not list {NAME}")


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"recipe": RECIPE | {"steps": 5}}, "recipe.steps must be 4, got 5"),
        ({"rows": ROWS | {"train": 3}}, "rows.train must be 2, got 3"),
        (
            {"models": MODELS | {"transformer-xl": XL | {"top_k": 2}}},
            "settings.top_k must be None, got 2",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_another_config_is_refused_by_name(folder, changes, named):
    assert_refused(folder, f"checkpoints/{NAME} does not fit", named, **changes)


def test_another_seed_is_refused_by_name(folder):
    """The checkpoint of seed 3 in the place of seed 4."""
    shutil.move(folder / "checkpoints" / NAME, folder / "checkpoints" / OTHER)
    table = folder / "checkpoints/weights.csv"
    table.write_text(table.read_text().replace(NAME, OTHER))
    assert_refused(folder, f"checkpoints/{OTHER} does not fit", "seed must be 3, got 4", name=OTHER)


def test_every_difference_is_named(folder):
    recipe, sizes = RECIPE | {"length": 9}, SIZES | {"inner": 9}
    assert_refused(
        folder, "settings.inner must be 8, got 9", "recipe.length must be 8, got 9", recipe=recipe, sizes=sizes
    )


def test_a_key_that_one_side_lacks_differs():
    assert list(differences({"seed": 3}, RUN | {"seed": 3})) == [
        ("recipe", None, RECIPE),
        ("rows", None, ROWS),
        ("settings", None, RUN["settings"]),
    ]


def test_a_changed_character_of_the_text_is_refused(folder):
    path = folder / TEXT / "train.txt"
    path.write_bytes(path.read_bytes()[:-1] + b"#")
    assert_refused(folder, "train.txt: has changed since stage characters made it")
    with making("characters", {}):
        add_output(path)
    assert_refused(folder, "the text (train.txt, valid.txt) must have the hash")


def test_other_code_is_said_and_not_refused(folder):
    result = unpack(folder, code="0ther")
    assert result.exit_code == 0
    assert "warning: " in result.stderr
    assert "trained by code c0de, this code is 0ther" in result.stderr
    assert (folder / "results/tiny" / NAME / "model.safetensors").exists()


def test_a_checkpoint_that_is_not_there(folder):
    shutil.rmtree(folder / "checkpoints" / NAME)
    assert_refused(folder, f"{NAME}/weights.safetensors: no such file")


def test_a_configuration_without_checkpoints_is_named(folder):
    configure(folder, char_lm=SECTION)
    assert_one_line(run(folder, "weights", NAME, code="c0de"), "checkpoints: must be the folder of shipped models")


@pytest.mark.parametrize("command", ["ship", "weights"])
def test_an_unknown_model_is_named_before_anything_is_written(made, tmp_path, command):
    folder = shutil.copytree(made, tmp_path / "copy")
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    result = run(folder, command, NAME, NAME.replace("seed3", "seed5"), code="0ther")
    assert_one_line(result, "transformer-xl/seed5: ")
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


@pytest.mark.parametrize(
    "file",
    [f"{NAME}/{file}" for file in ("model.safetensors", "training.json", "log.csv")] + [f"{PLACE}/text/valid.txt"],
)
def test_a_changed_file_is_not_shipped(made, tmp_path, file):
    folder = shutil.copytree(made, tmp_path / "copy")
    shutil.rmtree(folder / "checkpoints")
    path = folder / "results/tiny" / file
    path.write_bytes(path.read_bytes()[:-1] + b"#")
    assert_one_line(run(folder, "ship", NAME, code="c0de"), f"{path.name}: has changed since stage")
    assert not (folder / "checkpoints").exists()


def test_a_model_is_not_shipped_without_what_was_measured(made, tmp_path):
    folder = shutil.copytree(made, tmp_path / "copy")
    (folder / "results/tiny" / NAME / "measured.csv").unlink()
    assert_one_line(run(folder, "ship", NAME, code="c0de"), "measured.csv: is missing")


def test_a_number_too_large_for_half_precision_is_refused(tmp_path):
    save_file({"weight": np.array([1.0, 7e4], np.float32)}, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="weight has numbers too large for 16 bits"):
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


@pytest.mark.parametrize("key", ["run", "text", "header", "training", "code"])
def test_a_description_that_lacks_a_part_is_refused_by_name(folder, key):
    """Its hash in the table is right."""
    path = folder / "checkpoints" / NAME / "made_by.json"
    path.write_text(json.dumps({name: value for name, value in json.loads(path.read_text()).items() if name != key}))
    resign(folder)
    result = unpack(folder)
    assert_one_line(result, f"{NAME}/made_by.json: must contain {key}, got")


def test_a_table_without_names_is_refused_by_name(folder):
    (folder / "checkpoints/weights.csv").write_text("name,sha256\na,b\n")
    assert_one_line(unpack(folder), "weights.csv: must contain checkpoint, got name, sha256")
