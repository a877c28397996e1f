"""The speed of a tiny translator with every normaliser: each is trained, timed and counted as its name says."""

import json
import random
import shutil

import pandas as pd
import pytest
import torch
from command_line import assert_one_line, configure, run, succeed

pytest.importorskip("replication.translation.fairseq")
from profiles import NORMALIZER_SPEED
from replication.corpora.parallel import write_parallel
from replication.results.bleu import COUNTS, corpus_bleu
from replication.translation.contenders import CONTENDERS, SOFTMAX
from replication.translation.fairseq.transformer import PLACES
from replication.translation.speed import SPEEDS, measure

ARCHITECTURE = {
    f"{side}_{key}": value
    for side in ("encoder", "decoder")
    for key, value in {"layers": 1, "embed_dim": 16, "ffn_embed_dim": 16, "attention_heads": 2}.items()
}
TRAINING = {"lr": 0.01, "warmup_updates": 2, "max_tokens": 300, "dropout": 0.0, "max_update": 4, "log_interval": 2}
SETTINGS = {"repeats": 2, "beam": 2, "batch": 4}


SECTION = NORMALIZER_SPEED | {
    "corpus": {"en-de": {"source": "folder", "path": "text"}},
    "merges": 10,
    "architecture": ARCHITECTURE,
    "training": TRAINING,
    "top_k": 2,
    **SETTINGS,
}


@pytest.fixture(scope="module")
def at(tmp_path_factory):
    """The folder of the run."""
    folder = tmp_path_factory.mktemp("speed") / "run"
    rng = random.Random(0)
    for split, count in {"train": 60, "valid": 6, "test": 6}.items():
        lines = [" ".join(rng.choices("alpha beta gamma delta".split(), k=rng.randint(3, 9))) for _ in range(count)]
        write_parallel(folder / "text", split, {"en": lines, "de": [line.upper() for line in lines]})
    configure(folder, normalizer_speed=SECTION)
    for command in ("parallel-corpus", "binarize"):
        succeed(folder, command, "normalizer_speed")
    return folder


@pytest.fixture(scope="module")
def data(at):
    return at / "results/tiny/normalizer_speed"


@pytest.fixture(scope="module")
def models(at, data):
    succeed(at, "train-normalizers")
    return data / "models"


def measured(data, models, **changes):
    references = (data / "corpus/test.de").read_text().splitlines()
    return measure(data / "data", references, **SETTINGS | changes, models=models)


@pytest.fixture(scope="module")
def measurement(data, models):
    return measured(data, models)


def test_every_contender_is_measured(measurement):
    table, sentences, details = measurement
    assert (details["pair"], details["top_k"]) == ("en-de", 2)
    assert set(table["updates"]) == {4}
    assert [*zip(table["contender"], table["implementation"], strict=True)] == [
        (contender.name, contender.implementation) for contender in CONTENDERS
    ]
    assert not table.isna().any().any()
    indexed = table.set_index(["contender", "implementation"])
    assert (
        (indexed.loc[[(SOFTMAX.name, SOFTMAX.implementation)], [f"{name}_relative" for name in SPEEDS]] == 1)
        .all()
        .all()
    )
    # Softmax keeps every key, top-k no more than k; both implementations train the same model, so keep the same keys.
    assert indexed["attended"].idxmax() == ("softmax", "torch")
    assert 1 <= indexed.loc[("topk", "sparselib"), "attended"] <= 2
    for name in ("sparsemax", "entmax15", "entmax_alpha"):
        assert indexed.loc[(name, "sparselib"), "attended"] == pytest.approx(
            indexed.loc[(name, "entmax"), "attended"], rel=0.02
        )
    for places in details["alphas"].values():
        assert places.keys() == set(PLACES)
        assert all(1 < alpha < 2 and alpha != 1.5 for layers in places.values() for layer in layers for alpha in layer)
    assert details["threads"] == torch.get_num_threads()
    # What BLEU adds up gives the BLEU of the table, which is sacreBLEU's of the whole text.
    of_contender = sentences.groupby(["contender", "implementation"])[COUNTS].sum()
    assert (sentences.groupby(["contender", "implementation"])["sentence"].nunique() == 6).all()
    for whose, bleu in indexed["bleu"].items():
        assert corpus_bleu(of_contender.loc[whose].to_numpy()) == pytest.approx(bleu)


@pytest.mark.parametrize("name", ["repeats", "beam", "batch"])
def test_a_number_below_one_is_named_before_anything_is_loaded(data, tmp_path, name):
    with pytest.raises(ValueError, match=name):
        measured(data, tmp_path / "nowhere", **{name: 0})


def test_a_model_that_is_missing_is_named(data, models, tmp_path):
    shutil.copytree(models, tmp_path / "models")
    (tmp_path / "models/entmax/sparsemax/model.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match=r"entmax/sparsemax/model\.safetensors"):
        measured(data, tmp_path / "models")


def test_the_stage_writes_what_was_measured(at, data, measurement):
    expected, sentences, details = measurement
    succeed(at, "normalizer-speed")
    table = pd.read_csv(data / "speed.csv")
    assert list(table) == list(expected)
    exact = ["contender", "implementation", "updates", "bleu", "attended", "decoded_tokens"]
    pd.testing.assert_frame_equal(table[exact], expected[exact])
    pd.testing.assert_frame_equal(pd.read_parquet(data / "sentences.parquet"), sentences)
    written = json.loads((data / "speed.json").read_text())
    assert {key: written[key] for key in ("repeats", "beam", "batch", "pair", "top_k")} == {
        **SETTINGS,
        "pair": "en-de",
        "top_k": 2,
    }
    assert written["alphas"] == details["alphas"]
    assert {"entmax", "hardware", "source"} <= written.keys()


def test_a_model_that_is_missing_stops_the_stage_in_one_line(at, models, tmp_path):
    folder = shutil.copytree(at, tmp_path / "run")
    here = folder / "results/tiny/normalizer_speed"
    (here / "models/entmax/sparsemax/model.safetensors").unlink()
    assert_one_line(run(folder, "normalizer-speed"), "entmax/sparsemax/model.safetensors: no such file")


@pytest.mark.parametrize("name", ["top_k", "repeats", "beam", "batch"])
def test_a_number_below_one_is_refused_by_its_key(at, tmp_path, name):
    configure(tmp_path, normalizer_speed=SECTION | {name: 0})
    assert_one_line(run(tmp_path, "train-normalizers"), f"normalizer_speed.{name}: must be at least 1, got 0")
