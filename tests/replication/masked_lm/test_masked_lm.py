"""Training a masked language model: how it starts, that it learns, and what it leaves."""

import math
from functools import partial
from types import SimpleNamespace

import pytest
import tiny
import torch
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertModel,
    RobertaForMaskedLM,
)

from replication.corpora.tokens import load_tokenizer, save_tokenizer
from replication.masked_lm.evaluation import cross_entropy, mask_text
from replication.masked_lm.model import (
    build_model,
    check_length,
    in_head,
    load_entmax_model,
    load_model,
    load_pretrained,
    masked_loss,
)
from replication.masked_lm.training import MaskedLMTrainer, share_of_loss, train
from sparselib.huggingface import use_attention


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
    with pytest.raises(ValueError, match="at most 16 tokens, the model's positions, got 17"):
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


def test_training_leaves_a_model_that_loads_and_its_checkpoints(tmp_path):
    model = tiny.train_tiny(tmp_path, max_steps=6)
    assert {path.name for path in tmp_path.iterdir()} == {"model.safetensors", "config.json", "checkpoints"}
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


def bert(**sizes: int) -> BertConfig:
    tiny_sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    return BertConfig(**(tiny_sizes | sizes), tie_word_embeddings=True)


def test_an_encoder_without_a_head_gets_one_of_its_seed_and_trains(text, tmp_path):
    """The encoder's weights are its own, the head is random, and the trained model loads whole with tied embeddings."""
    tokenizer, input_ids = text
    encoder = BertModel(bert(vocab_size=len(tokenizer), max_position_embeddings=tiny.LENGTH))
    encoder.save_pretrained(tmp_path / "encoder")
    first, again, other = (load_pretrained(tmp_path / "encoder", seed, hidden_dropout_prob=0.25) for seed in (0, 0, 1))
    assert first.config.hidden_dropout_prob == 0.25
    tiny.assert_same_weights(first.bert.encoder, encoder.encoder)
    tiny.assert_same_weights(first, again)
    heads = [model.cls.predictions.transform.dense.weight for model in (first, other)]
    assert not torch.equal(*heads)
    check_length(first, tiny.LENGTH)
    with pytest.raises(ValueError, match="at most 16 tokens, the model's positions"):
        check_length(first, tiny.LENGTH + 1)
    log = train(first, tokenizer, input_ids, tmp_path / "out", seed=0, **tiny.TRAINING)
    losses = [entry["loss"] for entry in log if "loss" in entry]
    assert sum(losses[-5:]) < sum(losses[:5])
    tiny.assert_same_weights(load_model(tmp_path / "out"), first)


def test_an_encoder_that_lacks_weights_is_refused_by_their_name(tmp_path):
    model = BertModel(bert(vocab_size=50))
    weights = {name: value for name, value in model.state_dict().items() if "layer.0.attention.self.key" not in name}
    model.save_pretrained(tmp_path, state_dict=weights)
    with pytest.raises(ValueError, match=r"bert\.encoder\.layer\.0\.attention\.self\.key\.bias"):
        load_pretrained(tmp_path, 0)


@pytest.mark.parametrize("family", ["bert", "roberta"])
@pytest.mark.parametrize("lost", ["dense.weight", "ayer", "bias"])
def test_a_head_that_lacks_some_weights_is_refused_by_their_name(text, tmp_path, family, lost):
    model = BertForMaskedLM(bert(vocab_size=50)) if family == "bert" else tiny.network(text[0])
    weights = {name: value for name, value in model.state_dict().items() if not (in_head(model, name) and lost in name)}
    assert len(weights) < len(model.state_dict())
    model.save_pretrained(tmp_path, state_dict=weights)
    with pytest.raises(ValueError, match=r"do not match the configuration: (lm_head|cls)\."):
        load_pretrained(tmp_path, 0)


def test_a_head_of_another_vocabulary_is_refused(text, tmp_path):
    model = tiny.network(text[0])
    model.lm_head.dense = torch.nn.Linear(8, 8)
    model.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"do not match the configuration: lm_head\.dense"):
        load_pretrained(tmp_path, 0)


