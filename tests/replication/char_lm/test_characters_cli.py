"""The stages of character language modelling, from a text to a model and its tables; errors of one line."""

import gzip
import json

import pandas as pd
import pytest
from characters import SIZES
from typer.testing import CliRunner

from replication.char_lm import training
from replication.char_lm.corpus import SPLITS, read_corpus
from replication.char_lm.models import load_model
from replication.stages import app

GRAMMAR = {"source": "grammar", "words": {"train": 300, "valid": 80, "test": 90}, "seed": 0}
SPAN = {
    "architecture": "adaptive_span",
    "maximal_span": 12,
    "ramp": 4,
    "span_penalty": 0.0,
    "initial_span": 0.5,
} | SIZES
XL = {"architecture": "transformer_xl", "memory_length": 8} | SIZES
RECIPE = {"steps": 6, "length": 8, "learning_rate": 0.01, "warmup_steps": 1, "clip_norm": 1.0, "log_every": 3}
ROWS = {"train": 4, "valid": 2, "test": 2}


def run(command: str, **options):
    """Run a stage; dictionaries become JSON."""
    arguments = [command]
    for name, value in options.items():
        arguments += [f"--{name}", json.dumps(value) if isinstance(value, dict) else str(value)]
    return CliRunner().invoke(app, arguments)


def succeed(command: str, **options) -> None:
    result = run(command, **options)
    assert result.exit_code == 0, result.output


def train(text, output, settings=XL, **changes):
    return run(
        "train-characters",
        text=text,
        output=output,
        **({"settings": settings, "recipe": RECIPE, "rows": ROWS, "seed": 0} | changes),
    )


def assert_one_line(result, *named: str) -> None:
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit), result.exception
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    for name in named:
        assert name in result.stderr


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    folder = tmp_path_factory.mktemp("characters")
    succeed("characters", source=GRAMMAR, output=folder)
    return folder


def test_the_embedded_corpus_is_written_as_text(text, tmp_path):
    described = json.loads((text / "corpus.json").read_text())
    assert described["source"] == GRAMMAR
    for name in SPLITS:
        content = (text / f"{name}.txt").read_bytes()
        assert described["splits"][name] == {"characters": len(content), "origin": "embedded corpus"}
        assert len(content.split()) >= GRAMMAR["words"][name]
    succeed("characters", source=GRAMMAR, output=tmp_path)
    assert all((tmp_path / f"{name}.txt").read_bytes() == (text / f"{name}.txt").read_bytes() for name in SPLITS)


def test_one_file_is_cut_as_enwik8_is(tmp_path):
    (tmp_path / "enwik8").write_bytes(bytes(range(200)))
    splits = read_corpus({"source": "text", "path": str(tmp_path / "enwik8")})
    assert b"".join(split.text for split in splits.values()) == bytes(range(200))
    assert [(name, len(split.text)) for name, split in splits.items()] == [("train", 180), ("valid", 10), ("test", 10)]
    assert "last 5 % of enwik8" in splits["test"].origin


def test_a_folder_has_a_file_per_split_gzipped_or_not(tmp_path):
    (tmp_path / "train.txt").write_bytes(b"one")
    (tmp_path / "valid.txt.gz").write_bytes(gzip.compress(b"two"))
    (tmp_path / "test.txt").write_bytes(b"three\xff")
    splits = read_corpus({"source": "text", "path": str(tmp_path)})
    assert {name: split.text for name, split in splits.items()} == {
        "train": b"one",
        "valid": b"two",
        "test": b"three\xff",
    }
    assert splits["valid"].origin == "valid.txt.gz"


def test_without_a_test_file_half_of_the_validation_file_is_the_test_and_this_is_said(tmp_path):
    (tmp_path / "train.txt").write_bytes(b"one")
    (tmp_path / "valid.txt").write_bytes(b"seconds")
    splits = read_corpus({"source": "text", "path": str(tmp_path)})
    assert (splits["valid"].text, splits["test"].text) == (b"sec", b"onds")
    assert (splits["valid"].origin, splits["test"].origin) == ("first half of valid.txt", "second half of valid.txt")


def write_folder(folder, **files):
    for name, content in files.items():
        (folder / name.replace("_", ".")).write_bytes(content)


