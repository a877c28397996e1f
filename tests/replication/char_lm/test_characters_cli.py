"""The stages of character language modelling, from a text to a model and its tables; errors of one line."""

import gzip
import json
import shutil

import pandas as pd
import pytest
from characters import SIZES
from command_line import assert_one_line, configure, run, succeed

from replication.char_lm import training
from replication.char_lm.corpus import SPLITS, read_corpus
from replication.char_lm.models import load_model
from replication.corpora.bible import read_chapters
from replication.files.manifest import MANIFEST

PLACE = "char_lm/toy"
TEXT = {"source": "bible", "train": ["Philemon"], "valid": ["2 John"], "test": ["3 John"]}
SPAN = {
    "architecture": "adaptive_span",
    "maximal_span": 12,
    "ramp": 4,
    "span_penalty": 0.0,
    "initial_span": 0.5,
}
XL = {"architecture": "transformer_xl", "memory_length": 8}
RECIPE = {"steps": 6, "length": 8, "learning_rate": 0.01, "warmup_steps": 1, "clip_norm": 1.0, "log_every": 3}
ROWS = {"train": 4, "valid": 2, "test": 2}
MODELS = {
    "block": XL | {"memory_length": 0},
    "transformer-xl": XL,
    "transformer-xl-top-k": XL | {"top_k": 3},
    "adaptive-span": SPAN,
    "adaptive-span-top-32": SPAN | {"top_k": 32},
    "adaptive-span-top-8": SPAN | {"top_k": 3},
}
SECTION = {
    "corpora": {"toy": TEXT},
    "rows": ROWS,
    "recipe": RECIPE,
    "seeds": [0],
    "sizes": SIZES,
    "models": MODELS,
}


def train(folder, model="transformer-xl"):
    return run(folder, "train-characters", PLACE, model=model, seed=0)


