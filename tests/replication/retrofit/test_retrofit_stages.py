"""The two stages on a model of this run, from files to files."""

import re
import shutil

import pandas as pd
import pytest
import torch
from command_line import assert_one_line, configure, list_files, run, succeed
from transformers import RobertaConfig, RobertaForMaskedLM

from profiles import MASKED_LM, RETROFIT
from replication.corpora.tokens import KIND
from replication.files.paths import ROOT
from replication.files.storage import write_tensors
from replication.results.measurements import read_rules, read_sparsified
from replication.results.points import rule_points
from replication.results.settings import label
from replication.retrofit.model import load_encoder
from replication.retrofit.text import drawn_sequences
from sparselib.huggingface import Sparsified

SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 16, "vocab_size": 60}
SECTION = RETROFIT | {
    "batch_size": 5,
    "recalls": [0.8],
    "confidence": 0.8,
    "sequences": {"learn": 6, "calibrate": 24, "held_out": 4},
    "rules": {
        "sparsefinder-distance": {"predictor": "Distance", "threshold": [0.1, 1.0]},
        "sparsefinder-v2": {"predictor": "ClusteredBlocks", "clusters": 2, "count": 1},
        "quest": {"predictor": "Quest", "count": [1, 2]},
    },
}
EXAMPLES = re.findall(r"```python\n(.*?)```", (ROOT / "docs/add-a-predictor.md").read_text(), re.DOTALL)
#: A predictor of a user that needs centroids.
SHARED = """
from dataclasses import dataclass

from sparselib.predictors import Clustering


@dataclass(frozen=True, eq=False)
class Shared(Clustering):
    pass
"""
#: The first is that of the sparsified model.
SEEDS = (3, 0)