@pytest.mark.parametrize(
    ("files", "named"),
    [
        ({}, "no train.txt"),
        ({"train_txt": b"text"}, "no valid.txt"),
        ({"train_txt": b"", "valid_txt": b"text"}, "train split of (train.txt)"),
        ({"train_txt": b"text", "valid_txt": b"t"}, "valid split of (first half of valid.txt)"),
        (
            {"train_txt": b"text", "valid_txt": b"t", "valid_txt_gz": gzip.compress(b"t")},
            "both valid.txt and valid.txt.gz",
        ),
        ({"train_txt_gz": gzip.compress(b"text" * 99)[:-9], "valid_txt": b"text"}, "train.txt.gz: truncated"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_files_that_are_missing_empty_or_damaged_are_named_in_one_line(tmp_path, files, named):
    write_folder(tmp_path, **files)
    assert_one_line(
        run("characters", source={"source": "text", "path": str(tmp_path)}, output=tmp_path / "out"),
        named,
        str(tmp_path),
    )
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("source", "named"),
    [
        ({"source": "hub"}, "'hub' is unknown"),
        ({"source": "text"}, "'text' lacks a key"),
        ({"source": "grammar", "seed": 0}, "lacks a key"),
    ],
)
def test_sources_are_checked(tmp_path, source, named):
    assert_one_line(run("characters", source=source, output=tmp_path / "out"), named)


@pytest.mark.parametrize(
    "settings", [XL, XL | {"top_k": 3}, SPAN | {"top_k": 3}], ids=["xl", "xl, top-k", "span, top-k"]
)
def test_training_leaves_a_model_its_log_and_what_it_measures(text, tmp_path, settings):
    result = train(text, tmp_path, settings)
    assert result.exit_code == 0, result.output
    succeed("measure-characters", text=text, model=tmp_path)
    model, _ = load_model(tmp_path / "model.safetensors")
    log, row = pd.read_csv(tmp_path / "log.csv"), pd.read_csv(tmp_path / "measured.csv").iloc[0]
    spans = ["mean_span"] if "ramp" in settings else []
    assert list(log) == ["step", "train_bits", "valid_bits", "attended_positions", *spans]
    assert list(row.index) == ["architecture", "top_k", "memory_length", "parameters", "characters", "bits_per_character",
                               "attended_positions", *spans, "training_seconds", "device"]  # fmt: skip
    test = (text / "test.txt").read_bytes()
    assert row["characters"] == len(test) - 1
    segments = pd.read_parquet(tmp_path / "segments.parquet")
    assert segments["characters"].sum() == len(test) - 1
    assert segments["bits"].sum() / segments["characters"].sum() == pytest.approx(row["bits_per_character"])
    assert segments["characters"].max() == RECIPE["length"]
    assert row["parameters"] == sum(parameter.numel() for parameter in model.parameters())
    assert row["memory_length"] == model.memory_length
    assert 0 < row["attended_positions"] <= settings.get("top_k", 16)
    assert row["training_seconds"] > 0
    summary = json.loads((tmp_path / "training.json").read_text())
    assert summary["settings"] == {"top_k": None} | settings
    assert (summary["recipe"], summary["rows"], summary["seed"]) == (RECIPE, ROWS, 0)
    assert summary["source"]
    assert not (tmp_path / "checkpoint.safetensors").exists()


def test_an_interrupted_training_goes_on_and_does_not_say_how_long_it_took(text, tmp_path, monkeypatch):
    real = training.step

    def step(progress, *arguments):
        if progress.step == 4:
            raise OSError("the machine was taken away")
        return real(progress, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(training, "step", step)
        assert "taken away" in train(text, tmp_path / "cut").stderr
    for folder in ("cut", "whole"):
        assert train(text, tmp_path / folder).exit_code == 0
        succeed("measure-characters", text=text, model=tmp_path / folder)
    cut, whole = (pd.read_csv(tmp_path / folder / "measured.csv") for folder in ("cut", "whole"))
    pd.testing.assert_frame_equal(cut.drop(columns="training_seconds"), whole.drop(columns="training_seconds"))
    assert cut["training_seconds"].isna().all()
    assert json.loads((tmp_path / "cut/training.json").read_text())["train_runtime"] is None
    assert (tmp_path / "cut/log.csv").read_bytes() == (tmp_path / "whole/log.csv").read_bytes()


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"rows": ROWS | {"test": 200}}, "test.txt: a text of"),
        ({"settings": {"top_k": 3} | SIZES}, "architecture must be one of"),
        ({"recipe": RECIPE | {"steps": 0}}, "steps must be at least 1"),
    ],
)
def test_what_cannot_be_trained_is_named_in_one_line(text, tmp_path, changes, named):
    assert_one_line(train(text, tmp_path / "out", **changes), named)
    assert not (tmp_path / "out").exists()


def test_an_empty_training_text_is_named_in_one_line(tmp_path):
    write_folder(tmp_path, train_txt=b"", valid_txt=b"text", test_txt=b"text")
    assert_one_line(train(tmp_path, tmp_path / "out"), "train.txt: ")


def test_baselines_are_ngrams_of_characters(text, tmp_path):
    succeed("character-baselines", text=text, output=tmp_path / "baselines.csv")
    table = pd.read_csv(tmp_path / "baselines.csv", index_col="model")
    bits = table["bits_per_character"]
    assert bits["interpolated bigram"] < bits["unigram"] < 5
    assert (table["characters"] == len((text / "test.txt").read_bytes()) - 1).all()


@pytest.mark.parametrize(
    ("option", "left_out"),
    [("recipe", "steps"), ("recipe", "clip_norm"), ("settings", "layers"), ("settings", "heads")],
)
def test_a_missing_key_is_named_in_one_line(text, tmp_path, option, left_out):
    whole = {"recipe": RECIPE, "settings": XL}[option]
    result = train(text, tmp_path / "out", **{option: {key: whole[key] for key in whole if key != left_out}})
    assert_one_line(result, f"--{option}", left_out)
    result = train(text, tmp_path / "out", **{option: whole | {f"{left_out}s": 1}})
    assert_one_line(result, f"--{option}", f"{left_out}s")
    assert list(tmp_path.iterdir()) == []
