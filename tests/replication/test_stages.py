"""The command line: every stage from a text to tables, in order, and errors of one line."""

import gzip
import json
import math
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer
from command_line import run
from typer.testing import CliRunner

from replication.claims import VERDICTS
from replication.claims.masked_lm import nats_curves
from replication.claims.scores import RESAMPLES, Units
from replication.corpora.tokens import KIND
from replication.files.paths import ROOT
from replication.files.storage import read_tensors, write_table
from replication.stages import app
from sparselib.forms import FORMS

GROUP = typer.main.get_command(app)
COMMANDS = sorted(GROUP.commands)
ARCHITECTURE = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
TRAINING = {"mask_probability": 0.3, "max_steps": 5, "per_device_train_batch_size": 4, "learning_rate": 0.003,
            "logging_steps": 1, "save_steps": 5, "disable_tqdm": True}  # fmt: skip
METHODS = {
    "window": {"predictor": "Nothing"},
    "distance": {"predictor": "Distance", "threshold": [0.5, 2.0]},
    "kmeans": {"predictor": "Clustering", "clusters": [2, 3]},
    "routing": {"predictor": "Routing", "clusters": 2},
    "bigbird": {"predictor": "BigBird", "random_keys": 2},
}
MASKING = {"mask_probability": 0.3, "seed": 0, "batch_size": 8, "sequences": 6}
POINT = ["seed", "method", "setting", "window"]
MEASURES = ["recall", "sparsity", "precision", "exact", "empty_rows", "gold_sparsity"]
COLUMNS = {
    "model/training.csv": ["step", "epoch", "learning_rate", "loss"],
    "sweep/seed1.parquet": ["seed", "layer", "method", "setting", "head", "window", *MEASURES, "global_tokens"],
    "coreference.csv": ["layer", "head", "mass", "chance", "tokens", "chains"],
    "tags.csv": ["layer", "side", "head", "tag", "cluster", "count", "share", "tags"],
    "replaced/seed1.csv": [*POINT, "nats", "sparsity", "perplexity", "global_tokens"],
    "replaced/losses_seed1.parquet": [*POINT, "sequence", "nats", "places"],
    "blocks/size2/evaluated/losses_seed1.parquet": ["seed", "block_size", "method", "count", "clusters", "alpha", "sequence",
                                                    "nats", "places"],
    "blocks/size2/evaluated/seed1.csv": ["seed", "block_size", "method", "count", "clusters", "alpha", "nats", "recall",
                                         "density", "attended", "perplexity"],
    "blocks/size2/timed.csv": ["block_size", "method", "count", "clusters", "alpha", "prediction_seconds",
                               "attention_seconds", "model_seconds", "model_repeats", "batch_size", "length", "repeats",
                               "device", "threads"],
    "perplexity.csv": ["corpus", "model", "nats", "masked_tokens", "perplexity"],
}  # fmt: skip
LAYERS = ("00", "01")
BLOCKS = {"counts": [1, 9], "clusters": [2], "pooling": "concatenate", "metric": "sq_euclidean"}


def succeed(command: str, **options) -> None:
    result = run(command, **options)
    assert result.exit_code == 0, result.output


def sweep(at: Path, output: str, seeds: list[int]) -> None:
    grid = {"methods": METHODS, "window": [0, 3], "global_tokens": "first_last"}
    succeed("sweep", graphs=in_layers(at / "graphs/valid"), **of_seeds(at), **grid, seed=seeds, output=at / output)


def students(at: Path) -> dict[str, list[Path]]:
    return {"projection": in_layers(at / "projections/seed1"), "centroids": in_layers(at / "centroids/seed1")}


def of_seeds(at: Path) -> dict[str, Path]:
    return {kind: at / kind for kind in ("projections", "centroids")}


