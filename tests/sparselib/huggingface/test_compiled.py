"""A compiled model is one graph, which keeps to the restriction of the thread that runs it."""

import copy
import threading

import pytest
import torch
from models import HEADS, MODELS, SIZES, Case, diagonal, make
from torch._dynamo.testing import CompileCounter
from transformers import (
    AlbertConfig,
    AlbertModel,
    Gemma2Config,
    Gemma2Model,
    GptOssConfig,
    GptOssModel,
    ModernBertConfig,
    ModernBertModel,
    T5Config,
    T5EncoderModel,
)

from sparselib.control import AttentionControl
from sparselib.graphs import PredictedGraph
from sparselib.huggingface import use_attention
from sparselib.normalizers import Entmax
from sparselib.predictors import Distance

WINDOWED = {"head_dim": 8, "num_key_value_heads": 2, "sliding_window": 4}
#: Shared layers, a bias, a soft cap, sinks, and windows.
SCORED = {
    "albert": lambda: AlbertModel(AlbertConfig(**SIZES, embedding_size=32, num_hidden_groups=1)),
    "t5": lambda: T5EncoderModel(T5Config(vocab_size=50, d_model=32, d_kv=8, d_ff=32, num_layers=2, num_heads=HEADS)),
    "gemma2": lambda: Gemma2Model(Gemma2Config(**SIZES, **WINDOWED)),
    "gpt-oss": lambda: GptOssModel(GptOssConfig(**SIZES, **WINDOWED, num_local_experts=2, num_experts_per_tok=1)),
    "modernbert": lambda: ModernBertModel(ModernBertConfig(**SIZES, pad_token_id=0)),
}
REFUSAL = "a compiled model must not run while another thread is inside"


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def compiled(case: Case, backend="eager") -> Case:
    return case._replace(model=torch.compile(case.model, backend=backend, fullgraph=True))


@pytest.mark.parametrize("name", ["bert", "llama", "marian"])
def test_a_model_is_one_graph_with_and_without_a_restriction(name):
    case = make(name)
    control = use_attention(case.model)
    fast, free = compiled(case), case()
    torch.testing.assert_close(fast(), free)
    with control.restricted_to(diagonal):
        restricted = case()
        torch.testing.assert_close(fast(), restricted)
    assert not torch.allclose(restricted, free)
    torch.testing.assert_close(fast(), free)


@pytest.mark.parametrize("name", SCORED)
def test_other_scores_and_shared_layers_are_one_graph_too(name, monkeypatch):
    monkeypatch.setitem(MODELS, name, SCORED[name])
    case = make(name)
    control = use_attention(case.model)
    fast = compiled(case)
    for _ in range(2):  # layers with shared weights take turns in every call
        torch.testing.assert_close(fast(), case())
    with control.restricted_to(diagonal):
        torch.testing.assert_close(fast(), case())


@pytest.mark.parametrize(("name", "global_tokens"), [("bert", "first_last"), ("gpt2", "none")])
def test_a_predicted_graph_is_part_of_the_graph(name, global_tokens):
    case = make(name)
    control = use_attention(case.model)
    project = torch.nn.Linear(8, 4, bias=False)
    predictors = [Distance(2.0)] * control.layers
    graph = PredictedGraph([project] * control.layers, predictors, 3, global_tokens, causal=name == "gpt2")
    fast = compiled(case)
    with control.restricted_to(graph):
        torch.testing.assert_close(fast(), case())


def test_a_compiled_predicted_graph_refuses_padding_on_the_left():
    case = make("bert", padding="left")
    control = use_attention(case.model)
    fast = compiled(case)
    with control.restricted_to(PredictedGraph([lambda x: x] * 2, [Distance(2.0)] * 2)):
        with pytest.raises(RuntimeError, match="pad on the right"):
            fast()


def test_a_new_length_compiles_once_more_and_then_any_length_runs():
    case = make("bert")
    use_attention(case.model)
    counter = CompileCounter()
    fast = torch.compile(case.model, backend=counter, fullgraph=True)
    for length in (5, 6, 7, 8, 9):
        inputs = {name: x[:, :length].contiguous() for name, x in case.inputs.items()}
        torch.testing.assert_close(
            fast(**inputs).last_hidden_state, case.model(**inputs).last_hidden_state, atol=1e-5, rtol=1e-5
        )
    assert counter.frame_count <= 2


def test_a_restriction_compiles_once_however_often_it_is_entered():
    case = make("bert")
    control = use_attention(case.model)
    counter = CompileCounter()
    fast = case._replace(model=torch.compile(case.model, backend=counter, fullgraph=True))
    for _ in range(12):
        with control.restricted_to(diagonal):
            fast()
        fast()
    assert counter.frame_count == 2


def test_gradients_are_those_of_the_eager_model():
    case = make("roberta")
    control = use_attention(case.model, Entmax(1.3))
    with control.restricted_to(diagonal):
        for model in (case.model, compiled(case, "aot_eager").model):
            case.model.zero_grad()
            model(**case.inputs).last_hidden_state.square().sum().backward()
            # Compiled code gives parameters without effect a gradient of 0.
            gradients = [torch.zeros_like(x) if x.grad is None else x.grad.clone() for x in case.model.parameters()]
            if model is case.model:
                expected = gradients
    torch.testing.assert_close(gradients, expected, atol=1e-3, rtol=1e-4)


def test_another_threads_restriction_is_refused_and_ends_with_its_block():
    case = make("bert")
    control = use_attention(case.model)
    fast, free = compiled(case, "aot_eager"), case()
    errors = []

    def run():
        try:
            fast()
        except RuntimeError as error:
            errors.append(str(error))

    with control.restricted_to(diagonal):
        fast()
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert len(errors) == 1
    assert REFUSAL in errors[0]
    torch.testing.assert_close(fast(), free)


def test_a_copy_of_a_control_has_its_own_number():
    control = AttentionControl(layers=1)
    copied = copy.deepcopy(control)
    with copied.restricted_to(diagonal):
        assert control.last_block is None
        assert copied.last_block is copied.innermost_block
    assert copied.number != control.number
