"""Blocks in cross-attention: a padded source hides keys, and never queries."""

import pytest
import torch
from models import SIZES, make
from test_checkpointing import ARCHITECTURES
from torch import Tensor
from transformers import BertConfig, BertModel, GPT2Config, GPT2Model, T5GemmaConfig, T5GemmaModel

from sparselib.control import AttentionControl
from sparselib.dense_attention import attention_weights
from sparselib.forms import form
from sparselib.graphs import FormGraph, PredictedGraph
from sparselib.huggingface import sparsify, use_attention
from sparselib.kernels import BlockMask
from sparselib.normalizers import Entmax, entmax15
from sparselib.predictors import Distance

#: Two sources of which the first is padded, and one that is empty.
PADDED = torch.tensor([[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1], [1, 0, 0, 0, 0, 0]])


def far_from_uniform(model):
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight), alpha=0.2)
    return model.eval()


def t5gemma():
    """An encoder-decoder model with grouped heads and soft caps, which are switched off here."""
    part = {"vocab_size": 50, "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, "head_dim": 8}
    part |= {"num_attention_heads": 4, "num_key_value_heads": 2, "sliding_window": 64}
    part |= {"attn_logit_softcapping": None, "final_logit_softcapping": None, "query_pre_attn_scalar": 8}
    return T5GemmaModel(T5GemmaConfig(encoder=dict(part), decoder=dict(part), vocab_size=50))


BUILDERS = {"bart": ARCHITECTURES["bart"], "marian": ARCHITECTURES["marian"], "t5gemma": t5gemma}


def case(name, source=PADDED):
    torch.manual_seed(0)
    ids = torch.randint(5, 45, source.shape)
    inputs = {"input_ids": ids, "attention_mask": source, "decoder_input_ids": ids.flip(1)}
    return far_from_uniform(BUILDERS[name]()).double(), inputs


def hidden(model, inputs):
    with torch.no_grad():
        return model(**inputs).last_hidden_state


def all_blocks(layer, q, k, lengths):
    count = -(-q.shape[2] // 2)
    return BlockMask.from_dense(torch.ones(1, 1, count, count, dtype=torch.bool), 2, q.shape[2])


def some_blocks(layer, q, k, lengths):
    """Another choice in every head and sequence."""
    count = -(-q.shape[2] // 2)
    row, column = torch.arange(count)[:, None], torch.arange(count)
    shift = torch.arange(len(q))[:, None, None, None] + torch.arange(q.shape[1])[:, None, None]
    return BlockMask.from_dense(((row + column + shift) % 2 == 0) | (column == 0), 2, q.shape[2])


def pairs_of_some_blocks(call):
    dense = some_blocks(call.layer, call.q, call.k, None).to_dense()
    return dense.repeat_interleave(2, 2).repeat_interleave(2, 3)[..., : call.q.shape[2], : call.k.shape[2]]


@pytest.mark.parametrize("source", [PADDED, PADDED.flip(1)])
@pytest.mark.parametrize("alpha", [1, 1.5])
@pytest.mark.parametrize("name", BUILDERS)
def test_all_blocks_of_a_padded_source_are_dense_attention(name, alpha, source):
    model, inputs = case(name, source)
    control = use_attention(model, Entmax(1) if alpha == 1 else entmax15)
    dense = hidden(model, inputs)
    assert (dense[0, 4:] != 0).any()
    for blocks in (all_blocks, lambda *_: None):
        with control.visiting(blocks):
            torch.testing.assert_close(hidden(model, inputs), dense, atol=1e-9, rtol=1e-9)
    with control.restricted_to(pairs_of_some_blocks):
        restricted = hidden(model, inputs)
    with control.visiting(some_blocks):
        torch.testing.assert_close(hidden(model, inputs), restricted, atol=1e-9, rtol=1e-9)
    assert (restricted - dense).abs().max() > 1e-2


@pytest.mark.parametrize("name", BUILDERS)
def test_layers_of_cross_attention_are_found(name):
    model, inputs = case(name)
    control = use_attention(model)
    expected = set()

    def observe(call, mask):
        if call.q.shape[2] != call.k.shape[2]:
            expected.add(call.layer)

    with control.observing(observe):
        hidden(model, inputs | {"decoder_input_ids": inputs["decoder_input_ids"][:, :5]})
    assert control.cross_layers == expected
    assert len(expected) == 2


def decoder(kind):
    if kind is BertModel:
        return BertModel(BertConfig(**SIZES, is_decoder=True, add_cross_attention=True))
    return GPT2Model(
        GPT2Config(vocab_size=50, n_positions=40, n_embd=32, n_layer=2, n_head=4, add_cross_attention=True)
    )


@pytest.mark.parametrize("kind", [BertModel, GPT2Model])
def test_a_decoder_that_gets_encoder_states_attends_to_real_keys_only(kind):
    torch.manual_seed(0)
    model = far_from_uniform(decoder(kind))
    inputs = {
        "input_ids": torch.randint(5, 45, PADDED.shape),
        "encoder_hidden_states": torch.randn(*PADDED.shape, 32),
        "encoder_attention_mask": PADDED,
    }
    control = use_attention(model, inputs=inputs)
    assert control.cross_layers == {1, 3}
    dense = hidden(model, inputs)
    with control.visiting(all_blocks):
        torch.testing.assert_close(hidden(model, inputs), dense, atol=1e-5, rtol=1e-5)


def test_gradients_through_a_padded_source_are_dense_ones():
    """In float64, with a source without any real token, whose queries have no key."""
    generator = torch.Generator().manual_seed(0)
    q, k, v = (
        torch.randn(3, heads, 6, 8, generator=generator, dtype=torch.float64, requires_grad=True) for heads in (4, 2, 2)
    )
    visible = (torch.arange(6) < torch.tensor([4, 6, 0])[:, None])[:, None, None].expand(3, 1, 6, 6)
    pairs = some_blocks(0, q, k, None).to_dense().repeat_interleave(2, 2).repeat_interleave(2, 3) & visible
    keys, values = (x.repeat_interleave(2, dim=1) for x in (k, v))
    dense: Tensor = attention_weights(q, keys, pairs, normalizer=entmax15) @ values
    control = AttentionControl(entmax15, layers=1, cross_layers=frozenset({0}))
    with control.visiting(some_blocks):
        output = control.visited(0, q, k, v, visible)
    torch.testing.assert_close(output, dense, atol=1e-9, rtol=1e-9)
    assert (output[2] == 0).all()
    found, expected = (torch.autograd.grad(x.square().sum(), (q, k, v)) for x in (output, dense))
    for gradient, wanted in zip(found, expected, strict=True):
        torch.testing.assert_close(gradient, wanted, atol=1e-8, rtol=1e-8)


@pytest.mark.parametrize("target", [4, 6, 7])
@pytest.mark.parametrize("graph", ["predicted", "form"])
def test_graphs_of_self_attention_are_refused_at_any_target_length(graph, target):
    """Also if source and target are equally long, where the source's padding would hide queries of the target."""
    model = make("marian").model
    control = use_attention(model)
    layers = control.layers
    graphs = {
        "predicted": PredictedGraph([lambda x: x] * layers, [Distance(9.0)] * layers),
        "form": FormGraph([form("Window", 3)] * layers, causal=False),
    }
    inputs = {"input_ids": torch.full((3, 6), 7), "attention_mask": PADDED}
    message = "layer 3 is cross-attention" if graph == "predicted" else r"`forms\[3\]` must allow cross-attention"

    def from_layer(first):
        return lambda call: graphs[graph](call) if call.layer >= first else call.visible

    with control.restricted_to(from_layer(3)), pytest.raises(ValueError, match=message):
        model(**inputs, decoder_input_ids=torch.full((3, target), 8))


def test_a_graph_can_leave_out_cross_attention():
    model = make("marian").model
    control = use_attention(model)
    layers = control.layers
    predicted = PredictedGraph([lambda x: x] * layers, [Distance(1e9)] * layers)
    inputs = {"input_ids": torch.full((3, 6), 7), "attention_mask": PADDED, "decoder_input_ids": torch.full((3, 6), 8)}
    free = hidden(model, inputs)
    with control.restricted_to(lambda call: call.visible if call.cross else predicted(call)):
        torch.testing.assert_close(hidden(model, inputs), free)


def test_sparsify_leaves_cross_attention_dense():
    """Its predictors take queries and keys of one sequence."""
    model = make("marian").model
    generator = torch.Generator().manual_seed(0)
    batches = []
    for _ in range(12):
        ids = torch.randint(5, 50, (10, 6), generator=generator)
        mask = torch.ones_like(ids)
        mask[0, 4:] = 0
        batches.append({"input_ids": ids, "attention_mask": mask, "decoder_input_ids": ids.flip(1)})
    sparse = sparsify(model, batches, recall=0.9, gold="entmax:1.5", predictors=("kmeans", "window"))
    assert sparse.control.cross_layers == {3, 5}
    assert {head.layer for head in sparse.report.heads} == {0, 1, 2, 4}
    with sparse:
        restricted = hidden(model, batches[0])
    with sparse.to_blocks(1):
        found = hidden(model, batches[0])
    torch.testing.assert_close(found, restricted, atol=1e-4, rtol=1e-4)
