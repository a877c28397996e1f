"""The speed of a tiny translator with every normaliser: each is trained, timed and counted as its name says."""

import json
import random
import shutil

import pytest
import torch
from typer.testing import CliRunner

pytest.importorskip("replication.translation.fairseq")
from replication.bleu import COUNTS, corpus_bleu
from replication.corpora.parallel import write_parallel
from replication.stages import app
from replication.translation.contenders import CONTENDERS, SOFTMAX
from replication.translation.data import binarize
from replication.translation.fairseq.transformer import PLACES
from replication.translation.speed import SPEEDS, measure

ARCHITECTURE = {
    f"{side}_{key}": value
    for side in ("encoder", "decoder")
    for key, value in {"layers": 1, "embed_dim": 16, "ffn_embed_dim": 16, "attention_heads": 2}.items()
}
TRAINING = {"lr": 0.01, "warmup_updates": 2, "max_tokens": 300, "dropout": 0.0, "max_update": 4, "log_interval": 2}
SETTINGS = {"repeats": 2, "beam": 2, "batch": 4}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("speed")
    rng = random.Random(0)
    for split, count in {"train": 60, "valid": 6, "test": 6}.items():
        lines = [" ".join(rng.choices("alpha beta gamma delta".split(), k=rng.randint(3, 9))) for _ in range(count)]
        write_parallel(folder / "corpus", split, {"en": lines, "de": [line.upper() for line in lines]})
    binarize(folder / "corpus", "en", "de", ["train", "valid", "test"], "spaces", 10, folder / "data", None)
    return folder


@pytest.fixture(scope="module")
def models(data):
    options = {"data": data / "data", "from": "en", "to": "de", "top_k": 2, "seed": 0, "output": data / "models"}
    options |= {"architecture": json.dumps(ARCHITECTURE), "training": json.dumps(TRAINING)}
    arguments = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    result = CliRunner().invoke(app, ["train-normalizers", *arguments])
    assert result.exit_code == 0, result.output
    return data / "models"


def measured(data, models, **changes):
    references = (data / "corpus/test.de").read_text().splitlines()
    return measure(data / "data", references, "spaces", **SETTINGS | changes, models=models)


def test_every_contender_is_measured(data, models):
    table, sentences, details = measured(data, models)
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
