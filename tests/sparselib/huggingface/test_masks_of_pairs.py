"""Masks of pairs inside visited blocks, where a token may attend whom no token attends to; and what has no block form."""

import pytest
import torch
from models import LENGTH, make
from test_huggingface_scores import MODELS
from transformers import BloomConfig, BloomModel, SiglipVisionConfig, SiglipVisionModel

from sparselib.huggingface import use_attention
from sparselib.kernels import BlockMask

PAST = torch.ones(LENGTH, LENGTH, dtype=torch.bool).tril()
ANY = torch.ones(LENGTH, LENGTH, dtype=torch.bool)


def without(pairs, *keys):
    """Return pairs ``[2, 1, n, n]`` without some keys in the first sentence."""
    pairs = pairs.repeat(2, 1, 1, 1)
    pairs[0, 0, :, keys] = False
    return pairs


#: Masks of which each query sees a key, so that eager attention has no row without keys.
MASKS = {
    "the last key": lambda pairs: without(pairs, LENGTH - 1),
    "the last keys": lambda pairs: without(pairs, *range(LENGTH // 2, LENGTH)),
    "a key in the middle": lambda pairs: without(pairs, LENGTH // 2),
    "the last key of both sentences": lambda pairs: without(pairs, LENGTH - 1)[:1].expand(2, -1, -1, -1),
    "the last key and a window": lambda pairs: without(pairs & ANY.triu(-2), LENGTH - 1) | torch.eye(1, LENGTH).bool(),
}


def all_blocks(layer, q, k, lengths):
    return BlockMask.from_dense(torch.ones(1, 1, 3, 3, dtype=torch.bool), 3, q.shape[2])


def hidden(model, inputs):
    with torch.no_grad():
        return model(**inputs).last_hidden_state


@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("name", ["bert", "gpt2", "llama"])
def test_queries_attend_whose_keys_nobody_sees(name, mask, added):
    """Such queries had an output of zero, as if they were padding."""
    case = make(name)
    pairs = MASKS[mask](ANY if name == "bert" else PAST)
    if added:
        pairs = torch.zeros(pairs.shape).masked_fill(~pairs, torch.finfo(torch.float32).min)
    inputs = {"input_ids": case.inputs["input_ids"], "attention_mask": pairs}
    control = use_attention(case.model)
    dense = hidden(case.model, inputs)
    for blocks in (all_blocks, lambda *_: None):
        with control.visiting(blocks):
            torch.testing.assert_close(hidden(case.model, inputs), dense, atol=1e-4, rtol=1e-4)


def test_padding_on_the_right_still_attends_to_nothing():
    """A mask of tokens says who is padding, so that no block of it is visited."""
    case = make("bert")
    control = use_attention(case.model)
    lengths = []
    with control.visiting(lambda layer, q, k, found: lengths.append(found.tolist())):
        hidden(case.model, case.inputs)
    assert lengths == [case.inputs["attention_mask"].sum(-1).tolist()] * control.layers


@pytest.mark.parametrize("name", ["bert", "gpt2", "marian"])
def test_weights_are_not_silently_empty_inside_blocks(name):
    case = make(name)
    control = use_attention(case.model)
    with control.visiting(lambda *_: None):
        case()
        with pytest.raises(ValueError, match=r"`output_attentions` must be False inside `visiting\(\)`"):
            case(output_attentions=True)
    with control.restricted_to(lambda call: call.visible):
        assert len(case.attentions()) == control.layers


def test_sinks_work_along_graphs_and_are_refused_in_blocks():
    (build,) = (build for name, build in MODELS.items() if "sinks" in name)
    torch.manual_seed(0)
    model = build().eval()
    inputs = {"input_ids": torch.arange(LENGTH)[None] + 5}
    control = use_attention(model)
    dense = hidden(model, inputs)
    with control.restricted_to(lambda call: torch.ones_like(call.visible)):
        torch.testing.assert_close(hidden(model, inputs), dense)
    with control.visiting(all_blocks), pytest.raises(ValueError, match="`s_aux` of GptOssAttention must be None"):
        hidden(model, inputs)


def test_bloom_is_refused_by_name():
    with pytest.raises(ValueError, match="BloomModel ignores the attention interface"):
        use_attention(BloomModel(BloomConfig(vocab_size=60, hidden_size=32, n_layer=2, n_head=4)))


def test_siglip_works_without_its_pooling_head_and_is_refused_with_it():
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 32}
    images = {"image_size": 24, "patch_size": 8}
    with pytest.raises(ValueError, match="SiglipVisionModel computes attention itself in MultiheadAttention"):
        use_attention(SiglipVisionModel(SiglipVisionConfig(**sizes, **images)))
    torch.manual_seed(0)
    model = SiglipVisionModel(SiglipVisionConfig(**sizes, **images, vision_use_head=False)).eval()
    inputs = {"pixel_values": torch.randn(2, 3, 24, 24)}
    control = use_attention(model)
    dense = hidden(model, inputs)
    with control.restricted_to(lambda call: torch.ones_like(call.visible)):
        torch.testing.assert_close(hidden(model, inputs), dense)
    with control.visiting(all_blocks):
        torch.testing.assert_close(hidden(model, inputs), dense, atol=1e-5, rtol=1e-5)
    with control.restricted_to(lambda call: torch.eye(9, dtype=torch.bool)):
        assert not torch.allclose(hidden(model, inputs), dense, atol=1e-3)