def in_layers(folder: Path) -> list[Path]:
    return [folder / f"layer{layer}.safetensors" for layer in LAYERS]


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Path:
    """The folder in which every stage has run."""
    at = tmp_path_factory.mktemp("results")
    source = {"source": "grammar", "words": {"train": 1500, "valid": 300}, "seed": 0}
    succeed("corpus", source=source, split=["train", "valid"], output=at / "corpus")
    corpora = [at / "corpus/train.parquet", at / "corpus/valid.parquet"]
    tokens, model = {"tokenizer": at / "tokenizer"}, {"model": at / "model"}
    succeed("tokenize", corpus=corpora, length=16, output=at / "tokens", **tokens, vocab_size=300)
    train, valid = (at / f"tokens/{split}.safetensors" for split in ("train", "valid"))
    succeed(
        "train-masked-lm", tokens=train, **tokens, model=ARCHITECTURE, training=TRAINING, seed=0, output=at / "model"
    )
    succeed("extract", **model, tokens=[train, valid], sequences=[8, 6], seed=0, output=at / "graphs")
    settings = {"dimension": 3, "batch_size": 4}
    fitted = {"graphs": in_layers(at / "graphs/train"), "seed": [1, 2]}
    succeed("project", **fitted, settings=settings, output=at / "projections")
    kmeans = {"methods": METHODS, "points": 100, "output": at / "centroids"}
    succeed("cluster", **fitted, projections=at / "projections", **kmeans)
    sweep(at, "sweep", [1, 2])
    seen = {"graphs": in_layers(at / "graphs/valid"), "tokens": valid}
    succeed("coreference", **seen, output=at / "coreference.csv")
    succeed("tags", **seen, **students(at), clusters=2, output=at / "tags.csv")
    grid = {"methods": METHODS, "window": [0, 3], "global_tokens": "first"}
    loaded = {**model, **tokens, "tokens": valid, "masking": MASKING}
    replacing = {**loaded, **of_seeds(at), **grid}
    succeed("replace", **replacing, seed=[1, 2], output=at / "replaced")
    succeed("replace", **replacing, seed=2, output=at / "replaced_alone")
    sizes = {"block_size": [2, 4], "blocks": BLOCKS, "output": at / "blocks"}
    succeed("fit-blocks", **fitted, settings=settings, points=100, **sizes)
    loaded |= {"students": at / "blocks", **sizes}
    succeed("evaluate-blocks", **loaded, seed=[1, 2])
    succeed("time-blocks", **loaded, seed=1, repeats=2)
    names = {"tokens": [train, valid], "name": ["seen", "held-out"]}
    succeed("perplexity", **model, **tokens, train_tokens=train, **names, masking=MASKING, output=at / "perplexity.csv")
    return at


def read(path: Path) -> pd.DataFrame:
    return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)


@pytest.mark.parametrize("name", COLUMNS)
def test_tables_have_their_columns_and_no_gaps(results, name):
    table = read(results / name)
    assert list(table.columns) == COLUMNS[name]
    assert len(table) > 0
    assert not table.isna().any().any()


def test_the_sweep_has_a_row_per_member_window_and_head(results):
    table = read(results / "sweep/seed1.parquet")
    assert len(table) == 7 * 2 * 2 * 2
    assert set(table["layer"]) == {0, 1}
    assert set(table["seed"]) == {1}
    assert not table.duplicated([*POINT, "layer", "head"]).any()
    assert table[MEASURES].min().min() >= 0
    assert table[MEASURES].max().max() <= 1
    assert set(table["setting"]) == {"{}", '{"clusters": 2}', '{"clusters": 3}', '{"random_keys": 2}',
                                     '{"threshold": 0.5}', '{"threshold": 2.0}'}  # fmt: skip


def test_a_second_sweep_is_the_same_tables(results):
    sweep(results, "again", [1, 2])
    for name in ("seed1.parquet", "seed2.parquet"):
        assert (results / "again" / name).read_bytes() == (results / "sweep" / name).read_bytes()


def test_a_seed_alone_gives_its_tables(results):
    sweep(results, "alone", [2])
    tables = [("alone", "sweep", "seed2.parquet"), ("replaced_alone", "replaced", "seed2.csv")]
    tables.append(("replaced_alone", "replaced", "losses_seed2.parquet"))
    for alone, both, name in tables:
        pd.testing.assert_frame_equal(read(results / alone / name), read(results / both / name), check_exact=True)


def test_replaced_graphs_are_measured_for_every_member_and_window(results):
    table = read(results / "replaced/seed1.csv").set_index(["method", "setting", "window"])
    assert len(table) == 2 + 7 * 2
    nats = table["nats"]
    assert nats["full", "{}", 0] == pytest.approx(nats["gold graph", "{}", 0], abs=1e-5)


