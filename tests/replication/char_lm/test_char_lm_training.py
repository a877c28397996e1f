"""Training that resumes exactly, and learns; evaluation that reads everything; files of models; Table 4's cells."""

import math
import random
from dataclasses import replace
from itertools import pairwise

import pandas as pd
import pytest
import torch
from characters import SPAN, XL, corpus, some_text, trained
from torch.nn.functional import cross_entropy

from replication.char_lm import training
from replication.char_lm.data import Alphabet, Stream, cut
from replication.char_lm.evaluation import baselines, evaluate
from replication.char_lm.models import load_model, save_model
from replication.char_lm.training import Recipe, train
from replication.files.storage import FormatError

ARTICLES, VERBS = ["the", "a", "this"], ["sees", "hears", "greets", "finds", "calls", "follows"]
NOUNS = ["dog", "owl", "fox", "poet", "queen", "sailor", "king", "prophet", "whale", "servant"]
RECIPE = Recipe(steps=14, length=10, learning_rate=0.01, warmup_steps=3, clip_norm=1.0, log_every=4)


def train_small(folder, settings, seed=0):
    alphabet, ids = corpus(2)
    return train(settings, alphabet, cut(ids[:241], 4, 10), cut(ids[241:400], 2, 10), RECIPE, seed, folder)