def corpus(source: dict) -> dict:
    return SECTION | {"corpora": {"toy": source}}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder in which every model has been trained and measured."""
    folder = tmp_path_factory.mktemp("characters") / "run"
    configure(folder, char_lm=SECTION)
    succeed(folder, "characters", PLACE)
    for model in MODELS:
        succeed(folder, "train-characters", PLACE, model=model, seed=0)
    for command in ("measure-characters", "character-baselines"):
        succeed(folder, command, PLACE)
    return folder


@pytest.fixture(scope="module")
def toy(whole):
    """The folder of the corpus and its models."""
    return whole / "results/tiny" / PLACE


@pytest.fixture
def untrained(toy, tmp_path):
    """A run that has its text, but no model."""
    results = configure(tmp_path, char_lm=SECTION) / PLACE
    shutil.copytree(toy / "text", results / "text")
    shutil.copyfile(toy.parents[1] / MANIFEST, results.parents[1] / MANIFEST)
    return results


def test_books_are_written_as_text(toy, tmp_path):
    described = json.loads((toy / "text/corpus.json").read_text())
    assert described["source"] == TEXT
    for name in SPLITS:
        content = (toy / f"text/{name}.txt").read_bytes()
        assert described["splits"][name] == {"characters": len(content), "origin": "1 books of the Bible"}
        (verses,) = [chapter.sentences for chapter in read_chapters(TEXT[name])]
        assert [line.split() for line in content.decode().splitlines()] == [verse.words for verse in verses]
    again = configure(tmp_path, char_lm=SECTION) / PLACE
    succeed(tmp_path, "characters", PLACE)
    assert all((again / f"text/{name}.txt").read_bytes() == (toy / f"text/{name}.txt").read_bytes() for name in SPLITS)


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
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name.replace("_", ".")).write_bytes(content)


@pytest.mark.parametrize(
    ("files", "named"),
    [
        ({}, "no train.txt"),
        ({"train_txt": b"text"}, "no valid.txt"),
        ({"train_txt": b"", "valid_txt": b"text"}, "train split (train.txt)"),
        ({"train_txt": b"text", "valid_txt": b"t"}, "valid split (first half of valid.txt)"),
        (
            {"train_txt": b"text", "valid_txt": b"t", "valid_txt_gz": gzip.compress(b"t")},
            "both valid.txt and valid.txt.gz",
        ),
        ({"train_txt_gz": gzip.compress(b"text" * 99)[:-9], "valid_txt": b"text"}, "train.txt.gz: truncated"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_files_that_are_missing_empty_or_damaged_are_named_in_one_line(tmp_path, files, named):
    write_folder(tmp_path / "files", **files)
    results = configure(tmp_path, char_lm=corpus({"source": "text", "path": "files"}))
    result = run(tmp_path, "characters", PLACE)
    assert_one_line(result, named)
    assert "files" in result.stderr
    assert result.stderr.count("\n") == 1
    assert not results.exists()


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ({"source": "hub"}, "got 'hub'"),
        ({"source": "text"}, "'text' lacks a key"),
        ({"source": "bible", "valid": ["Jude"]}, "'bible' lacks a key"),
    ],
)
def test_sources_are_checked(source, said):
    with pytest.raises(ValueError, match=said):
        read_corpus(source)


@pytest.mark.parametrize(
    ("source", "named"),
    [
        ({"source": "hub"}, "char_lm.corpora.toy.source: "),
        ({"source": "text"}, "char_lm.corpora.toy.path: missing key"),
        ({"source": "bible", "valid": ["Jude"]}, "char_lm.corpora.toy.test: missing key"),
    ],
)
def test_sources_are_checked_in_the_configuration(tmp_path, source, named):
    results = configure(tmp_path, char_lm=corpus(source))
    assert_one_line(run(tmp_path, "characters", PLACE), named)
    assert not results.exists()


@pytest.mark.parametrize("name", ["transformer-xl", "transformer-xl-top-k", "adaptive-span-top-8"])
def test_training_leaves_a_model_its_log_and_what_it_measures(toy, name):
    folder, settings = toy / "models" / name / "seed0", MODELS[name]
    model, _ = load_model(folder / "model.safetensors")
    log, row = pd.read_csv(folder / "log.csv"), pd.read_csv(folder / "measured.csv").iloc[0]
    spans = ["mean_span"] if "ramp" in settings else []
    assert list(log) == ["step", "train_bits", "valid_bits", "attended_positions", *spans]
    assert list(row.index) == ["architecture", "top_k", "memory_length", "parameters", "characters", "bits_per_character",
                               "attended_positions", *spans, "training_seconds", "device"]  # fmt: skip
    test = (toy / "text/test.txt").read_bytes()
    assert row["characters"] == len(test) - 1
    segments = pd.read_parquet(folder / "segments.parquet")
    assert segments["characters"].sum() == len(test) - 1
    assert segments["bits"].sum() / segments["characters"].sum() == pytest.approx(row["bits_per_character"])
    assert segments["characters"].max() == RECIPE["length"]
    assert row["parameters"] == sum(parameter.numel() for parameter in model.parameters())
    assert row["memory_length"] == model.memory_length
    assert 0 < row["attended_positions"] <= settings.get("top_k", 16)
    assert row["training_seconds"] > 0
    summary = json.loads((folder / "training.json").read_text())
    assert summary["settings"] == {"top_k": None} | SIZES | settings
    assert (summary["recipe"], summary["rows"], summary["seed"]) == (RECIPE, ROWS, 0)
    assert summary["source"]
    assert not (folder / "checkpoint.safetensors").exists()


def test_a_models_own_size_takes_precedence_over_the_shared_one(untrained, tmp_path):
    own = XL | {"dropout": 0.5}
    configure(tmp_path, char_lm=SECTION | {"models": MODELS | {"transformer-xl": own}})
    assert train(tmp_path).exit_code == 0
    summary = json.loads((untrained / "models/transformer-xl/seed0/training.json").read_text())
    assert summary["settings"] == {"top_k": None} | SIZES | own


def test_an_interrupted_training_goes_on_and_does_not_say_how_long_it_took(whole, toy, tmp_path, monkeypatch):
    """Its tables are made anew, though those that are there belong to another training."""
    folder = shutil.copytree(whole, tmp_path / "run")
    cut = folder / "results/tiny" / PLACE / "models/transformer-xl/seed0"
    (cut / "model.safetensors").unlink()
    real = training.step

    def step(progress, *arguments):
        if progress.step == 4:
            raise OSError("the machine was taken away")
        return real(progress, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(training, "step", step)
        assert "taken away" in train(folder).stderr
    assert not (cut / "model.safetensors").exists()
    assert train(folder).exit_code == 0
    succeed(folder, "measure-characters", PLACE)
    uncut = toy / "models/transformer-xl/seed0"
    resumed, expected = (pd.read_csv(model / "measured.csv") for model in (cut, uncut))
    pd.testing.assert_frame_equal(resumed.drop(columns="training_seconds"), expected.drop(columns="training_seconds"))
    assert resumed["training_seconds"].isna().all()
    assert json.loads((cut / "training.json").read_text())["train_runtime"] is None
    assert (cut / "log.csv").read_bytes() == (uncut / "log.csv").read_bytes()


def test_tables_of_an_earlier_training_are_replaced(whole, tmp_path):
    """They are out of date once the model has been trained anew, and no reason to refuse to measure it."""
    folder = shutil.copytree(whole, tmp_path / "run")
    table = folder / "results/tiny" / PLACE / "models/transformer-xl/seed0/measured.csv"
    before = pd.read_csv(table)["bits_per_character"].item()
    configure(folder, char_lm=SECTION | {"recipe": RECIPE | {"learning_rate": 0.02}})
    assert train(folder).exit_code == 0
    succeed(folder, "measure-characters", PLACE)
    assert pd.read_csv(table)["bits_per_character"].item() != before


def test_a_changed_text_is_refused_before_the_training(untrained, tmp_path):
    for split in SPLITS:
        path = untrained / f"text/{split}.txt"
        before = path.read_bytes()
        path.write_bytes(before[:-1] + b"#")
        assert_one_line(train(tmp_path), f"{split}.txt: has changed since stage characters made it")
        path.write_bytes(before)
    assert not (untrained / "models").exists()


def test_a_test_text_that_is_too_short_is_named_in_one_line(untrained, tmp_path):
    configure(tmp_path, char_lm=SECTION | {"rows": ROWS | {"test": 2000}})
    assert_one_line(train(tmp_path), "test.txt: the text must have more than")
    assert not (untrained / "models").exists()


def without(section: dict, key: str) -> dict:
    return {other: value for other, value in section.items() if other != key}


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"models": MODELS | {"block": {"memory_length": 0}}}, "char_lm.models.block.architecture: missing key"),
        ({"recipe": RECIPE | {"steps": 0}}, "char_lm.recipe.steps: must be at least 1, got 0"),
        ({"recipe": without(RECIPE, "steps")}, "char_lm.recipe.steps: missing key"),
        ({"recipe": without(RECIPE, "clip_norm")}, "char_lm.recipe.clip_norm: missing key"),
        ({"recipe": RECIPE | {"clip_norms": 1}}, "char_lm.recipe.clip_norms: unknown key; did you mean clip_norm?"),
        ({"sizes": without(SIZES, "layers")}, "char_lm.sizes.layers: missing key"),
        ({"sizes": without(SIZES, "heads")}, "char_lm.sizes.heads: missing key"),
        ({"sizes": SIZES | {"headss": 1}}, "char_lm.sizes.headss: unknown key; did you mean heads?"),
    ],
    ids=lambda value: value.partition(":")[0] if isinstance(value, str) else "",
)
def test_a_key_that_cannot_work_is_named_in_one_line(untrained, tmp_path, changes, named):
    configure(tmp_path, char_lm=SECTION | changes)
    assert_one_line(train(tmp_path), named)
    assert not (untrained / "models").exists()


def test_a_model_that_the_configuration_lacks_is_named_with_the_nearest_one(untrained, tmp_path):
    result = train(tmp_path, "transformer-lx")
    assert_one_line(result, "transformer-lx: ")
    assert "did you mean transformer-xl?" in result.stderr
    assert not (untrained / "models").exists()


def test_an_empty_training_text_is_named_in_one_line(tmp_path):
    text = configure(tmp_path, char_lm=SECTION) / PLACE / "text"
    write_folder(text, train_txt=b"", valid_txt=b"text", test_txt=b"text")
    assert_one_line(train(tmp_path), "train.txt: ")


def test_baselines_are_ngrams_of_characters(toy):
    table = pd.read_csv(toy / "baselines.csv", index_col="model")
    bits = table["bits_per_character"]
    assert bits["interpolated bigram"] < bits["unigram"] < 5
    assert (table["characters"] == len((toy / "text/test.txt").read_bytes()) - 1).all()