@pytest.mark.parametrize(
    ("table", "losses", "keys"),
    [
        ("replaced/seed1.csv", "replaced/losses_seed1.parquet", POINT),
        (
            "blocks/size2/evaluated/seed1.csv",
            "blocks/size2/evaluated/losses_seed1.parquet",
            ["method", "count", "clusters"],
        ),
    ],
)
def test_losses_of_sequences_add_up_to_the_tables(results, table, losses, keys):
    found = read(results / losses)
    assert found["sequence"].nunique() == MASKING["sequences"]
    sums = found.groupby(keys)[["nats", "places"]].sum()
    expected = read(results / table).set_index(keys)["nats"].sort_index()
    assert (sums["nats"] / sums["places"]).to_numpy() == pytest.approx(expected.to_numpy(), abs=1e-9)


def test_blocks_are_evaluated_and_timed_at_every_k_that_fits(results):
    """Eight blocks: K = 9 does not."""
    evaluated, timed = read(results / "blocks/size2/evaluated/seed1.csv"), read(results / "blocks/size2/timed.csv")
    methods = ["full", "sparsefinder-v1", "sparsefinder-v2", "bigbird", "bigbird-softmax"]
    assert evaluated["method"].tolist() == methods
    assert timed["method"].tolist() == [*methods, "full-kernel"]
    assert evaluated["count"].tolist() == [8, 1, 1, 1, 1]
    assert (timed["length"] == 16).all()


def test_the_ledger_reads_what_the_stages_wrote(results, tmp_path):
    """Under the names that claims know; the model is far from any premise, but its numbers are resampled."""
    settings = {"length": 16, "layers": 2, "model": ARCHITECTURE, "projection": {"dimension": 3}}
    names = [
        "sweep/seed1.parquet",
        "replaced/seed1.csv",
        "replaced/losses_seed1.parquet",
        "coreference.csv",
        "tags.csv",
    ]
    for name in names:
        table = read(results / name)
        if "method" in table:
            table["method"] = table["method"].replace({"kmeans": "sparsefinder-kmeans"})
        write_table(tmp_path / "run/masked_lm" / name, table)
    succeed("configuration", settings={"masked_lm": settings}, output=tmp_path / "run/config.yaml")
    published, output = ROOT / "config/published/claims.csv", tmp_path / "run/claims.csv"
    succeed("claims", published=published, results=tmp_path / "run", output=output)
    found = read(output).set_index("id")
    assert found.loc["sparse-consistency", "verdict"] == "holds"
    assert set(found["verdict"]) <= set(VERDICTS)
    resampled = nats_curves(tmp_path / "run/masked_lm")
    assert resampled.units == Units(6, "sequences")
    nats = read(results / "replaced/seed1.csv").query("method == 'bigbird'")["nats"]
    assert resampled.fronts["bigbird"].shape[:2] == (1 + RESAMPLES, 1)
    assert np.nanmax(resampled.fronts["bigbird"][0]) == pytest.approx(-nats.min(), abs=0.1)


def test_perplexity_compares_three_models_on_the_same_tokens(results):
    table = read(results / "perplexity.csv")
    assert set(table["model"]) == {"unigram", "interpolated bigram", "entmax RoBERTa"}
    assert list(table["corpus"].unique()) == ["seen", "held-out"]
    assert (table.groupby("corpus")["masked_tokens"].nunique() == 1).all()
    assert table["perplexity"].to_list() == pytest.approx([math.exp(nats) for nats in table["nats"]])


def test_the_training_is_summed_up(results):
    assert len(read(results / "model/training.csv")) == 5
    summary = json.loads((results / "model/training.json").read_text())
    assert summary["architecture"]["num_hidden_layers"] == 2
    assert summary["training"] == TRAINING
    assert summary["length"] == 16
    assert {"hardware", "torch", "source"} <= summary.keys()


def test_tokenize_reads_a_tokenizer_that_is_there(results):
    corpus = results / "corpus/valid.parquet"
    succeed("tokenize", corpus=corpus, length=16, output=results / "again", tokenizer=results / "tokenizer")
    again, first = (read_tensors(results / folder / "valid.safetensors", kind=KIND) for folder in ("again", "tokens"))
    assert again.keys() == first.keys()
    assert all(again[name].equal(first[name]) for name in first)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_stage_explains_itself(command):
    result = CliRunner().invoke(app, [command, "--help"])
    assert result.exit_code == 0
    # Where it writes, or the models that it writes beside; a comparison is only printed.
    assert any(option in result.output for option in ("--output", "--model", "--results"))
    assert GROUP.get_command(None, command).help.strip().endswith(".")


def test_the_help_of_all_stages_does_not_wait_for_torch():
    script = "import sys; from replication.stages import app; app(['--help'], standalone_mode=False)"
    script += "; assert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert all(command in done.stdout for command in COMMANDS)


