"""A model under ``torch.func`` and ``torch.vmap``: gradients of its parameters, and one sequence at a time."""

from contextlib import nullcontext

import pytest
import torch
from models import diagonal, make

from sparselib.huggingface import use_attention


def loss(model, inputs, parameters=None):
    if parameters is None:
        return model(**inputs).last_hidden_state.square().sum()
    return torch.func.functional_call(model, parameters, kwargs=inputs).last_hidden_state.square().sum()


@pytest.mark.parametrize("name", ["bert", "llama", "marian"])
@pytest.mark.parametrize("restricted", [False, True])
def test_func_has_the_gradients_of_autograd(name, restricted):
    model, inputs = make(name)
    control = use_attention(model)
    parameters = {name: parameter.detach() for name, parameter in model.named_parameters()}
    with control.restricted_to(diagonal) if restricted else nullcontext():
        found = torch.func.grad(lambda p: loss(model, inputs, p))(parameters)
        loss(model, inputs).backward()
    largest = max(float(x.grad.abs().max()) for x in model.parameters() if x.grad is not None)  # up to 250
    for name, parameter in model.named_parameters():
        expected = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        # Autograd runs a kernel that torch.func cannot, so both round differently.
        torch.testing.assert_close(found[name], expected, rtol=1e-4, atol=2e-6 * largest)


@pytest.mark.parametrize("name", ["bert", "llama"])
def test_vmap_maps_sequences(name):
    model, inputs = make(name)
    control = use_attention(model)
    tokens = inputs["input_ids"]

    def hidden(row):
        return model(input_ids=row[None]).last_hidden_state[0]

    with torch.no_grad(), control.restricted_to(diagonal):
        torch.testing.assert_close(torch.vmap(hidden)(tokens), model(input_ids=tokens).last_hidden_state)


def test_visited_blocks_refuse_transformations():
    model, inputs = make("bert")
    control = use_attention(model)
    parameters = {name: parameter.detach() for name, parameter in model.named_parameters()}
    with (
        control.visiting(lambda layer, q, k, lengths: None),
        pytest.raises(NotImplementedError, match=r"does not run under torch\.vmap and torch\.func"),
    ):
        torch.func.grad(lambda p: loss(model, inputs, p))(parameters)
