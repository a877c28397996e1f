"""Training a masked language model: how it starts, that it learns, and what it leaves."""

import math
from functools import partial
from types import SimpleNamespace

import pytest
import tiny
import torch
from transformers import BertConfig, BertForMaskedLM, RobertaForMaskedLM

from replication.corpora.tokens import load_tokenizer, save_tokenizer
from replication.masked_lm.evaluation import cross_entropy, mask_text
from replication.masked_lm.model import build_model, check_length, load_entmax_model, load_model, masked_loss
from replication.masked_lm.training import MaskedLMTrainer, share_of_loss, train
from sparselib.integrations.huggingface import use_attention


@pytest.fixture(scope="module")
def text():
    return tiny.text()


def test_positions_start_as_sinusoids(text):
    tokenizer, _ = text
    model = build_model(tokenizer, 12, 0, **(tiny.ARCHITECTURE | {"initializer_range": 0.08}))
    weight = model.roberta.embeddings.position_embeddings.weight
    assert weight.shape == (12 + tokenizer.pad_token_id + 1, 16)
    for position, row in enumerate(weight.tolist()):
        for i, value in enumerate(row):
            angle = position / 10_000 ** (i // 2 * 2 / 16)
            wave = math.cos(angle) if i % 2 else math.sin(angle)
            assert value == pytest.approx(wave * 2 * 0.08 * math.sqrt(2), abs=1e-6)


def test_positions_start_twice_as_large_as_tokens(text):
    embeddings = tiny.network(text[0], hidden_size=64).roberta.embeddings
    positions, words = (
        e.weight.square().mean().sqrt() for e in (embeddings.position_embeddings, embeddings.word_embeddings)
    )
    assert (positions / words).item() == pytest.approx(2, rel=0.02)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_attention_starts_local(text, seed):
    """Before training, a query's score falls with the distance to the key in every layer, on average over tokens."""
    tokenizer, input_ids = text
    model = tiny.network(tokenizer, seed, hidden_size=64, initializer_range=0.08)
    scores = []
    with use_attention(model).observing(lambda call, mask: scores.append((call.q @ call.k.mT).mean((0, 1)))):
        model.eval()(input_ids)
    for of_layer in scores:
        by_distance = [of_layer.diagonal(distance).mean().item() for distance in (0, 1, 2, 3, 4)]
        assert by_distance == sorted(by_distance, reverse=True)


def test_the_weights_are_their_seeds(text):
    model, again, other = (tiny.network(text[0], seed) for seed in (3, 3, 4))
    tiny.assert_same_weights(model, again)
    assert not torch.equal(model.lm_head.dense.weight, other.lm_head.dense.weight)


def test_a_model_takes_just_the_length_it_was_built_for(text):
    model = tiny.network(text[0])
    check_length(model, tiny.LENGTH)
    model(torch.full((1, tiny.LENGTH), 7))
    with pytest.raises(ValueError, match="sequences of 17 tokens are longer than the model's 16 positions"):
        check_length(model, tiny.LENGTH + 1)
    with pytest.raises((IndexError, RuntimeError), match="out of"):
        model(torch.full((1, tiny.LENGTH + 1), 7))


def test_masked_loss_is_the_models_own(text):
    tokenizer, input_ids = text
    model = tiny.peaked(tokenizer)
    masked = mask_text(input_ids[:5], tokenizer, 0.3, seed=0)
    own = model(masked.inputs, labels=masked.labels).loss
    torch.testing.assert_close(masked_loss(model, masked.inputs, masked.labels), own)


def test_causal_steps_predict_every_true_next_token_without_seeing_it(text):
    tokenizer, input_ids = text
    model = tiny.peaked(tokenizer, num_hidden_layers=1)
    control = use_attention(model)
    true = input_ids[:5].long()
    trainer = SimpleNamespace(control=control, causal_steps=1, state=SimpleNamespace(global_step=0))
    loss = MaskedLMTrainer.compute_loss(trainer, partial(share_of_loss, model), {"input_ids": true})
    prefixes = [model(true[:, :end]).logits[:, -1] for end in range(1, tiny.LENGTH)]  # what is not there isn't seen
    expected = torch.nn.functional.cross_entropy(torch.cat(prefixes), true[:, 1:].T.flatten())
    torch.testing.assert_close(loss, expected)


@pytest.mark.parametrize("causal_steps", [0, 20])
def test_training_lowers_the_loss(text, tmp_path, causal_steps):
    tokenizer, input_ids = text
    masked = mask_text(input_ids, tokenizer, 0.3, seed=1)
    untrained = tiny.network(tokenizer)
    use_attention(untrained)
    model = tiny.train_tiny(tmp_path, max_steps=60, causal_steps=causal_steps, learning_rate=0.01)
    assert cross_entropy(model, masked, 64) < cross_entropy(untrained, masked, 64) - 0.3


def test_training_leaves_a_model_that_loads_and_nothing_else(tmp_path):
    model = tiny.train_tiny(tmp_path, max_steps=6)
    assert {path.name for path in tmp_path.iterdir()} == {"model.safetensors", "config.json"}
    again, control = load_entmax_model(tmp_path)
    assert control.layers == 2
    assert not again.training
    tiny.assert_same_weights(again, model)


@pytest.mark.parametrize("key", ["loss", "learning_rate", "step", "epoch"])
def test_the_log_has_an_entry_per_logging_step(text, tmp_path, key):
    tokenizer, input_ids = text
    arguments = tiny.TRAINING | {"max_steps": 6, "logging_steps": 2}
    log = train(tiny.network(tokenizer), tokenizer, input_ids, tmp_path, seed=0, **arguments)
    assert sum(key in entry and "loss" in entry for entry in log) == 3
    assert log[-1]["train_runtime"] > 0


def test_accumulated_batches_are_one_large_batch(tmp_path):
    """Without masking, whose draws depend on the batches."""
    large = tiny.train_tiny(tmp_path / "a", causal_steps=99, max_steps=4, per_device_train_batch_size=4)
    halves = {"per_device_train_batch_size": 2, "gradient_accumulation_steps": 2}
    tiny.assert_same_weights(large, tiny.train_tiny(tmp_path / "b", causal_steps=99, max_steps=4, **halves), 1e-4, 1e-5)


def test_a_pretrained_checkpoint_and_its_tokenizer_are_taken_as_they_are(text, tmp_path):
    """The paper's path: both come from a folder (or the hub), sequences fit, training starts from these weights."""
    tokenizer, input_ids = text
    pretrained = tiny.peaked(tokenizer)
    pretrained.save_pretrained(tmp_path / "roberta")
    save_tokenizer(tokenizer, tmp_path / "roberta")
    model, again = load_model(tmp_path / "roberta"), load_tokenizer(tmp_path / "roberta")
    assert isinstance(model, RobertaForMaskedLM)
    tiny.assert_same_weights(model, pretrained)
    train(model, again, input_ids, tmp_path / "out", seed=0, **(tiny.TRAINING | {"max_steps": 1}))
    difference = model.lm_head.dense.weight - pretrained.lm_head.dense.weight
    assert 0 < difference.abs().max() < 0.01  # one step of Adam away


def test_a_model_without_the_head_of_roberta_is_refused_by_name(tmp_path):
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    BertForMaskedLM(BertConfig(vocab_size=50, **sizes)).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="BertForMaskedLM has no lm_head"):
        load_model(tmp_path)


def test_training_in_lower_precision_is(text, tmp_path):
    """bfloat16 changes every loss, and none by much; the weights stay in float32."""
    tokenizer, input_ids = text
    logs = []
    for name, lower in (("whole", False), ("half", True)):
        model = tiny.network(tokenizer)
        log = train(model, tokenizer, input_ids, tmp_path / name, seed=0, **(tiny.TRAINING | {"bf16": lower}))
        logs.append(torch.tensor([entry["loss"] for entry in log if "loss" in entry]))
        assert {weight.dtype for weight in model.parameters()} == {torch.float32}
    assert (logs[0] != logs[1]).float().mean() > 0.5
    torch.testing.assert_close(*logs, rtol=0, atol=0.02)
