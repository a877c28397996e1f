"""Training with a learning rate that is far too large stops in one line; no table holds what is no number."""

from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
from command_line import run

from replication.files.storage import write_table
from replication.training import check_loss

SIZES = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
STEPS = {
    "mask_probability": 0.3,
    "max_steps": 30,
    "per_device_train_batch_size": 4,
    "logging_steps": 30,
    "save_steps": 30,
}
CHARACTERS = {"architecture": "transformer_xl", "memory_length": 4, "layers": 1, "dimension": 8, "heads": 2, "inner": 8}
RECIPE = {"steps": 30, "length": 8, "warmup_steps": 1, "clip_norm": 1.0, "log_every": 30}
TRANSFORMER = {
    f"{side}_{key}": size
    for side in ("encoder", "decoder")
    for key, size in {"layers": 1, "embed_dim": 16, "ffn_embed_dim": 16, "attention_heads": 2}.items()
}
FAIRSEQ = {"warmup_updates": 1, "max_tokens": 300, "max_update": 30, "dropout": 0.0, "log_interval": 5}
CELL = {"name": "full_seed0", "form": "Full", "budget": None, "seed": 0}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Text for every kind of training."""
    at = tmp_path_factory.mktemp("divergence")
    words = {"source": "grammar", "words": {"train": 900, "valid": 200, "test": 200}, "seed": 0}
    done = [
        run("corpus", source=words, split=["train", "valid"], output=at / "corpus"),
        run("tokenize", corpus=at / "corpus/train.parquet", length=16, vocab_size=300, tokenizer=at / "tokenizer",
            output=at / "tokens"),
        run("characters", source=words, output=at / "text"),
    ]  # fmt: skip
    if find_spec("fairseq"):
        pairs = {"source": "grammar", "sentences": {"train": 60, "valid": 6, "test": 6}, "seed": 0}
        splits = {"split": ["train", "valid", "test"]}
        done += [
            run("parallel-corpus", source=pairs, **splits, language=["en", "de"], output=at / "pairs"),
            run("binarize", corpus=at / "pairs", **{"from": "en", "to": "de"}, **splits, words="spaces", merges=20,
                output=at / "data"),
        ]  # fmt: skip
    assert all(one.exit_code == 0 for one in done), [one.output for one in done]
    return at


def masked_lm(folder, rate, output):
    given = {
        "tokens": folder / "tokens/train.safetensors",
        "tokenizer": folder / "tokenizer",
        "model": SIZES,
        "seed": 0,
    }
    return run(
        "train-masked-lm", **given, training=STEPS | {"learning_rate": rate, "disable_tqdm": True}, output=output
    )


def characters(folder, rate, output):
    given = {"text": folder / "text", "settings": CHARACTERS | {"dropout": 0.0}, "seed": 0}
    rows = {"train": 2, "valid": 2, "test": 2}
    return run("train-characters", **given, recipe=RECIPE | {"learning_rate": rate}, rows=rows, output=output)


def translator(folder, rate, output):
    pair = {"data": folder / "data", "from": "en", "to": "de", "architecture": TRANSFORMER}
    return run("train-translation", **pair, training=FAIRSEQ | {"lr": rate}, seed=0, output=output)


def forms(folder, rate, output):
    pair = {"data": folder / "data", "from": "en", "to": "de", "architecture": TRANSFORMER}
    return run("train-forms", **pair, training=FAIRSEQ | {"lr": rate}, cell=CELL, output=output)


@pytest.mark.parametrize("rate", [float("inf"), 1e30], ids=str)
@pytest.mark.parametrize("train", [masked_lm, characters, translator, forms], ids=lambda train: train.__name__)
def test_training_that_diverges_stops_in_one_line_and_leaves_no_model(folder, tmp_path, train, rate):
    if train in (translator, forms):
        pytest.importorskip("replication.translation.fairseq")
    done = train(folder, rate, tmp_path)
    assert done.exit_code == 1, done.output
    assert isinstance(done.exception, SystemExit)
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert "training diverged" in line
    assert f"at a learning rate of {rate:g}" in line
    assert not list(tmp_path.rglob("model.safetensors"))
    assert not list(tmp_path.rglob("training.json"))


@pytest.mark.parametrize("train", [masked_lm, characters], ids=lambda train: train.__name__)
def test_the_same_training_at_a_sound_rate_ends_well(folder, tmp_path, train):
    assert train(folder, 1e-3, tmp_path).exit_code == 0


@pytest.mark.parametrize("loss", [float("nan"), float("inf"), -float("inf")])
def test_a_loss_that_is_no_number_is_named_with_its_step(loss):
    with pytest.raises(ValueError, match=r"the loss of step 7 is -?(nan|inf), at a learning rate of 0\.5"):
        check_loss(loss, 7, 0.5)
    assert check_loss(1.5, 7, 0.5) == 1.5


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, None], ids=str)
def test_a_table_has_no_cell_that_nobody_asked_for(tmp_path, wrong, suffix):
    table = pd.DataFrame({"name": ["a", "b"], "value": [1.0, wrong]})
    with pytest.raises(ValueError, match=rf"t\{suffix}: column value of row 1 is "):
        write_table(tmp_path / f"t{suffix}", table)
    assert list(tmp_path.iterdir()) == []
    write_table(tmp_path / f"t{suffix}", table, may_be_empty=["value"])
    assert (tmp_path / f"t{suffix}").exists()


def test_text_may_be_missing_only_where_it_is_said(tmp_path):
    table = pd.DataFrame({"name": ["a", None]})
    with pytest.raises(ValueError, match="column name of row 1"):
        write_table(tmp_path / "t.csv", table)
    write_table(tmp_path / "t.csv", table.fillna(""))
