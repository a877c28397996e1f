"""Pretrained encoders of all types that a masked language model can start from, with random weights."""

import csv
import re

import pytest
import tiny
import torch
from transformers import CONFIG_MAPPING, AutoModelForMaskedLM
from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES

from replication.files.encoders import ENCODERS
from replication.files.paths import ROOT
from replication.graphs.shards import open_graphs
from replication.masked_lm.evaluation import extract_graphs, mask_text
from replication.masked_lm.model import check_length, load_entmax_model, load_pretrained, masked_loss
from replication.training import save_trained
from sparselib.huggingface import use_attention
from sparselib.normalizers import Entmax

SEQUENCES = 4


def test_they_are_the_exact_ones_with_a_head_and_no_second_sequence_or_part():
    with (ROOT / "docs/architectures.csv").open(encoding="utf-8", newline="") as file:
        exact = {row["architecture"] for row in csv.DictReader(file) if row["verdict"] == "exact"}
    configs = {kind: CONFIG_MAPPING[kind] for kind in exact & MODEL_FOR_MASKED_LM_MAPPING_NAMES.keys()}
    encoders = {kind for kind, of in configs.items() if not (of().is_encoder_decoder or of.sub_configs)}
    assert encoders == ENCODERS.keys()


@pytest.mark.parametrize("kind", ENCODERS)
def test_losses_are_those_of_eager_attention_and_graphs_those_of_the_model(tmp_path, kind):
    tokenizer, input_ids = tiny.text()
    folder = tiny.write_encoder(kind, tmp_path / "pretrained")
    model = load_pretrained(folder, 0).eval()
    assert model.config.random_head is False
    check_length(model, tiny.LENGTH)
    masked = mask_text(input_ids[:SEQUENCES], tokenizer, 0.3, seed=0)
    eager = AutoModelForMaskedLM.from_pretrained(folder, attn_implementation="eager").eval()
    with pytest.raises(ValueError, match="sequences must have at most") as refused:
        check_length(model, 25)
    eager(torch.full((1, int(re.search("[0-9]+", str(refused.value))[0])), 7))
    use_attention(model, Entmax(1))
    expected = eager(masked.inputs, labels=masked.labels).loss
    torch.testing.assert_close(masked_loss(model, masked.inputs, masked.labels), expected)

    save_trained(model, tmp_path / "trained")
    trained, control = load_entmax_model(tmp_path / "trained")
    assert abs(masked_loss(trained, masked.inputs, masked.labels) - expected) > 1e-3
    extract_graphs(trained, control, input_ids, torch.arange(SEQUENCES), tmp_path, batch_size=2)

    def compare(call, mask) -> None:
        with open_graphs(tmp_path / f"layer{call.layer:02}.safetensors") as graphs:
            assert torch.equal(graphs.batch(0, SEQUENCES).gold, call.gold())

    with torch.no_grad(), control.observing(compare):
        trained(input_ids[:SEQUENCES].long())


def test_graphs_of_windows_or_other_scores_are_refused(tmp_path):
    """A ModernBERT whose layers see fewer tokens than a sequence has."""
    folder = tiny.write_encoder("modernbert", tmp_path / "pretrained")
    model = AutoModelForMaskedLM.from_pretrained(folder, local_attention=8, num_hidden_layers=2)
    with pytest.raises(
        ValueError, match=r"`model` must attend to all 16 tokens by q.k / sqrt\(8\), but layer 1 does not"
    ):
        extract_graphs(model, use_attention(model), tiny.text()[1], torch.arange(2), tmp_path, batch_size=2)
