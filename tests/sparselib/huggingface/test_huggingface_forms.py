"""Attention forms inside Hugging Face models: the masks that layers use, padding on either side, decoding with a cache."""

import pytest
import torch
from models import LENGTH, PADDED, make

from sparselib import masks
from sparselib.control import LayerCall
from sparselib.forms import FORMS, factorised, form
from sparselib.graphs import FormGraph
from sparselib.huggingface import use_attention

CAUSAL = {"roberta": False, "gpt2": True}


def graph_of(name: str, model: str, layers: int) -> FormGraph:
    return FormGraph([form(name, 4, seed=layer) for layer in range(layers)], CAUSAL[model])


@pytest.mark.parametrize("model", CAUSAL)
@pytest.mark.parametrize("name", FORMS)
def test_layers_attend_where_the_form_predicts(model, name):
    case = make(model)
    control = use_attention(case.model, lambda scores: scores.softmax(-1))
    graph = graph_of(name, model, control.layers)
    seen = []
    with control.restricted_to(graph), control.observing(lambda call, mask: seen.append((call.q, call.k, mask))):
        weights = case.attentions()
    for layer, (q, k, mask) in enumerate(seen):
        lengths = torch.tensor([LENGTH, PADDED])
        expected = graph.forms[layer].predict(q, k, lengths=lengths, causal=CAUSAL[model])
        for row, length in enumerate(lengths):
            assert torch.equal(mask.expand_as(expected)[row, :, :length], expected[row, :, :length])
            assert torch.equal(weights[layer][row, :, :length] > 0, expected[row, :, :length])


@pytest.mark.parametrize("name", FORMS)
def test_padding_on_the_left_changes_nothing(name):
    case = make("gpt2", padding="left")
    ids, mask = case.inputs["input_ids"][:, -PADDED:], torch.zeros(2, LENGTH, dtype=torch.long)
    mask[:, -PADDED:] = 1
    control = use_attention(case.model)
    with control.restricted_to(graph_of(name, "gpt2", control.layers)), torch.no_grad():
        alone = case.model(ids).last_hidden_state
        padded = case.model(
            torch.nn.functional.pad(ids, (LENGTH - PADDED, 0), value=7),
            attention_mask=mask,
            position_ids=(mask.cumsum(-1) - 1).clamp(min=0),
        ).last_hidden_state
    torch.testing.assert_close(padded[:, -PADDED:], alone, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", [*FORMS, *masks.HEAD_COMBINATIONS])
def test_decoding_word_by_word_with_a_cache_is_decoding_at_once(name):
    case = make("gpt2")
    control = use_attention(case.model)
    ids, cache, steps = case.inputs["input_ids"], None, []
    if name in FORMS:
        graph = graph_of(name, "gpt2", control.layers)
    else:
        layers = range(control.layers)
        graph = FormGraph([factorised("strided", 3, heads=name, layer=layer) for layer in layers], causal=True)
    with control.restricted_to(graph), torch.no_grad():
        whole = case.model(ids).last_hidden_state
        for position in range(LENGTH):
            step = case.model(ids[:, position : position + 1], past_key_values=cache, use_cache=True)
            cache = step.past_key_values
            steps.append(step.last_hidden_state)
    torch.testing.assert_close(torch.cat(steps, dim=1), whole, atol=1e-5, rtol=1e-5)


def test_a_form_without_cross_attention_says_so():
    graph = FormGraph([form("Window", 2)], causal=False)
    q, k = torch.zeros(1, 1, 5, 4), torch.zeros(1, 1, 3, 4)
    with pytest.raises(ValueError, match=r"`forms\[0\]` must allow cross-attention .* got Window"):
        graph(LayerCall(0, q, k, torch.ones(1, 1, 5, 3, dtype=torch.bool)))
