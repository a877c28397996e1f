"""Our attention inside Hugging Face models against their own eager attention, and predicted graphs inside them."""

import entmax as reference
import pytest
import torch
from models import CAUSAL, GPT2, HEADS, LENGTH, MODELS, Case, diagonal, gold, make
from torch import Tensor
from transformers import (
    GPT2Config,
    GPT2Model,
)

from sparselib.control import attention_control
from sparselib.dense_attention import attention_weights, gold_graph
from sparselib.huggingface import use_attention
from sparselib.kernels import BlockMask
from sparselib.masks.visible import described
from sparselib.normalizers import Entmax, alpha_of, entmax15


@pytest.fixture(params=MODELS)
def case(request) -> Case:
    return make(request.param)


def by_package(scores: Tensor) -> Tensor:
    return reference.entmax15(scores, dim=-1)


@pytest.mark.parametrize(("name", "padding"), [*((name, "right") for name in MODELS), *((n, "left") for n in CAUSAL)])
def test_softmax_is_the_models_own_eager_attention(name, padding):
    case = make(name, padding)
    own = case()
    control = use_attention(case.model, lambda scores: scores.softmax(-1))
    assert control.layers == (6 if name == "marian" else 2)
    torch.testing.assert_close(case(), own, atol=1e-5, rtol=1e-5)


def test_the_models_own_scale_is_kept():
    torch.manual_seed(0)
    model = GPT2Model(GPT2Config(vocab_size=50, n_positions=40, **GPT2, scale_attn_by_inverse_layer_idx=True)).eval()
    model.set_attn_implementation("eager")
    ids = torch.randint(5, 50, (2, LENGTH))
    case = Case(model, {"input_ids": ids, "attention_mask": torch.ones_like(ids)})
    own = case()
    use_attention(model, lambda scores: scores.softmax(-1))
    torch.testing.assert_close(case(), own, atol=1e-5, rtol=1e-5)


def test_entmax_weights_are_the_entmax_packages(case):
    own = case()
    control = use_attention(case.model)
    expected = []

    def observe(call, mask):
        assert call.layer == len(expected)
        expected.append(attention_weights(call.q, call.k, mask, normalizer=by_package))

    with control.observing(observe):
        found = case.attentions()
    for weights, wanted in zip(found, expected, strict=True):
        torch.testing.assert_close(weights, wanted, atol=1e-5, rtol=1e-4)
    assert (case() - own).abs().max() > 1e-2


@pytest.mark.parametrize("name", CAUSAL)
@pytest.mark.parametrize("padding", ["right", "left"])
def test_padding_and_future_get_no_weight(name, padding):
    case = make(name, padding)
    use_attention(case.model)
    real = case.inputs["attention_mask"].bool()
    visible = (real[:, None, :] & torch.ones(LENGTH, LENGTH, dtype=torch.bool).tril())[:, None].expand(
        -1, HEADS, -1, -1
    )
    for weights in case.attentions():
        assert (weights[~visible] == 0).all()
        sums = weights.sum(-1)
        torch.testing.assert_close(sums, visible.any(-1).float(), atol=1e-5, rtol=0)  # rows without any key are empty


def test_the_gold_graph_of_what_is_observed_is_where_the_weights_are(case):
    control = use_attention(case.model)
    graphs = []
    with control.observing(lambda call, mask: graphs.append(gold_graph(call.q, call.k, mask))):
        weights = case.attentions()
    assert len(graphs) == control.layers
    for graph, found in zip(graphs, weights, strict=True):
        assert torch.equal(graph, found > 0)
    assert 0 < sum(int(graph.sum()) for graph in graphs) < 0.7 * sum(graph.numel() for graph in graphs)


def test_its_own_gold_graph_changes_nothing_and_the_diagonal_does(case):
    """Proposition 1, sparse-consistency: in float64, so that rounding cannot be taken for a change."""
    case.model.double()
    control = use_attention(case.model)
    free = case()
    with control.restricted_to(gold):
        torch.testing.assert_close(case(), free, atol=1e-12, rtol=1e-12)
    with control.restricted_to(diagonal):
        assert (case() - free).abs().max() > 1e-2
    assert torch.equal(case(), free)


def test_a_graph_never_reveals_padding_or_future(case):
    control = use_attention(case.model)
    free = case()
    with control.restricted_to(lambda call: torch.ones_like(call.visible)):
        assert torch.equal(case(), free)


def test_restriction_and_observation_end_with_their_block_even_by_an_exception(case):
    control = use_attention(case.model)
    free, calls = case(), []

    def interrupted(context):
        with context:
            case()
            raise KeyboardInterrupt

    for context in (control.restricted_to(diagonal), control.observing(lambda call, mask: calls.append(call.layer))):
        with pytest.raises(KeyboardInterrupt):
            interrupted(context)
    assert calls == list(range(control.layers))
    assert torch.equal(case(), free)
    assert calls == list(range(control.layers))


