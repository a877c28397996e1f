"""Models under `use_attention` run the support kernel wherever nothing needs weights, with the results of the dense form."""

from functools import partial

import pytest
import torch
from models import MODELS, make
from torch.utils.checkpoint import checkpoint

from sparselib import Entmax
from sparselib.control import attention_control
from sparselib.dense_attention import attention_weights
from sparselib.huggingface import use_attention
from sparselib.kernels import support, support_library

pytestmark = pytest.mark.skipif(
    support_library.library() is None, reason="the support backend was not compiled: no C++ compiler at installation"
)


@pytest.fixture
def calls(monkeypatch):
    """Whether each forward pass of the support kernel keeps lists for a backward pass."""
    found, forward = [], support.forward
    monkeypatch.setattr(support, "forward", lambda *x, **rules: found.append(rules["keep"]) or forward(*x, **rules))
    return found


def gradients(case, **options):
    case.model.zero_grad()
    output = case.model(**case.inputs, **options).last_hidden_state
    output.square().mean().backward()
    return [output.detach(), *(x.grad.clone() for x in case.model.parameters() if x.grad is not None)]


def assert_close(results, expected):
    """Compare the output, then gradients by the size of the largest one, because a key's bias has a gradient of 0."""
    torch.testing.assert_close(results[0], expected[0], rtol=1e-4, atol=2e-5)
    largest = max(float(x.abs().max()) for x in expected[1:])
    for result, other in zip(results[1:], expected[1:], strict=True):
        torch.testing.assert_close(result, other, rtol=1e-4, atol=2e-6 * largest)


def dense_gradients(case, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(attention_control, "has_kernel", lambda *_: False)
        return gradients(case)


@pytest.mark.parametrize("alpha", [1.5, 2])
@pytest.mark.parametrize("name", MODELS)
def test_training_equals_the_dense_form(name, alpha, calls, monkeypatch):
    case = make(name)
    layers = use_attention(case.model, Entmax(alpha)).layers
    expected = dense_gradients(case, monkeypatch)
    assert not calls
    assert_close(gradients(case), expected)
    assert calls == [True] * layers


@pytest.mark.parametrize("name", MODELS)
def test_evaluation_under_graphs_equals_the_dense_form(name, calls, monkeypatch):
    case = make(name)
    control = use_attention(case.model)
    seen = []

    def graph(call):
        return (
            call.gold().int().cumsum(-1) % 2
        ).bool() | ~call.visible  # another graph, with empty rows and hidden pairs

    def run():
        with control.restricted_to(graph), control.observing(lambda call, mask: seen.append(mask)):
            return case()

    with monkeypatch.context() as patch:
        patch.setattr(attention_control, "has_kernel", lambda *_: False)
        expected = run()
    assert not calls
    torch.testing.assert_close(run(), expected, rtol=1e-4, atol=2e-5)
    assert calls == [False] * control.layers
    for one, other in zip(seen[: control.layers], seen[control.layers :], strict=True):
        assert (one == other).double().mean() > 0.99


@pytest.mark.parametrize("name", MODELS)
def test_weights_are_computed_on_request(name, calls):
    case = make(name)
    control = use_attention(case.model)
    found = case.attentions()
    assert len(found) == control.layers
    assert not calls
    case()
    assert len(calls) == control.layers


def test_dropout_of_weights_needs_weights(calls):
    case = make("bert")
    use_attention(case.model)
    for layer in case.model.encoder.layer:
        layer.attention.self.dropout.p = 0.5
    case.model.train()(**case.inputs)
    assert not calls
    case.model.eval()(**case.inputs)
    assert len(calls) == 2


def without_dropout(case):
    for module in case.model.train().modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    case.model.enable_input_require_grads()  # reentrant checkpoints need an input with a gradient
    return case


@pytest.mark.filterwarnings("ignore:`gradient_checkpointing_:FutureWarning")
@pytest.mark.parametrize("name", ["roberta", "gpt2", "llama"])
@pytest.mark.parametrize("requested", [False, True])
@pytest.mark.parametrize("reentrant", [False, True])
def test_a_checkpoint_recomputes_what_its_forward_pass_computed(reentrant, requested, name, calls):
    case = without_dropout(make(name))
    case.model.config.use_cache = False
    layers = use_attention(case.model).layers
    expected = gradients(case)
    assert calls == [True] * layers
    calls.clear()
    case.model.gradient_checkpointing_enable({"use_reentrant": reentrant})
    assert_close(gradients(case, output_attentions=requested), expected)
    assert len(calls) == (0 if requested else 2 * layers)


def test_a_checkpoint_of_a_single_layer_recomputes_the_kernel(calls):
    case = without_dropout(make("llama"))
    case.model.config.use_cache = False
    layers = use_attention(case.model).layers
    expected = gradients(case)
    calls.clear()
    layer = case.model.layers[1]
    layer.forward = partial(checkpoint, layer.forward, use_reentrant=False)
    assert_close(gradients(case), expected)
    assert len(calls) == layers + 1


def test_layers_of_other_normalisers_stay_dense(calls):
    case = make("bert")
    control = use_attention(case.model, Entmax(2.5))
    case()
    assert not calls
    q = torch.randn(1, 4, 9, 8)
    expected = attention_weights(q, q, normalizer=Entmax(2.5)) @ q
    torch.testing.assert_close(control.output(0, q, q, q, None), expected)