def test_the_help_of_forms_names_all_of_them():
    text = re.sub(r"[^A-Za-z0-9-]+", " ", CliRunner().invoke(app, ["train-forms", "--help"]).output)
    assert " ".join(["form is one of", *FORMS, "the budget"]) in text


@pytest.mark.parametrize(("text", "reason"), [("{source: grammar}", "not JSON"), ("[1]", "a JSON object expected")])
def test_bad_json_is_named_with_its_option(tmp_path, text, reason):
    result = CliRunner().invoke(app, ["corpus", "--source", text, "--split", "train", "--output", str(tmp_path)])
    assert result.exit_code == 2
    assert "--source" in result.stderr
    assert reason in result.stderr
    assert list(tmp_path.iterdir()) == []


LAYER = {"graphs": "nowhere", "seed": 0}
STUDENTS = {"projections": "p", "centroids": "c", "seed": 0}
GRID = {"methods": METHODS, "window": 0, "global_tokens": "none"}
PAIR = {"from": "en", "to": "de"}
TRANSLATOR = {"model": "nowhere", "data": "d"}
DECODING = {"references": "r", "split": "test", "beam": 2, "words": "spaces"}
CELL = {"name": "full", "form": "Full", "budget": None, "seed": 0}
RECIPE = {"steps": 1, "length": 1, "learning_rate": 0.1, "warmup_steps": 0, "clip_norm": 1.0, "log_every": 1}
SIZES = {"batch_size": 2, "rules": {}, "sequences": {"learn": 1, "calibrate": 1, "held_out": 1}}
RETROFIT = {"model": "m", "train": "nowhere", "valid": "nowhere", "settings": SIZES, "seed": 0}
MISSING = {
    "corpus": {"source": {"source": "folder", "path": "nowhere"}, "split": "train"},
    "tokenize": {"corpus": "nowhere", "length": 16, "tokenizer": "t", "vocab_size": 300},
    "train-masked-lm": {"tokens": "nowhere", "tokenizer": "t", "model": {}, "training": {}, "seed": 0},
    "extract": {"model": "m", "tokens": "nowhere", "sequences": 2, "seed": 0},
    "project": {**LAYER, "settings": {"dimension": 3}},
    "cluster": {**LAYER, "projections": "p", "methods": METHODS, "points": 10},
    "sweep": {**LAYER, **STUDENTS, **GRID},
    "coreference": {"graphs": "g", "tokens": "nowhere"},
    "tags": {"graphs": "g", "tokens": "nowhere", "projection": "p", "centroids": "c", "clusters": 2},
    "fit-blocks": {**LAYER, "settings": {"dimension": 3}, "block_size": 2, "blocks": BLOCKS, "points": 10},
    "claims": {"published": "nowhere", "results": "r"},
    "attention-parts": {"text": "t", "model": "nowhere", "stride": 8},
    "pictures": {"source": {"source": "karpathy", "captions": "nowhere", "regions": "r"}},
    "train-captioner": {"pictures": "nowhere", "regions": "r", "model": {}, "architecture": {}, "limits": {"word_count": 1},
                        "training": {}, "seed": 0},
    "time-steps": {"text": "t", "model": "nowhere", "repeats": 1},
    "printed": {"published": "nowhere"},
    "report": {"results": "nowhere"},
    "archive": {"results": "r", "file": "nowhere"},
    "replay": {"archive": "nowhere"},
    "parallel-corpus": {"source": {"source": "folder", "path": "nowhere"}, "split": "train", "language": "en"},
    "binarize": {"corpus": "nowhere", **PAIR, "split": "train", "words": "spaces", "merges": 10},
    "train-translation": {"data": "nowhere", **PAIR, "architecture": {}, "training": {}, "seed": 0},
    "train-forms": {"data": "nowhere", **PAIR, "architecture": {}, "training": {}, "cell": CELL},
    "measure-forms": {"data": "d", **DECODING, "references": "nowhere", "cell": CELL},
    "measure-pronouns": {"data": "d", "from": "fr", "to": "en", "source": {"source": "folder", "path": "nowhere"},
                         "split": "test", "block_words": 9, "words": "spaces", "cell": CELL},
    "train-normalizers": {"data": "nowhere", **PAIR, "architecture": {}, "training": {}, "top_k": 2, "seed": 0},
    "extract-decoder": {**TRANSLATOR, "split": "valid", "sentences": 2, "shortest": 1, "seed": 0},
    "bleu": {**TRANSLATOR, **DECODING, "hypotheses": "h"},
    "normalizer-speed": {"data": "d", "models": "m", "references": "nowhere", "words": "spaces", "settings": {}},
    "decode": {**TRANSLATOR, **DECODING, "sentences": 2, **STUDENTS, **GRID},
    "characters": {"source": {"source": "text", "path": "nowhere"}},
    "train-characters": {"text": "nowhere", "settings": {}, "recipe": RECIPE, "rows": {"train": 1}, "seed": 0},
    "character-baselines": {"text": "nowhere"},
    "measure-rules": {**RETROFIT, "learning": "l"},
    "sparsify": {**RETROFIT, "recall": 0.9},
    "weights": {"checkpoints": "nowhere", "model": {"name": "n", "run": {}}, "text": "t", "code": "c"},
}  # fmt: skip


