"""A control acts on its model, or says that it does not: copies, second calls, shared layers, layers that run again."""

import copy
import gc

import pytest
import torch
from models import diagonal, make
from torch.utils.checkpoint import checkpoint
from transformers import AlbertConfig, AlbertModel, GPT2Config, GPT2Model, LlamaConfig, LlamaModel

from sparselib.huggingface import use_attention


def test_a_control_that_a_second_call_replaced_refuses_to_be_used():
    case = make("bert")
    first = use_attention(case.model)
    second = use_attention(case.model)
    with pytest.raises(ValueError, match="use_attention gave the model another one"), first.restricted_to(diagonal):
        pass
    free = case()
    with second.restricted_to(diagonal):
        assert not torch.equal(case(), free)


def test_a_control_whose_model_was_set_to_other_attention_refuses_to_be_used():
    case = make("bert")
    control = use_attention(case.model)
    case.model.set_attn_implementation("sdpa")
    with pytest.raises(ValueError, match="the model's was set to 'sdpa'"), control.restricted_to(diagonal):
        pass


def test_a_control_whose_model_is_gone_refuses_to_be_used():
    case = make("bert")
    control = use_attention(case.model)
    del case
    gc.collect()
    with pytest.raises(ValueError, match="its model was deleted"), control.restricted_to(diagonal):
        pass


def test_a_control_acts_on_copies_of_its_model_too():
    case = make("bert")
    control = use_attention(case.model)
    twin = case._replace(model=copy.deepcopy(case.model))
    free = case()
    torch.testing.assert_close(twin(), free)
    with control.restricted_to(diagonal):
        restricted = case()
        torch.testing.assert_close(twin(), restricted)
    assert not torch.equal(restricted, free)


def test_a_graph_that_asks_for_scores_without_gradients_leaves_the_layer_its_own():
    """Restricted to its own graph a model is the model itself, with its gradients (Proposition 1)."""

    def gold(call):
        with torch.no_grad():
            assert call.scores.shape == (*call.q.shape[:3], call.k.shape[2])
            return call.gold()

    gradients = {}
    for graph in (None, gold):
        case = make("bert")
        with use_attention(case.model).restricted_to(graph):
            case.model(**case.inputs).last_hidden_state.square().sum().backward()
        gradients[graph] = {
            name: weight.grad for name, weight in case.model.named_parameters() if weight.grad is not None
        }
    assert any("query" in name and gradient.abs().max() > 0 for name, gradient in gradients[None].items())
    torch.testing.assert_close(gradients[gold], gradients[None], atol=1e-4, rtol=1e-4)


def test_shared_layers_are_as_many_as_their_calls():
    """ALBERT has one set of weights for all layers."""
    torch.manual_seed(0)
    sizes = {"vocab_size": 50, "embedding_size": 16, "hidden_size": 32, "intermediate_size": 32}
    model = AlbertModel(AlbertConfig(**sizes, num_attention_heads=4, num_hidden_layers=3)).eval()
    control = use_attention(model)
    assert control.layers == 3
    seen, ids = [], torch.arange(10)[None]

    def interrupted(call, mask):
        seen.append(call.layer)
        if len(seen) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), control.observing(interrupted):
        model(ids)
    for _ in range(2):
        with control.observing(lambda call, mask: seen.append(call.layer)):
            model(ids)
    assert seen == [0, 1, 0, 1, 2, 0, 1, 2]


MODELS = {
    "gpt2": lambda: GPT2Model(GPT2Config(vocab_size=50, n_positions=40, n_embd=32, n_layer=3, n_head=4)),
    "llama": lambda: LlamaModel(
        LlamaConfig(vocab_size=50, hidden_size=32, num_hidden_layers=3, num_attention_heads=4, intermediate_size=32)
    ),
}


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_gradients_of_checkpointed_layers_are_those_of_the_block_that_they_ran_in(name, reentrant):
    """The backward pass runs them again, after the block: they attended freely then, and 49.6 became 57.4."""
    torch.manual_seed(0)
    model = MODELS[name]()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    model.train()
    control = use_attention(model)
    ids = torch.randint(5, 45, (2, 12))

    def gradients():
        model.zero_grad()
        calls = []
        with control.restricted_to(diagonal), control.observing(lambda call, mask: calls.append(call.layer)):
            hidden = model(inputs_embeds=model.get_input_embeddings()(ids), use_cache=False).last_hidden_state
        hidden.square().sum().backward()
        assert calls == [0, 1, 2]  # what runs again is not shown again
        return {name: weight.grad.clone() for name, weight in model.named_parameters() if weight.grad is not None}

    expected = gradients()
    model.gradient_checkpointing_enable({"use_reentrant": reentrant})
    found = gradients()
    assert found.keys() == expected.keys()
    for key, gradient in expected.items():
        torch.testing.assert_close(found[key], gradient, msg=lambda text, key=key: f"{key}: {text}")


def test_shared_layers_that_run_again_are_refused():
    torch.manual_seed(0)
    sizes = {"vocab_size": 50, "embedding_size": 16, "hidden_size": 32, "intermediate_size": 32}
    model = AlbertModel(AlbertConfig(**sizes, num_attention_heads=4, num_hidden_layers=2))
    use_attention(model)
    again = checkpoint(lambda x: model(inputs_embeds=x).last_hidden_state, torch.randn(1, 9, 16), use_reentrant=False)
    with pytest.raises(ValueError, match="must not use gradient checkpointing, because 2 layers share"):
        again.sum().backward()