def interrupt(folder, settings, monkeypatch, at_step, seed=0):
    real = training.step

    def step(progress, *arguments):
        if progress.step == at_step:
            raise KeyboardInterrupt
        return real(progress, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(training, "step", step)
        with pytest.raises(KeyboardInterrupt):
            train_small(folder, settings, seed)
    assert not (folder / "model.safetensors").exists()


@pytest.mark.parametrize("settings", [XL | {"dropout": 0.2}, SPAN | {"dropout": 0.2, "top_k": 3}])
def test_an_interrupted_run_goes_on_as_if_nothing_had_happened(tmp_path, monkeypatch, settings):
    """From a checkpoint at step 8, in the middle of the second pass over the text's six segments."""
    interrupt(tmp_path / "cut", settings, monkeypatch, at_step=11)
    resumed, log = train_small(tmp_path / "cut", settings)
    whole, expected = train_small(tmp_path / "whole", settings)
    pd.testing.assert_frame_equal(log, expected)
    assert list(log["step"]) == [4, 8, 12, 14]
    for name, parameter in whole.state_dict().items():
        assert torch.equal(parameter, resumed.state_dict()[name]), name
    assert not (tmp_path / "cut" / "checkpoint.safetensors").exists()


def test_products_are_as_precise_as_the_recipe_says_and_no_longer(tmp_path, monkeypatch):
    seen, real = [], training.step
    monkeypatch.setattr(
        training, "step", lambda *arguments: seen.append(torch.get_float32_matmul_precision()) or real(*arguments)
    )
    monkeypatch.setattr(f"{__name__}.RECIPE", replace(RECIPE, matmul_precision="medium"))
    train_small(tmp_path, XL)
    assert (set(seen), torch.get_float32_matmul_precision()) == ({"medium"}, "highest")


def test_a_checkpoint_of_other_settings_is_not_gone_on_from(tmp_path, monkeypatch):
    interrupt(tmp_path / "cut", XL, monkeypatch, at_step=11, seed=1)
    resumed, _ = train_small(tmp_path / "cut", XL, seed=0)
    whole, _ = train_small(tmp_path / "whole", XL, seed=0)
    assert torch.equal(resumed.output.weight, whole.output.weight)


def test_the_memory_starts_anew_with_every_pass_over_the_text(tmp_path, monkeypatch):
    real, begun = training.step, []

    def step(progress, *arguments):
        if progress.memory is None:
            begun.append(progress.step)
        return real(progress, *arguments)

    monkeypatch.setattr(training, "step", step)
    train_small(tmp_path, XL)
    assert begun == [0, 6, 12]


def test_the_log_has_spans_beside_bits(tmp_path):
    _, log = train_small(tmp_path, SPAN)
    assert list(log) == ["step", "train_bits", "valid_bits", "attended_positions", "mean_span"]
    assert log.notna().all(axis=None)


def test_training_leaves_the_global_generator_alone(tmp_path):
    state = torch.get_rng_state()
    train_small(tmp_path, XL | {"dropout": 0.2})
    assert torch.equal(state, torch.get_rng_state())


def test_the_rate_warms_up_and_falls_to_nothing():
    rates = [RECIPE.rate(step) for step in range(15)]
    assert rates[:4] == pytest.approx([0.01 / 3, 0.02 / 3, 0.01, 0.01])
    assert all(before > after for before, after in pairwise(rates[3:]))
    assert rates[14] == pytest.approx(0)


@pytest.mark.parametrize("name", ["steps", "length", "log_every"])
def test_recipes_out_of_range_are_named(name):
    with pytest.raises(ValueError, match=f"`{name}` must be at least 1"):
        Recipe(**(vars(RECIPE) | {name: 0}))


def test_bits_are_those_of_one_long_sequence():
    """With a memory that holds everything, and a last row that is shorter than the others."""
    model, ids = trained(XL | {"memory_length": 100}), corpus(2)[1][:100]
    inputs, targets = ids[None, :-1].long(), ids[None, 1:].long()
    with torch.no_grad():
        nats = cross_entropy(model(inputs)[0].mT, targets).item()
    assert evaluate(model, cut(ids, 1, 16), 16).bits_per_character == pytest.approx(nats / math.log(2))


def test_every_row_has_its_own_memory_and_missing_targets_do_not_count():
    model, ids = trained(XL), some_text(38)
    rows = [evaluate(model, cut(row, 1, 9), 9).bits_per_character for row in ids]
    targets = ids[:, 1:].clone()
    both = Stream(ids[:, :-1], targets)
    assert evaluate(model, both, 9).bits_per_character == pytest.approx(sum(rows) / 2)
    targets[1] = -100
    assert evaluate(model, both, 9).bits_per_character == pytest.approx(rows[0])


def test_evaluation_leaves_the_mode_as_it_was():
    model = trained(XL).train()
    evaluate(model, cut(corpus(2)[1][:50], 1, 10), 10)
    assert model.training


def test_a_model_and_its_alphabet_survive_their_file(tmp_path):
    alphabet, model = corpus(2)[0], trained(SPAN | {"top_k": 3}).float()
    save_model(tmp_path / "model.safetensors", model, SPAN | {"top_k": 3}, alphabet)
    loaded, symbols = load_model(tmp_path / "model.safetensors")
    assert symbols == alphabet
    ids = some_text(20)
    with torch.no_grad():
        assert torch.equal(loaded.cpu()(ids)[0], model(ids)[0])


def test_a_truncated_model_is_named(tmp_path):
    path = tmp_path / "model.safetensors"
    save_model(path, trained(XL), XL, Alphabet(b"ab"))
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(FormatError, match="truncated"):
        load_model(path)


@pytest.mark.parametrize("settings", [XL, SPAN | {"top_k": 8, "initial_span": 0.3}])
def test_tiny_models_beat_unigrams_and_bigrams(tmp_path, settings):
    """On other sentences than those they are trained on."""
    words = random.Random(0)
    sentences = [" ".join([*map(words.choice, (ARTICLES, NOUNS, VERBS, ARTICLES, NOUNS)), "."]) for _ in range(9000)]
    alphabet = Alphabet.of(content := "\n".join(sentences).encode())
    ids = alphabet.encode(content)
    text, unseen = ids[:-4000], ids[-4000:]
    recipe = Recipe(steps=260, length=32, learning_rate=0.008, warmup_steps=20, clip_norm=1.0, log_every=260)
    wider = settings | {"dimension": 48, "heads": 4, "inner": 96}
    _, log = train(wider, alphabet, cut(text, 12, 32), cut(unseen, 4, 32), recipe, 0, tmp_path)
    beaten = baselines(text, unseen, len(alphabet))
    assert beaten["interpolated bigram"] < beaten["unigram"]
    assert log["valid_bits"].iloc[-1] < beaten["interpolated bigram"] - 0.3