def assert_one_line(result, named: str) -> None:
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit), result.exception
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert named in result.stderr


@pytest.mark.parametrize("command", MISSING)
def test_a_missing_file_is_named_in_one_line(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    assert_one_line(run(command, **MISSING[command], output="out"), "nowhere")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


LOADED_BLOCKS = {"students": "s", "seed": 0, "block_size": 2, "blocks": BLOCKS, "model": "nowhere", "tokenizer": "t"}
LOADED_BLOCKS["masking"] = MASKING
LOADING = {
    "extract": {"model": "nowhere", "sequences": 2, "seed": 0},
    "perplexity": {"model": "nowhere", "tokenizer": "t", "train_tokens": "t", "name": "n", "masking": MASKING},
    "replace": STUDENTS | GRID | {"model": "nowhere", "tokenizer": "t", "masking": MASKING},
    "evaluate-blocks": LOADED_BLOCKS,
    "time-blocks": LOADED_BLOCKS | {"repeats": 1},
    "tokenize": {"corpus": "corpus/valid.parquet", "length": 16, "tokenizer": "nowhere"},
    "train-masked-lm": {"tokenizer": "tokenizer", "model": {"pretrained": "nowhere"}, "training": {}, "seed": 0},
}


@pytest.mark.parametrize("command", LOADING)
def test_a_missing_model_or_tokenizer_is_named_in_one_line(results, tmp_path, monkeypatch, command):
    monkeypatch.chdir(results)
    tokens = {} if command == "tokenize" else {"tokens": "tokens/valid.safetensors"}
    assert_one_line(run(command, **tokens, **LOADING[command], output=tmp_path), "nowhere")


#: What these write lies beside what they read.
BESIDE = {
    "measure-characters": {"text": "t", "model": "nowhere"},
    "measure-captioners": {"pictures": "nowhere", "regions": "r", "model": "m", "decoding": {}, "shown": 1},
    "ship": {"model": "nowhere", "run": {}, "text": "t", "code": "c", "checkpoints": "c", "name": "n"},
    "compare-weights": {"checkpoints": "nowhere", "results": "r"},
}


@pytest.mark.parametrize("command", BESIDE)
def test_a_missing_folder_is_named_in_one_line(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    assert_one_line(run(command, **BESIDE[command]), "nowhere")
    assert list(tmp_path.iterdir()) == []


def test_every_stage_is_tested_for_what_is_missing():
    none = {"scaling", "factorised", "configuration"}  # these read nothing
    assert MISSING.keys() | LOADING.keys() | BESIDE.keys() | none == set(COMMANDS)


def test_a_truncated_archive_is_named_in_one_line(tmp_path):
    whole = gzip.compress(b"a sentence of words\n" * 1000)
    (tmp_path / "train.txt.gz").write_bytes(whole[:-20])
    source = {"source": "folder", "path": str(tmp_path)}
    assert_one_line(run("corpus", source=source, split="train", output=tmp_path / "out"), "train.txt.gz")


def test_a_truncated_tensor_file_is_named_in_one_line(results, tmp_path):
    (tmp_path / "cut").write_bytes((results / "graphs/valid/layer00.safetensors").read_bytes()[:-50])
    settings = {"settings": {"dimension": 3}, "seed": 0, "output": tmp_path / "out"}
    assert_one_line(run("project", graphs=tmp_path / "cut", **settings), "cut: truncated")


def test_a_job_of_several_seeds_and_sizes_does_what_one_of_each_does(results, tmp_path):
    """And no seed or size leaves a trace in the next."""
    settings, graphs = {"dimension": 3, "batch_size": 4}, in_layers(results / "graphs/train")
    fitted = {"graphs": graphs, "seed": 2, "settings": settings}
    succeed("project", **fitted, output=tmp_path / "projections")
    succeed("fit-blocks", **fitted, points=100, block_size=4, blocks=BLOCKS, output=tmp_path / "blocks")
    clusters = {"methods": METHODS, "points": 100, "output": tmp_path / "centroids"}
    succeed("cluster", graphs=graphs, seed=2, projections=tmp_path / "projections", **clusters)
    loaded = {"model": results / "model", "tokenizer": results / "tokenizer"}
    loaded |= {"tokens": results / "tokens/valid.safetensors", "masking": MASKING}
    sizes = {"students": tmp_path / "blocks", "block_size": 4, "blocks": BLOCKS, "output": tmp_path / "blocks"}
    succeed("evaluate-blocks", **loaded, **sizes, seed=2)
    succeed("extract", model=loaded["model"], tokens=loaded["tokens"], sequences=6, seed=0, output=tmp_path / "graphs")
    files = [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".seal"]
    made = [path.relative_to(tmp_path) for path in files]
    assert len(made) == 12
    for path in made:
        assert (results / path).read_bytes() == (tmp_path / path).read_bytes(), path


def test_students_can_be_fitted_anew_beside_what_was_measured_with_the_old(results, tmp_path):
    blocks = tmp_path / "results/tiny/blocks"
    fitted = {"graphs": in_layers(results / "graphs/train"), "seed": 2, "points": 100}
    sizes = {"block_size": 4, "blocks": BLOCKS, "output": blocks}
    loaded = {"model": results / "model", "tokenizer": results / "tokenizer", "masking": MASKING}
    loaded |= {"tokens": results / "tokens/valid.safetensors", "students": blocks, **sizes, "seed": 2}
    for dimension in (2, 3):
        succeed("fit-blocks", **fitted, **sizes, settings={"dimension": dimension, "batch_size": 4})
        succeed("evaluate-blocks", **loaded)
        succeed("time-blocks", **loaded, repeats=1)
    student = next(blocks.rglob("projections/*.safetensors"))
    student.write_bytes(student.read_bytes()[:-1] + b"x")
    result = run("evaluate-blocks", **loaded)
    assert result.exit_code == 1
    assert f"{student.name}: has changed since stage fit_blocks" in result.stderr


def test_numbers_that_belong_together_are_as_many(results, tmp_path):
    tokens = [results / f"tokens/{split}.safetensors" for split in ("train", "valid")]
    result = run("extract", model=results / "model", tokens=tokens, sequences=8, seed=0, output=tmp_path / "out")
    assert_one_line(result, "--tokens: 2 values, --sequences: 1 values")


def test_a_student_too_few_is_named_in_one_line(results, tmp_path):
    few = {"projection": in_layers(results / "projections/seed1")[:1]}
    few |= {"centroids": in_layers(results / "centroids/seed1")}
    seen = {"graphs": in_layers(results / "graphs/valid"), "tokens": results / "tokens/valid.safetensors"}
    result = run("tags", **seen, **few, clusters=2, output=tmp_path / "out")
    assert_one_line(result, "--projection: 1 files for the graphs of 2 layers")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["sweep", "replace"])
def test_a_layer_or_a_seed_that_nobody_learned_is_named_in_one_line(results, tmp_path, command):
    few = {kind: shutil.copytree(results / kind, tmp_path / kind) for kind in ("projections", "centroids")}
    given = {"sweep": {"graphs": in_layers(results / "graphs/valid")}}
    loaded = {"model": results / "model", "tokenizer": results / "tokenizer", "masking": MASKING}
    given["replace"] = loaded | {"tokens": results / "tokens/valid.safetensors"}
    (few["projections"] / "seed2/layer01.safetensors").unlink()
    for seed, named in ((3, "projections/seed3"), (2, "seed2/layer01.safetensors")):
        result = run(command, **given[command], **few, **GRID, seed=[1, seed], output=tmp_path / "out")
        assert result.exit_code == 1
        assert isinstance(result.exception, SystemExit), result.exception
        line = result.stderr.splitlines()[-1]  # below the progress of loading a model
        assert line.startswith("error: ")
        assert named in line
    assert not (tmp_path / "out").exists()
