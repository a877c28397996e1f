"""The two stages on a model of this run, from files to files."""

import json

import pandas as pd
import pytest
import torch
from transformers import RobertaConfig, RobertaForMaskedLM
from typer.testing import CliRunner

from replication.files.storage import write_tensors
from replication.results import read_rules, read_sparsified, rule_points
from replication.retrofit.model import load_encoder
from replication.stages import app
from sparselib.huggingface import Sparsified

SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 16, "vocab_size": 60}
SETTINGS = {
    "alpha": 1.5,
    "gold": "entmax:1.5",
    "batch_size": 5,
    "block": 4,
    "window": 1,
    "confidence": 0.8,
    "sequences": {"learn": 6, "calibrate": 24, "held_out": 4},
    "students": {
        "dimension": 2,
        "gate_dimension": 2,
        "epochs": 1,
        "gate_epochs": 1,
        "learning_rate": 0.01,
        "points": 60,
    },
    "rules": {
        "sparsefinder-distance": {"predictor": "Distance", "threshold": [0.1, 1.0]},
        "sparsefinder-v2": {"predictor": "ClusteredBlocks", "clusters": 2, "count": 1},
        "quest": {"predictor": "Quest", "count": [1, 2]},
    },
}


def replicate(command: str, folder, **options):
    given = {"model": folder / "model", "train": folder / "train.safetensors", "valid": folder / "valid.safetensors"}
    given |= {"settings": json.dumps(SETTINGS)} | options
    arguments = [
        f"--{name}={value}"
        for name, values in given.items()
        for value in (values if isinstance(values, list) else [values])
    ]
    return CliRunner().invoke(app, [command, *arguments])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    at = tmp_path_factory.mktemp("retrofit")
    torch.manual_seed(0)
    model = RobertaForMaskedLM(RobertaConfig(max_position_embeddings=40, **SIZES))
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight), alpha=0.3)
    model.save_pretrained(at / "model")
    (at / "model/training.json").write_text("{}")
    for seed, split in enumerate(("train", "valid")):
        ids = torch.randint(4, 60, (30, 16), generator=torch.Generator().manual_seed(seed))
        write_tensors(at / f"{split}.safetensors", {"input_ids": ids}, kind="tokens")
    rules = {"output": at / "rules.parquet", "learning": at / "learning.csv", "seed": [0, 1]}
    for done in (
        replicate("measure-rules", at, **rules),
        replicate("sparsify", at, output=at / "sparsified/recall0.8", recall=0.8, seed=3),
    ):
        assert done.exit_code == 0, done.output
    return at


def test_learned_rules_have_every_seed_and_the_others_none(folder):
    table = read_rules(folder)
    assert table.groupby("method")["seed"].unique().map(sorted).to_dict() == {
        "sparsefinder-distance": [0, 1], "sparsefinder-v2": [0, 1], "quest": [-1],
    }  # fmt: skip
    assert set(table["sequence"]) == set(range(4))
    learning = pd.read_csv(folder / "learning.csv")
    assert len(learning) == 4
    assert (learning[["projection", "blocks", "gate"]] > 0).all(axis=None)


def test_what_was_tuned_is_loaded_with_the_weights_and_does_what_was_measured(folder):
    ((target, measured),) = read_sparsified(folder).items()
    assert target == 0.8
    assert set(measured["seed"]) == {3}
    model = load_encoder(folder / "model")
    sparse = Sparsified.load(model, folder / "sparsified/recall0.8")
    told = {(head.layer, head.head): head for head in sparse.report.heads}
    for (layer, head), rows in measured.groupby(["layer", "head"]):
        if told[layer, head].predictor == "dense":
            assert (rows["recall"] == 1).all()
        else:
            assert rows["sparsity"].mean() == pytest.approx(told[layer, head].sparsity, abs=0.15)
    assert sparse.report.gold == "entmax:1.5"


def test_points_are_means_over_everything(folder):
    points = rule_points(folder).set_index(["method", "setting"])
    table = read_rules(folder)
    quest = table[(table["method"] == "quest") & (table["setting"] == '{"count": 1}')]
    assert points.loc[("quest", '{"count": 1}'), "recall"] == pytest.approx(quest["recall"].mean())
    assert points.loc[("quest", '{"count": 1}'), "least"] == quest.groupby(["layer", "head"])["recall"].mean().min()
    assert "sparsified" in points.index.get_level_values("method")


def test_too_few_sequences_are_named_before_anything_is_measured(folder, tmp_path):
    settings = SETTINGS | {"sequences": {"learn": 6, "calibrate": 25, "held_out": 4}}
    done = replicate("sparsify", folder, settings=json.dumps(settings), output=tmp_path / "out", recall=0.8, seed=0)
    assert done.exit_code == 1
    assert "30 sequences, and 31 are asked for" in done.output
    assert not (tmp_path / "out").exists()