def test_models_do_not_share_what_their_attention_does():
    case, other = make("roberta"), make("roberta")
    own = other()
    control = use_attention(case.model)
    use_attention(other.model, lambda scores: scores.softmax(-1))
    with control.restricted_to(diagonal):
        torch.testing.assert_close(other(), own, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", CAUSAL)
def test_decoding_word_by_word_with_a_cache_is_decoding_at_once(name):
    case = make(name)
    use_attention(case.model)
    ids, cache, steps = case.inputs["input_ids"], None, []
    with torch.no_grad():
        whole = case.model(ids).last_hidden_state
        for position in range(LENGTH):
            step = case.model(ids[:, position : position + 1], past_key_values=cache, use_cache=True)
            cache = step.past_key_values
            steps.append(step.last_hidden_state)
    torch.testing.assert_close(torch.cat(steps, dim=1), whole, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("alpha", [1.25, 1.5])
def test_a_saved_model_comes_back_with_its_attention(case, tmp_path, alpha):
    """It came back with softmax. It is saved a second time after a run, and controlled after both."""
    use_attention(case.model, Entmax(alpha))
    own = case()
    case.model.save_pretrained(tmp_path / "first")
    first = Case(type(case.model).from_pretrained(tmp_path / "first").eval(), case.inputs)
    torch.testing.assert_close(first(), own, atol=1e-5, rtol=1e-5)
    first.model.save_pretrained(tmp_path / "second")
    second = Case(type(case.model).from_pretrained(tmp_path / "second").eval(), case.inputs)
    control = use_attention(second.model)
    assert alpha_of(control.normalizer) == alpha
    torch.testing.assert_close(second(), own, atol=1e-5, rtol=1e-5)


def test_a_model_with_softmax_through_this_attention_is_saved_as_any_other(case, tmp_path):
    own = case()
    use_attention(case.model)
    use_attention(case.model, Entmax(1))
    case.model.save_pretrained(tmp_path)
    assert "entmax" not in (tmp_path / "config.json").read_text()
    again = Case(type(case.model).from_pretrained(tmp_path).eval(), case.inputs)
    torch.testing.assert_close(again(), own, atol=1e-4, rtol=1e-4)


def test_training_mode_is_kept():
    model = make("bert").model.train()
    use_attention(model)
    assert all(module.training for module in model.modules())


def two_by_two(layer, q, k, lengths):
    """Blocks of two tokens: every second one, and the diagonal; another choice in every head."""
    blocks = -(-q.shape[2] // 2)
    row, column = torch.arange(blocks)[:, None], torch.arange(blocks)
    heads = torch.arange(q.shape[1])[:, None, None]
    return BlockMask.from_dense((((row + column + heads) % 2 == 0) | (row == column))[None], 2, q.shape[2])


def tokens_of_blocks(call):
    dense = two_by_two(call.layer, call.q, call.k, None).to_dense()
    n = call.q.shape[2]
    return dense.repeat_interleave(2, 2).repeat_interleave(2, 3)[..., :n, :n] & call.visible


@pytest.mark.parametrize("name", ["roberta", "bert", "gpt2", "llama"])
@pytest.mark.parametrize("alpha", [1, 1.5])
def test_visited_blocks_are_a_mask_of_their_tokens(name, alpha):
    case = make(name)
    control = use_attention(case.model, Entmax(1) if alpha == 1 else entmax15)
    with control.restricted_to(tokens_of_blocks):
        expected = case()
    dense = case()
    with control.visiting(two_by_two):
        torch.testing.assert_close(case(), expected, atol=1e-5, rtol=1e-5)
    with control.visiting(lambda *_: None, alpha=alpha):
        torch.testing.assert_close(case(), dense, atol=1e-5, rtol=1e-5)
    assert (dense - expected).abs().max() > 1e-2


def test_a_model_learns_through_visited_blocks():
    case = make("roberta")
    case.model.train().config.attention_probs_dropout_prob = 0.0
    for layer in case.model.encoder.layer:
        layer.attention.self.dropout.p = 0.0
    control = use_attention(case.model)
    with control.visiting(two_by_two):
        case.model(**case.inputs).last_hidden_state.square().sum().backward()
    for layer in case.model.encoder.layer:
        assert layer.attention.self.key.weight.grad.abs().max() > 0


def test_the_layers_of_a_model_look_at_their_mask_once(monkeypatch):
    """But at every mask: one that changed in its place is another for the next sentence."""
    found = []
    monkeypatch.setattr(attention_control, "described", lambda *x: found.append(described(*x)) or found[-1])
    case = make("gpt2")
    control = use_attention(case.model)
    mask = torch.ones(2, 1, 9, 9, dtype=torch.bool).tril()
    ids = case.inputs["input_ids"][:, :9]
    with control.visiting(lambda *_: None), torch.no_grad():
        for real in (9, 5):
            mask[:, :, :, real:] = False
            case.model(input_ids=ids, attention_mask=mask)
    assert control.layers > 1
    assert [one.causal for one in found] == [True, False]
    assert [one.rule is None for one in found] == [True, False]


def test_layers_that_alternate_between_two_masks_look_at_each_once(monkeypatch):
    found = []
    monkeypatch.setattr(attention_control, "described", lambda *x: found.append(x[0]) or described(*x))
    control = attention_control.AttentionControl(layers=5)
    x = torch.randn(1, 1, 6, 4, generator=torch.Generator().manual_seed(0))
    causal = torch.ones(1, 1, 6, 6, dtype=torch.bool).tril()
    masks = [causal, causal.triu(-1)]
    with control.visiting(lambda *_: None):
        outputs = [control.visited(layer, x, x, x, masks[layer % 2]) for layer in range(5)]
    assert [id(mask) for mask in found] == [id(mask) for mask in masks]
    for layer, output in enumerate(outputs):
        expected = attention_weights(x, x, masks[layer % 2]) @ x
        torch.testing.assert_close(output, expected)


def test_blocks_refuse_what_they_cannot_honour():
    case = make("gpt2")
    control = use_attention(case.model)
    with control.visiting(two_by_two), pytest.raises(ValueError, match="neither weights nor graphs of token pairs"):
        with control.restricted_to(gold):
            case()
    with control.restricted_to(gold), pytest.raises(ValueError, match="cannot be combined with"):
        with control.visiting(two_by_two):
            case()
    case.model.train()
    with control.visiting(two_by_two), pytest.raises(ValueError, match="must be 0 for block-sparse attention"):
        case.model(**case.inputs)
