"""Words generated one by one, from any cache, are those that are generated without one; under autocast too."""

import pytest
import torch
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MarianConfig,
    MarianMTModel,
    T5Config,
    T5ForConditionalGeneration,
)

from sparselib.forms import form
from sparselib.graphs import FormGraph, PredictedGraph
from sparselib.huggingface import sparsify, use_attention
from sparselib.predictors import Clustering, Distance, Quantization

SPECIAL = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}
SIDES = {
    f"{side}_{name}": value
    for side in ("encoder", "decoder")
    for name, value in {"layers": 2, "attention_heads": 4, "ffn_dim": 32}.items()
}
MODELS = {
    "gpt2": lambda: GPT2LMHeadModel(
        GPT2Config(vocab_size=50, n_positions=60, n_embd=32, n_layer=2, n_head=4, **SPECIAL)
    ),
    "llama": lambda: LlamaForCausalLM(
        LlamaConfig(
            vocab_size=50,
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            intermediate_size=32,
            **SPECIAL,
        )
    ),
    "marian": lambda: MarianMTModel(
        MarianConfig(
            vocab_size=50,
            d_model=32,
            max_position_embeddings=60,
            decoder_start_token_id=0,
            forced_eos_token_id=None,
            **SIDES,
            **SPECIAL,
        )
    ),
    "t5": lambda: T5ForConditionalGeneration(
        T5Config(
            vocab_size=50, d_model=32, d_kv=8, d_ff=32, num_layers=2, num_heads=4, decoder_start_token_id=0, **SPECIAL
        )
    ),
}
DECODERS = ("gpt2", "llama")


def make(name):
    torch.manual_seed(0)
    model = MODELS[name]().eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight), alpha=0.15)
    return model


def generated(model, *, beams=1, **settings):
    """Tokens and the scores that they were chosen by, after a prompt with padding on the left."""
    prompt = torch.arange(3, 17).view(2, 7)
    mask = torch.ones_like(prompt)
    mask[1, :3] = 0
    found = model.generate(
        prompt.masked_fill(mask == 0, 2),
        attention_mask=mask,
        max_new_tokens=8,
        min_new_tokens=8,
        num_beams=beams,
        do_sample=False,
        return_dict_in_generate=True,
        output_scores=True,
        **settings,
    )
    return found.sequences, torch.stack(found.scores)


def assert_the_same(found, expected):
    assert torch.equal(found[0], expected[0])
    torch.testing.assert_close(found[1], expected[1], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("cache", ["dynamic", "static"])
@pytest.mark.parametrize("name", MODELS)
def test_a_cache_changes_nothing(name, cache, beams):
    model = make(name)
    use_attention(model)
    expected = generated(model, beams=beams, use_cache=False)
    assert_the_same(generated(model, beams=beams, cache_implementation=cache), expected)


def graph_of(kind, control, heads=4):
    def project(x):
        return x[..., :4]

    centroids = torch.randn(heads, 3, 4, generator=torch.Generator().manual_seed(0))
    predictors = {"distance": Distance(2.0), "k-means": Clustering(centroids)}
    if kind == "window form":
        return FormGraph([form("Window", 4)] * control.layers, causal=True)
    return PredictedGraph([project] * control.layers, [predictors[kind]] * control.layers, window=3, causal=True)


@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("cache", ["dynamic", "static"])
@pytest.mark.parametrize("kind", ["distance", "k-means", "window form"])
@pytest.mark.parametrize("name", DECODERS)
def test_a_cache_changes_nothing_along_a_graph(name, kind, cache, beams):
    model = make(name)
    control = use_attention(model)
    free = generated(model, beams=beams, use_cache=False)
    with control.restricted_to(graph_of(kind, control)):
        expected = generated(model, beams=beams, use_cache=False)
        assert_the_same(generated(model, beams=beams, cache_implementation=cache), expected)
    assert not torch.equal(expected[1], free[1])


@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("cache", ["dynamic", "static"])
@pytest.mark.parametrize("name", DECODERS)
def test_a_cache_changes_nothing_in_a_sparsified_model(name, cache, beams):
    model = make(name)
    text = torch.randint(3, 17, (60, 1, 12), generator=torch.Generator().manual_seed(1))
    batches = [{"input_ids": ids, "attention_mask": torch.ones_like(ids)} for ids in text]
    result = sparsify(model, batches, recall=0.8, predictors=("kmeans", "window"))
    assert result.report.sparsity > 0.05
    free = generated(model, beams=beams, use_cache=False)
    with result:
        expected = generated(model, beams=beams, use_cache=False)
        assert_the_same(generated(model, beams=beams, cache_implementation=cache), expected)
    assert not torch.equal(expected[1], free[1])
    with result.to_blocks(1):
        assert_the_same(generated(model, beams=beams, use_cache=False), expected)
        assert_the_same(generated(model, beams=beams, cache_implementation=cache), expected)
    with result.to_blocks(32):  # one block
        assert_the_same(generated(model, beams=beams, cache_implementation=cache), free)


def test_a_predictor_of_prefixes_refuses_a_cache_without_queries():
    """It took the last row of what it predicted on one query."""
    model = make("gpt2")
    control = use_attention(model)
    graph = PredictedGraph([lambda x: x[..., :4]] * 2, [Quantization(2)] * 2, causal=True)
    ids = torch.arange(3, 12)[None]
    with control.restricted_to(graph), torch.no_grad():
        model(ids)
        with pytest.raises(ValueError, match=r"`prefix` .* for Quantization, got 1; decode without a cache"):
            model.generate(ids, max_new_tokens=3, do_sample=False)
        model.generate(ids, max_new_tokens=3, do_sample=False, use_cache=False)


def test_a_graph_that_looks_at_the_start_of_a_sentence_refuses_padding_on_the_left():
    model = make("gpt2")
    control = use_attention(model)
    graph = PredictedGraph([lambda x: x] * 2, [Distance(1.0)] * 2, global_tokens="first", causal=True)
    with control.restricted_to(graph), pytest.raises(ValueError, match="padding on the left"):
        generated(model)


@pytest.mark.parametrize("name", MODELS)
def test_autocast_is_close_to_single_precision(name):
    model = make(name)
    control = use_attention(model)
    ids = torch.arange(3, 17).view(2, 7)
    inputs = {"input_ids": ids} | ({"decoder_input_ids": ids} if model.config.is_encoder_decoder else {})
    graphs = []
    with torch.no_grad():
        expected = model(**inputs).logits
        with torch.autocast("cpu", torch.bfloat16), control.observing(lambda call, mask: graphs.append(call.gold())):
            found = model(**inputs).logits
    assert not torch.equal(found.float(), expected)  # or nothing was in half precision
    assert len(graphs) == control.layers
    assert (found.float() - expected).abs().max() < 0.1 * expected.abs().max()
