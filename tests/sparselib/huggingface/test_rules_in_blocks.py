"""Windows, soft caps, biases and padding on the left inside visited blocks, against dense attention over the same pairs."""

from dataclasses import replace

import pytest
import torch
from models import make
from test_cross_attention import pairs_of_some_blocks, some_blocks
from test_huggingface_scores import GROUPED, MODELS, TINY
from transformers import Gemma3TextConfig, Gemma3TextModel, ModernBertConfig, ModernBertModel

from sparselib.huggingface import use_attention
from sparselib.kernels import BlockMask
from sparselib.normalizers import Entmax

IDS = {f"{name}_token_id": number for number, name in enumerate(("pad", "bos", "eos", "cls", "sep"))}
WINDOWED = {
    "ModernBERT": lambda: ModernBertModel(
        ModernBertConfig(**TINY, **IDS, local_attention=4, global_attn_every_n_layers=2)
    ),
    "Gemma 3: a window": lambda: Gemma3TextModel(
        Gemma3TextConfig(**GROUPED, head_dim=8, sliding_window=3, layer_types=["sliding_attention", "full_attention"])
    ),
}
ALL = {name: build for name, build in MODELS.items() if "gpt-oss" not in name} | WINDOWED
LENGTH = 12


def case(build, padding, dtype=torch.float64):
    """Return a model far from uniform attention and a batch with a padded sentence."""
    torch.manual_seed(0)
    model = build().eval().to(dtype)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight), alpha=0.3)
    ids = torch.arange(2 * LENGTH).view(2, -1) % 40 + 5
    real = torch.arange(LENGTH) < torch.tensor([[LENGTH], [7]])
    real = real.flip(1) if padding == "left" else real
    inputs = {"input_ids": ids, "attention_mask": real.long()}
    if model.config.is_encoder_decoder:
        return model, inputs | {"decoder_input_ids": ids}, torch.ones_like(real)
    return model, inputs, real


def hidden(model, inputs, real):
    with torch.no_grad():
        return model(**inputs).last_hidden_state[real]


def all_blocks(layer, q, k, lengths):
    blocks = torch.ones(1, 1, -(-q.shape[2] // 4), -(-k.shape[2] // 4), dtype=torch.bool)
    return BlockMask.from_dense(blocks, 4, (q.shape[2], k.shape[2]))


@pytest.mark.parametrize(("padding", "alpha"), [("right", 1.5), ("left", 1.5), ("left", 1)])
@pytest.mark.parametrize("name", ALL)
def test_visited_blocks_are_dense_attention_over_their_pairs(name, padding, alpha):
    model, *batch = case(ALL[name], padding)
    control = use_attention(model, Entmax(alpha))
    dense = hidden(model, *batch)
    with control.restricted_to(lambda call: pairs_of_some_blocks(call) & call.visible):
        restricted = hidden(model, *batch)
    assert (restricted - dense).abs().max() > 1e-2
    for blocks, expected in ((all_blocks, dense), (lambda *_: None, dense), (some_blocks, restricted)):
        with control.visiting(blocks):
            torch.testing.assert_close(hidden(model, *batch), expected, atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("name", ALL)
def test_in_single_precision(name):
    model, *batch = case(ALL[name], "left", torch.float32)
    control = use_attention(model)
    dense = hidden(model, *batch)
    with control.visiting(all_blocks):
        assert (hidden(model, *batch) - dense).abs().max() < 1e-5 * dense.abs().max()


@pytest.mark.parametrize("name", ["T5: a bias of positions, and no scale", "Gemma 2: a soft cap", "ModernBERT"])
def test_models_learn_as_with_dense_attention(name):
    """T5's bias is a parameter that only its score rule reads."""
    model, inputs, real = case(ALL[name], "right")
    control = use_attention(model)

    def gradients():
        model.zero_grad()
        model(**inputs).last_hidden_state[real].square().sum().backward()
        return {name: x.grad for name, x in model.named_parameters() if x.grad is not None}

    expected = gradients()
    with control.visiting(all_blocks):
        found = gradients()
    assert any("relative_attention_bias" in key for key in expected) == (name[:2] == "T5")
    torch.testing.assert_close(found, expected, atol=1e-7, rtol=1e-7)


@pytest.mark.parametrize(("padding", "expected"), [("right", [LENGTH, 7]), ("left", None)])
@pytest.mark.parametrize("name", ["llama", *WINDOWED])
def test_block_graphs_get_the_lengths_of_padding_on_the_right(name, padding, expected):
    model, *batch = case(WINDOWED[name] if name in WINDOWED else lambda: make(name).model, padding)
    control, seen = use_attention(model), []
    with control.visiting(lambda layer, q, k, lengths: seen.append(lengths)):
        hidden(model, *batch)
    assert [None if lengths is None else lengths.tolist() for lengths in seen] == [expected] * control.layers


def test_a_step_with_a_cache_is_the_last_row_of_all_steps():
    model, inputs, _ = case(WINDOWED["Gemma 3: a window"], "left")
    control = use_attention(model)
    with torch.no_grad(), control.visiting(lambda *_: None):
        whole = model(**inputs).last_hidden_state
        first = {"input_ids": inputs["input_ids"][:, :-1], "attention_mask": inputs["attention_mask"][:, :-1]}
        cache = model(**first, use_cache=True).past_key_values
        step = model(inputs["input_ids"][:, -1:], attention_mask=inputs["attention_mask"], past_key_values=cache)
    torch.testing.assert_close(step.last_hidden_state, whole[:, -1:], atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("name", ["llama", "marian"])
def test_a_rule_of_the_block_mask_holds_in_self_and_cross_attention(name):
    model, *batch = case(lambda: make(name).model, "right")
    control = use_attention(model)

    def ruled(*arguments):
        return replace(all_blocks(*arguments), mask_mod=lambda b, h, i, j: (i - j) % 3 < 2 - h % 2 + b)

    def pairs(call):
        b, h, i, j = torch.meshgrid(*(torch.arange(n) for n in (*call.q.shape[:3], call.k.shape[2])), indexing="ij")
        return ((i - j) % 3 < 2 - h % 2 + b) & call.visible

    with control.restricted_to(pairs):
        expected = hidden(model, *batch)
    with control.visiting(ruled):
        torch.testing.assert_close(hidden(model, *batch), expected, atol=1e-9, rtol=1e-9)


def test_sinks_are_refused():
    model, *batch = case(MODELS["gpt-oss: sinks"], "right")
    control = use_attention(model)
    message = r"`s_aux` of GptOssAttention must be None for block-sparse attention.*use `restricted_to\(\)`"
    with control.visiting(all_blocks), pytest.raises(ValueError, match=message):
        hidden(model, *batch)
