"""The speed of a tiny translator with every normaliser: each is trained, timed and counted as its name says."""

import random

import pytest
import torch

pytest.importorskip("sparselib.integrations.fairseq")
from replication.corpora.parallel import write_parallel
from replication.translation.data import binarize
from replication.translation.speed import CONTENDERS, SOFTMAX, SPEEDS, measure
from sparselib.integrations.fairseq.transformer import PLACES

ARCHITECTURE = {
    f"{side}_{key}": value
    for side in ("encoder", "decoder")
    for key, value in {"layers": 1, "embed_dim": 16, "ffn_embed_dim": 16, "attention_heads": 2}.items()
}
TRAINING = {"lr": 0.01, "warmup_updates": 2, "max_tokens": 300, "dropout": 0.0, "max_update": 4, "log_interval": 2}
SETTINGS = {"top_k": 2, "repeats": 2, "beam": 2, "batch": 4, "seed": 0}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("speed")
    rng = random.Random(0)
    for split, count in {"train": 60, "valid": 6, "test": 6}.items():
        lines = [" ".join(rng.choices("alpha beta gamma delta".split(), k=rng.randint(3, 9))) for _ in range(count)]
        write_parallel(folder / "corpus", split, {"en": lines, "de": [line.upper() for line in lines]})
    binarize(folder / "corpus", "en", "de", ["train", "valid", "test"], "spaces", 10, folder / "data", None)
    return folder


def measured(data, folder, **changes):
    references = (data / "corpus/test.de").read_text().splitlines()
    place = (data / "data", "en", "de", references, "spaces", ARCHITECTURE, TRAINING)
    return measure(*place, **SETTINGS | changes, folder=folder)


def test_every_contender_is_measured(data, tmp_path):
    table, details = measured(data, tmp_path)
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


@pytest.mark.parametrize("name", ["top_k", "repeats", "beam", "batch"])
def test_a_number_below_one_is_named_before_anything_is_trained(data, tmp_path, name):
    with pytest.raises(ValueError, match=name):
        measured(data, tmp_path, **{name: 0})
    assert list(tmp_path.iterdir()) == []
