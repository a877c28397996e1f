"""Low-rank adapters: what they change, and that base and adapters give the trained model again."""

import json
import shutil

import pytest
import tiny
import torch
from command_line import succeed
from safetensors import safe_open
from safetensors.torch import load, load_file, save_file

from replication.files.checkpoints import half_precision
from replication.files.manifest import add_output, making
from replication.files.storage import FormatError, read_header
from replication.masked_lm.adapters import KIND, merge_adapters
from replication.masked_lm.model import load_model, load_pretrained
from replication.masked_lm.training import train
from replication.run.layout import ADAPTERS

RANK = 3


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("base")
    tiny.peaked(tiny.text()[0]).save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def trained(base, tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    tokenizer, input_ids = tiny.text()
    model = load_pretrained(base, 0)
    train(model, tokenizer, input_ids, folder, seed=0, adapter_rank=RANK, base=base, **tiny.TRAINING)
    return folder


def test_the_difference_of_each_linear_map_has_the_rank_and_embeddings_stay(base, trained):
    before, after = load_model(base).state_dict(), load_model(trained).state_dict()
    assert before.keys() == after.keys()
    for name in before:
        difference = after[name] - before[name]
        if "layer." in name and name.endswith("weight") and difference.ndim == 2:
            assert torch.linalg.matrix_rank(difference.double(), rtol=1e-4) == RANK, name
        elif "embeddings" in name and "LayerNorm" not in name:
            assert not difference.any(), name
    head = after["lm_head.dense.weight"] - before["lm_head.dense.weight"]
    assert torch.linalg.matrix_rank(head.double(), rtol=1e-4) > RANK


def test_base_and_adapters_are_the_trained_model(trained, tmp_path):
    merge_adapters(trained / ADAPTERS, tmp_path)
    tiny.assert_same_weights(load_model(tmp_path), load_model(trained))
    ours, theirs = (json.loads((folder / "config.json").read_text()) for folder in (tmp_path, trained))
    # Training does not store keys and values of earlier tokens.
    assert ours | {"use_cache": False} == theirs | {"use_cache": False}


def test_half_precision_changes_the_loss_by_less_than_a_thousandth(trained, tmp_path):
    single = {name: value.float() for name, value in load(half_precision(trained / ADAPTERS)).items()}
    with safe_open(trained / ADAPTERS, framework="pt") as file:
        save_file(single, tmp_path / ADAPTERS, file.metadata())
    merge_adapters(tmp_path / ADAPTERS, tmp_path)
    input_ids = tiny.text()[1][:8].long()
    losses = [load_model(folder).eval()(input_ids, labels=input_ids).loss.item() for folder in (trained, tmp_path)]
    assert losses[1] == pytest.approx(losses[0], rel=1e-3)
    assert losses[1] != losses[0]


def test_another_base_is_refused(base, trained, tmp_path):
    (tmp_path / "base").mkdir()
    weights = load_file(f"{base}/model.safetensors")
    weights["roberta.embeddings.LayerNorm.weight"] += 1e-3
    header = read_header(trained / ADAPTERS, kind=KIND) | {"base": str(tmp_path / "base")}
    save_file(weights, tmp_path / "base/model.safetensors", {"format": "pt"})
    save_file(load_file(trained / ADAPTERS), tmp_path / ADAPTERS, {"header": json.dumps(header)})
    with pytest.raises(FormatError, match=r"base: must be the model with hash [0-9a-f]{16}, got [0-9a-f]{16}"):
        merge_adapters(tmp_path / ADAPTERS, tmp_path / "merged")
    assert not (tmp_path / "merged").exists()


def test_a_base_that_the_configuration_does_not_name_is_not_read(trained, tmp_path):
    with pytest.raises(FormatError, match=r"adapters\.safetensors: must have the base package:mine, got "):
        merge_adapters(trained / ADAPTERS, tmp_path, "package:mine")


def test_an_interrupted_training_resumes_with_the_same_adapters(base, trained, tmp_path):
    tokenizer, input_ids = tiny.text()
    settings = {"seed": 0, "adapter_rank": RANK, "base": base} | tiny.TRAINING
    folder = tmp_path / "interrupted"

    class Stop(Exception):
        pass

    calls = 0
    original = torch.optim.AdamW.step

    def step(self, *args, **kwargs):
        nonlocal calls
        calls += 1
        if calls == 13:
            raise Stop
        return original(self, *args, **kwargs)

    torch.optim.AdamW.step = step
    try:
        with pytest.raises(Stop):
            train(load_pretrained(base, 0), tokenizer, input_ids, folder, **settings)
    finally:
        torch.optim.AdamW.step = original
    train(load_pretrained(base, 0), tokenizer, input_ids, folder, **settings)
    whole, resumed = (load_file(path / ADAPTERS) for path in (trained, folder))
    assert whole.keys() == resumed.keys()
    for name in whole:
        torch.testing.assert_close(resumed[name], whole[name])


def test_shipped_adapters_are_unpacked_into_the_model(base, tmp_path):
    results = tiny.configured(tmp_path, {"pretrained": base, "adapter_rank": RANK})
    succeed(tmp_path, "train-masked-lm")
    (results / "perplexity.csv").write_text("perplexity\n3.0\n")
    with making("perplexity"):
        add_output(results / "perplexity.csv")
    succeed(tmp_path, "ship", "masked_lm/model", code="c0de")
    checkpoint = tmp_path / "checkpoints/masked_lm/model"
    assert {path.name for path in checkpoint.iterdir() if not path.name.startswith(".")} == {
        "weights.safetensors", "made_by.json", "config.json", "training.csv"
    }  # fmt: skip
    assert not any("embeddings.word" in name for name in load_file(checkpoint / "weights.safetensors"))
    succeed(tmp_path, "compare-weights", str(tmp_path / "results/tiny"), config=None)
    before = load_model(results / "model")
    shutil.rmtree(results / "model")
    succeed(tmp_path, "weights", "masked_lm/model", code="c0de")
    tiny.assert_same_weights(load_model(results / "model"), before, rtol=0, atol=2e-3)