def configured(folder, **changes):
    return configure(folder, student_seeds=SEEDS, masked_lm=MASKED_LM, retrofit=SECTION | changes)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run with a model and its text, of which both stages have run."""
    folder = tmp_path_factory.mktemp("retrofit") / "run"
    results = configured(folder)
    torch.manual_seed(0)
    model = RobertaForMaskedLM(RobertaConfig(max_position_embeddings=40, **SIZES))
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight), alpha=0.3)
    model.save_pretrained(results / "masked_lm/model")
    (results / "masked_lm/model/training.json").write_text("{}")
    for seed, split in enumerate(("train", "valid")):
        ids = torch.randint(4, 60, (30, 16), generator=torch.Generator().manual_seed(seed))
        write_tensors(results / f"retrofit/tokens/{split}.safetensors", {"input_ids": ids}, kind=KIND)
    list_files(results)
    succeed(folder, "measure-rules")
    succeed(folder, "sparsify", recall=0.8)
    return folder


@pytest.fixture(scope="module")
def retrofit(folder):
    return folder / "results/tiny/retrofit"


def test_learned_rules_have_every_seed_and_the_others_none(retrofit):
    table = read_rules(retrofit)
    assert table.groupby("method")["seed"].unique().map(sorted).to_dict() == {
        "sparsefinder-distance": [0, 3], "sparsefinder-v2": [0, 3], "quest": [-1],
    }  # fmt: skip
    assert set(table["sequence"]) == set(range(4))
    learning = pd.read_csv(retrofit / "learning.csv")
    assert len(learning) == 4
    assert (learning[["projection", "blocks", "gate"]] > 0).all(axis=None)


def test_what_was_tuned_is_loaded_with_the_weights_and_does_what_was_measured(retrofit):
    ((target, measured),) = read_sparsified(retrofit).items()
    assert target == 0.8
    assert set(measured["seed"]) == {3}
    model = load_encoder(retrofit.parent / "masked_lm/model")
    sparse = Sparsified.load(model, retrofit / "sparsified/recall0.8")
    heads = {(head.layer, head.head): head for head in sparse.report.heads}
    for (layer, head), rows in measured.groupby(["layer", "head"]):
        if heads[layer, head].predictor == "dense":
            assert (rows["recall"] == 1).all()
        else:
            assert rows["sparsity"].mean() == pytest.approx(heads[layer, head].sparsity, abs=0.15)
    assert sparse.report.gold == "entmax:1.5"


def test_points_are_means_over_everything(retrofit):
    points = rule_points(retrofit).set_index(["method", "setting"])
    table, one = read_rules(retrofit), label({"count": 1})
    quest = table[(table["method"] == "quest") & (table["setting"] == one)]
    assert len(quest) == 4 * 2 * 4
    assert points.loc[("quest", one), "recall"] == pytest.approx(quest["recall"].mean())
    assert points.loc[("quest", one), "least"] == quest.groupby(["layer", "head"])["recall"].mean().min()
    assert "sparsified" in points.index.get_level_values("method")


@pytest.fixture
def unmeasured(folder, tmp_path):
    """A copy of the run with the model and its text alone."""
    results = configured(tmp_path)
    for name in ("masked_lm/model", "retrofit/tokens"):
        shutil.copytree(folder / "results/tiny" / name, results / name)
    list_files(results)
    return results / "retrofit"


def test_too_few_sequences_are_named_before_anything_is_measured(unmeasured, tmp_path):
    configured(tmp_path, sequences={"learn": 6, "calibrate": 25, "held_out": 4})
    result = run(tmp_path, "sparsify", recall=0.8)
    assert_one_line(result, "train.safetensors: must contain at least 31 sequences, got 30")
    assert [path.name for path in unmeasured.iterdir()] == ["tokens"]


def test_a_recall_that_the_configuration_lacks_is_named(unmeasured, tmp_path):
    result = run(tmp_path, "sparsify", recall=0.9)
    assert_one_line(result, "0.9: ")
    assert "0.8" in result.stderr
    assert [path.name for path in unmeasured.iterdir()] == ["tokens"]


def test_predictors_of_the_user_are_rules(unmeasured, tmp_path):
    """An instance, one that fits itself and one with centroids, measured on the text that they learn from."""
    shutil.copy(unmeasured / "tokens/train.safetensors", unmeasured / "tokens/valid.safetensors")
    list_files(unmeasured.parent)
    (tmp_path / "mine.py").write_text("\n\n".join(EXAMPLES[:2]).replace("print(", "str("))
    (tmp_path / "shared.py").write_text(SHARED)
    own = {
        "long-keys": {"predictor": f"{tmp_path}/mine.py:LongKeys", "length": [0.0, 1e6]},
        "learned": {"predictor": f"{tmp_path}/mine.py:NearEnough", "recall": [0.5, 1.0]},
        "shared": {"predictor": f"{tmp_path}/shared.py:Shared", "clusters": 2},
        "kmeans": {"predictor": "Clustering", "clusters": 2},
    }
    configured(tmp_path, rules=SECTION["rules"] | own)
    succeed(tmp_path, "measure-rules")
    table = read_rules(unmeasured)
    all_edges, half = (table[table["setting"] == label({"own_recall": share})] for share in (1.0, 0.5))
    assert (all_edges["recall"] == 1).all()
    # The window adds to the half.
    assert half.groupby(["seed", "layer", "head"])["recall"].mean().between(0.4, 0.9).all()
    means = table.groupby(["method", "setting", "seed"])[["recall", "sparsity", "drift"]].mean()
    for seed in SEEDS:
        long, learned = (means.xs((method, seed), level=(0, 2)) for method in ("long-keys", "learned"))
        assert long.iloc[0].tolist() == pytest.approx([1, 0, 0], abs=1e-5)
        assert long.iloc[1]["sparsity"] > 0.5  # the window is left
        assert learned.iloc[0]["sparsity"] > learned.iloc[1]["sparsity"] > 0
    same = (table[table["method"] == name].drop(columns=["method", "setting"]) for name in ("shared", "kmeans"))
    pd.testing.assert_frame_equal(*(x[["recall", "sparsity", "seed"]].reset_index(drop=True) for x in same))


def test_another_model_is_loaded_from_its_folder(folder, unmeasured, tmp_path):
    """With the same weights, the rules measure the same."""
    (unmeasured.parent / "masked_lm/model").rename(tmp_path / "another")
    configured(tmp_path, model="another")
    succeed(tmp_path, "measure-rules")
    tables = [read_rules(run / "results/tiny/retrofit") for run in (folder, tmp_path)]
    pd.testing.assert_frame_equal(*tables, check_exact=True)


def test_calibration_text_is_drawn_from_all_that_is_left(tmp_path):
    """Consecutive sequences would be of one document, and the guarantee assumes independent ones."""
    ids = torch.arange(100)[:, None].expand(-1, 4)
    write_tensors(tmp_path / "tokens.safetensors", {"input_ids": ids.clone()}, kind=KIND)
    drawn = drawn_sequences(tmp_path / "tokens.safetensors", 10, 40, seed=0)[:, 0].tolist()
    assert len(set(drawn)) == 40
    assert min(drawn) >= 10
    assert max(drawn) >= 80
    assert drawn != sorted(drawn)
    assert drawn == drawn_sequences(tmp_path / "tokens.safetensors", 10, 40, seed=0)[:, 0].tolist()
    with pytest.raises(ValueError, match="must contain at least 101 sequences, got 100"):
        drawn_sequences(tmp_path / "tokens.safetensors", 10, 91, seed=0)
