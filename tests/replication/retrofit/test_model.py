"""Models that come in packages, from folders or from a run."""

import sys

import pytest
import torch
from transformers import BertConfig, BertModel, RobertaConfig, RobertaForMaskedLM

from replication.files.paths import located
from replication.files.storage import write_tensors
from replication.retrofit.model import load_encoder
from replication.retrofit.text import batches, sequences

SIZES = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8, "vocab_size": 30}


@pytest.fixture
def package(tmp_path, monkeypatch):
    folder = tmp_path / "packaged_model"
    (folder / "model").mkdir(parents=True)
    (folder / "__init__.py").write_text("raise RuntimeError('a package is found, and not imported')")
    monkeypatch.syspath_prepend(tmp_path)
    yield folder / "model"
    sys.modules.pop("packaged_model", None)


def test_a_model_of_a_package(package):
    BertModel(BertConfig(**SIZES)).save_pretrained(package)
    assert located("package:packaged_model/model") == str(package)
    loaded = load_encoder("package:packaged_model/model")
    assert not loaded.training
    assert loaded(torch.ones(1, 4, dtype=torch.long)).last_hidden_state.shape == (1, 4, 8)


def test_other_names_are_left_alone():
    assert located("FacebookAI/roberta-base") == "FacebookAI/roberta-base"


@pytest.mark.parametrize("name", ["package:no_such_package/model", "package:sys/model"])
def test_a_package_that_is_not_there_is_named(name):
    with pytest.raises(FileNotFoundError, match="is not installed"):
        load_encoder(name)


def test_a_model_of_this_run_comes_without_its_head(tmp_path):
    whole = RobertaForMaskedLM(RobertaConfig(**SIZES)).eval()
    whole.save_pretrained(tmp_path)
    (tmp_path / "training.json").write_text("{}")
    encoder = load_encoder(tmp_path)
    ids = torch.arange(4, 10)[None]
    torch.testing.assert_close(encoder(ids).last_hidden_state, whole.base_model(ids).last_hidden_state)
    assert not any("pooler" in name for name, _ in encoder.named_parameters())


def test_no_model_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="empty"):
        load_encoder(tmp_path / "empty")


def test_sequences_are_those_of_the_file(tmp_path):
    ids = torch.arange(40).view(10, 4)
    write_tensors(tmp_path / "train.safetensors", {"input_ids": ids}, kind="tokens")
    assert sequences(tmp_path / "train.safetensors", 3, 5).equal(ids[3:8])
    assert [len(part) for part in batches(ids, 4)] == [4, 4, 2]
    with pytest.raises(ValueError, match="must contain at least 11 sequences, got 10"):
        sequences(tmp_path / "train.safetensors", 6, 5)
