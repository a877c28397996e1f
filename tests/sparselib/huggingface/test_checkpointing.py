"""A gradient checkpoint recomputes attention in the mode of its forward pass, or the recomputation is refused."""

import pytest
import torch
from models import MODELS, diagonal
from torch.utils.checkpoint import checkpoint
from transformers import BartConfig, BartModel, T5Config, T5Model

from sparselib.huggingface import use_attention
from sparselib.kernels import BlockMask

pytestmark = pytest.mark.filterwarnings("ignore:`gradient_checkpointing_:FutureWarning")

SIDES = {f"{side}_{key}": value for side in ("encoder", "decoder") for key, value in
         {"layers": 2, "attention_heads": 4, "ffn_dim": 32}.items()}  # fmt: skip
SPECIAL = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}
ARCHITECTURES = MODELS | {
    "bart": lambda: BartModel(BartConfig(vocab_size=50, d_model=32, max_position_embeddings=40, **SIDES, **SPECIAL)),
    "t5": lambda: T5Model(T5Config(vocab_size=50, d_model=32, d_kv=8, d_ff=32, num_layers=2, num_heads=4, **SPECIAL)),
}


def trained(name):
    """A model in training mode without dropout, and a function that runs it."""
    torch.manual_seed(0)
    model = ARCHITECTURES[name]()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        for key in ("dropout", "attention_dropout", "activation_dropout"):
            if isinstance(getattr(module, key, None), float):
                setattr(module, key, 0.0)
    ids = torch.randint(5, 45, (2, 9))

    def run(model=model):
        # Reentrant checkpoints need an input with a gradient.
        inputs = {"inputs_embeds": model.get_input_embeddings()(ids), "use_cache": False}
        if model.config.is_encoder_decoder:
            inputs["decoder_inputs_embeds"] = model.get_input_embeddings()(ids.flip(1))
        else:
            inputs["attention_mask"] = torch.ones_like(ids)
        return model(**inputs).last_hidden_state.square().sum()

    return model.train(), run


def gradients(model, loss):
    model.zero_grad()
    loss.backward()
    return {name: weight.grad.clone() for name, weight in model.named_parameters() if weight.grad is not None}


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for key, gradient in expected.items():
        torch.testing.assert_close(
            found[key], gradient, atol=1e-5, rtol=1e-4, msg=lambda text, key=key: f"{key}: {text}"
        )


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_checkpointing_enabled_at_any_time_leaves_gradients_unchanged(name, reentrant):
    model, run = trained(name)
    control = use_attention(model)
    options = {"use_reentrant": reentrant}
    free = gradients(model, run())
    with control.restricted_to(diagonal):
        expected = gradients(model, run())
    assert any((free[key] - expected[key]).abs().max() > 1e-2 for key in free)

    model.gradient_checkpointing_enable(options)
    with control.restricted_to(diagonal):
        before = run()
    assert_same(gradients(model, before), expected)
    model.gradient_checkpointing_disable()
    with control.restricted_to(diagonal):
        model.gradient_checkpointing_enable(options)
        inside = run()
    assert_same(gradients(model, inside), expected)
    model.gradient_checkpointing_disable()
    with control.restricted_to(diagonal):
        run()
        model.gradient_checkpointing_enable(options)
        between = run()
        model.gradient_checkpointing_enable(options)
        again = run()
    assert_same(gradients(model, between), expected)
    assert_same(gradients(model, again), expected)
    unrestricted = run()
    with control.restricted_to(diagonal):
        assert_same(gradients(model, unrestricted), free)


@pytest.mark.parametrize("name", ["bert", "llama"])
def test_blocks_are_visited_again_in_the_recomputation(name):
    def near(layer, q, k, lengths):
        return BlockMask.from_dense(torch.eye(5, dtype=torch.bool)[None, None], 2, 9)

    model, run = trained(name)
    control = use_attention(model)
    with control.visiting(near):
        expected = gradients(model, run())
        model.gradient_checkpointing_enable({"use_reentrant": False})
        loss = run()
    assert_same(gradients(model, loss), expected)


@pytest.mark.parametrize("reentrant", [False, True])
def test_interleaved_forward_passes_keep_their_own_modes(reentrant):
    model, run = trained("llama")
    control = use_attention(model)
    free = gradients(model, run())
    with control.restricted_to(diagonal):
        restricted = gradients(model, run())
    model.gradient_checkpointing_enable({"use_reentrant": reentrant})
    first = run()
    with control.restricted_to(diagonal):
        second = run()
    model.zero_grad()
    found = gradients(model, first + second)
    assert_same(found, {key: free[key] + restricted[key] for key in free})


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("name", ["bert", "llama"])
def test_other_checkpoints_recompute_the_only_mode_or_are_refused(name, reentrant, training):
    model, run = trained(name)
    model.train(training)
    control = use_attention(model)
    anchor = torch.ones((), requires_grad=True)

    def checkpointed():
        return checkpoint(lambda anchor: anchor * run(), anchor, use_reentrant=reentrant)

    observed = []
    with control.restricted_to(diagonal), control.observing(lambda call, mask: observed.append(call.layer)):
        expected, loss = gradients(model, run()), checkpointed()
    assert_same(gradients(model, loss), expected)
    assert observed == [0, 1, 0, 1]
    model.eval()
    with torch.no_grad():
        run()  # an evaluation adds no mode
    model.train(training)
    with control.restricted_to(diagonal):
        loss = checkpointed()
    assert_same(gradients(model, loss), expected)
    loss = checkpointed()
    with pytest.raises(ValueError, match=r"`torch\.utils\.checkpoint` must not recompute attention .* several modes"):
        loss.backward()


@pytest.mark.parametrize("inner", [False, True])
@pytest.mark.parametrize("outer", [False, True])
def test_nested_checkpoints_recompute_the_same_mode(outer, inner):
    model, run = trained("llama")
    control = use_attention(model)
    run()  # so that there are several modes
    anchor = torch.ones((), requires_grad=True)

    def restricted(anchor):
        with control.restricted_to(diagonal):
            return anchor * run()

    expected = gradients(model, restricted(anchor))
    model.gradient_checkpointing_enable({"use_reentrant": inner})
    loss = checkpoint(restricted, anchor, use_reentrant=outer)
    assert_same(gradients(model, loss), expected)