def test_whether_a_head_is_random_is_known_of_the_model(text, tmp_path):
    model = tiny.network(text[0])
    model.save_pretrained(tmp_path / "whole")
    assert load_pretrained(tmp_path / "whole", 0).config.random_head is False
    model.roberta.save_pretrained(tmp_path / "encoder")
    assert load_pretrained(tmp_path / "encoder", 0).config.random_head is True


def test_a_trained_model_without_its_head_is_refused(tmp_path):
    """Only a start for fine-tuning may lack the head."""
    BertModel(bert(vocab_size=50)).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"do not match the configuration: cls\.predictions"):
        load_model(tmp_path)


def test_a_model_of_another_type_is_refused_by_name(tmp_path):
    with pytest.raises(ValueError, match=r"pretrained: must be one of albert, bert, .*, got mpnet"):
        load_model(tiny.write_encoder("mpnet", tmp_path / "pretrained"))


@pytest.mark.parametrize("options", [{}, {"tied_query_key": True}, {"sinusoidal_positions": True}])
def test_a_model_starts_as_its_options_say(text, options):
    neither = {"tied_query_key": False, "sinusoidal_positions": False, "hidden_size": 64}
    model = tiny.network(text[0], **(neither | options))
    plain = RobertaForMaskedLM(model.config).roberta.embeddings.position_embeddings.weight
    for layer in model.roberta.encoder.layer:
        attention = layer.attention.self
        assert torch.equal(attention.query.weight, attention.key.weight) == ("tied_query_key" in options)
    positions = model.roberta.embeddings.position_embeddings.weight
    ratio = positions.square().mean().sqrt() / plain.square().mean().sqrt()
    assert ratio.item() == pytest.approx(2 if "sinusoidal_positions" in options else 1, rel=0.15)


def held_out_losses(log: list[dict]) -> list[float]:
    return [entry["eval_loss"] for entry in log if "eval_loss" in entry]


def test_the_model_with_the_lowest_held_out_loss_is_kept(text, tmp_path):
    """A learning rate that ruins the model after a few steps: what is left is the model before."""
    tokenizer, input_ids = text
    arguments = tiny.TRAINING | {"learning_rate": 0.3, "save_steps": 2, "lr_scheduler_type": "constant"}
    log = train(tiny.network(tokenizer), tokenizer, input_ids, tmp_path, seed=0, held_out=8, patience=2, **arguments)
    losses = held_out_losses(log)
    best = losses.index(min(losses))
    assert best == len(losses) - 3
    assert log[-1]["step"] == 2 * len(losses) < tiny.STEPS
    at_best = tiny.network(tokenizer)
    stopped = arguments | {"max_steps": 2 * (best + 1)}
    train(at_best, tokenizer, input_ids, tmp_path / "at best", seed=0, held_out=8, **stopped)
    tiny.assert_same_weights(load_model(tmp_path), at_best)


def test_held_out_blocks_are_not_trained_on(text, tmp_path):
    """Other text in their places changes the held-out loss, and no weight."""
    tokenizer, input_ids = text
    places = torch.linspace(0, len(input_ids) - 1, 3).long()
    changed = input_ids.clone()
    changed[places] = changed[places].flip(1)
    models, losses = [], []
    for name, ids in (("a", input_ids), ("b", changed)):
        models.append(tiny.network(tokenizer))
        arguments = tiny.TRAINING | {"max_steps": 5}
        losses.append(
            held_out_losses(train(models[-1], tokenizer, ids, tmp_path / name, seed=0, held_out=3, **arguments))
        )
    tiny.assert_same_weights(*models)
    assert losses[0] != losses[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"patience": 2}, "`held_out` must be at least 1 with `patience` 2"),
        ({"held_out": 9999}, "`held_out` must leave two of"),
    ],
)
def test_early_stopping_that_cannot_work_is_refused(text, tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        train(tiny.network(text[0]), *text, tmp_path, seed=0, **(tiny.TRAINING | options))


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
