"""What a Hugging Face model asks of its attention is computed or refused, and a refused model is as it was."""

import copy
from functools import partial

import pytest
import torch
from models import LENGTH, MARIAN, diagonal, make
from torch import nn
from transformers import AttentionInterface, BertConfig, BertModel, FSMTConfig, FSMTForConditionalGeneration

from sparselib.huggingface import attention as huggingface
from sparselib.huggingface import use_attention
from sparselib.normalizers import Entmax


def test_an_argument_that_nobody_knows_is_refused_by_name_and_the_model_is_as_it_was(monkeypatch):
    case = make("bert")
    before = case()
    interface = AttentionInterface._global_mapping

    class Asking(dict):
        """Hands every attention function an argument that changes scores."""

        def __getitem__(self, name):
            function = super().__getitem__(name)
            return lambda *arguments, **others: function(*arguments, **others, tilt=torch.ones(()))

    monkeypatch.setattr(AttentionInterface, "_global_mapping", Asking(interface))
    with pytest.raises(ValueError, match="BertSelfAttention passes tilt to its attention"):
        use_attention(case.model)
    monkeypatch.undo()
    assert case.model.config._attn_implementation == "eager"
    assert torch.equal(case(), before)
    assert not any(hasattr(module, "sparselib_place") for module in case.model.modules())


@pytest.mark.parametrize("has_mask", [False, True])
@pytest.mark.parametrize("is_causal", [False, True])
def test_a_causal_flag_is_refused_where_it_alone_would_hide_pairs(is_causal, has_mask):
    """With a mask, the mask is causal already; without causality, nothing is hidden."""
    q = torch.ones(1, 2, 4, 8)
    mask = torch.ones(1, 1, 4, 4, dtype=torch.bool).tril() if has_mask else None
    asked = partial(huggingface.mask_and_scoring, nn.Identity(), q, q, mask, None, {"is_causal": is_causal})
    if is_causal and not has_mask:
        with pytest.raises(ValueError, match="Identity passes is_causal"):
            asked()
    else:
        visible, _ = asked()
        assert (visible is None) == (mask is None)


def test_what_differs_from_eager_attention_is_refused(monkeypatch):
    """Here, a scale that is lost on the way."""
    own = huggingface.mask_and_scoring

    def forgetful(*arguments):
        visible, scoring = own(*arguments)
        return visible, type(scoring)(scale=2.0)

    case = make("bert")
    monkeypatch.setattr(huggingface, "mask_and_scoring", forgetful)
    with pytest.raises(ValueError, match="BertModel: last_hidden_state differs from the model's eager attention"):
        use_attention(case.model)
    assert case.model.config._attn_implementation == "eager"


def test_a_part_that_attends_by_itself_is_refused_by_name():
    class Pooled(BertModel):
        def __init__(self, config):
            super().__init__(config)
            self.pooling = nn.MultiheadAttention(config.hidden_size, 2, batch_first=True)

        def forward(self, input_ids, attention_mask=None):
            found = super().forward(input_ids, attention_mask)
            found["pooler_output"] = self.pooling(*[found.last_hidden_state] * 3)[0]
            return found

    sizes = {"vocab_size": 50, "hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 32}
    with pytest.raises(ValueError, match="Pooled computes attention itself in MultiheadAttention"):
        use_attention(Pooled(BertConfig(**sizes, num_hidden_layers=1)))


def test_a_part_that_was_not_seen_is_refused_when_it_is_called():
    case = make("marian")
    encoder_alone = {"input_ids": case.inputs["input_ids"]}
    encoder = case.model.get_encoder()
    encoder.unused = copy.deepcopy(encoder.layers[0].self_attn)
    encoder.unused.config = encoder.config
    use_attention(encoder, inputs=encoder_alone)
    hidden = encoder(**encoder_alone).last_hidden_state
    assert hidden.shape[:2] == encoder_alone["input_ids"].shape
    with pytest.raises(
        ValueError,
        match=r"`inputs` of use_attention must .* but did not reach MarianAttention",
    ):
        encoder.unused(hidden, attention_mask=None)


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_inputs_with_padding_on_the_left_are_compared_where_tokens_are_real(name):
    """Padding that sees nothing attends to everything in eager attention."""
    case = make(name, padding="left")
    assert use_attention(case.model, inputs=case.inputs).layers == 2


def test_a_model_whose_inputs_cannot_be_guessed_asks_for_them():
    class Asking(BertModel):
        def forward(self, words):
            return super().forward(words)

    sizes = {"vocab_size": 50, "hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 32}
    model = Asking(BertConfig(**sizes, num_hidden_layers=1))
    with pytest.raises(ValueError, match=r"`inputs` cannot be guessed for Asking .*pass inputs to use_attention"):
        use_attention(model)
    assert use_attention(model, inputs={"words": torch.arange(8)[None]}).layers == 1


def test_a_refused_second_change_leaves_the_first_one(monkeypatch):
    case = make("bert")
    control = use_attention(case.model)
    with control.restricted_to(diagonal):
        restricted = case()

    def failing(*arguments, **others):
        raise RuntimeError("out of memory")

    with monkeypatch.context() as patched:
        patched.setattr(type(case.model), "forward", failing)
        with pytest.raises(ValueError, match="out of memory"):
            use_attention(case.model, Entmax(1))
    with control.restricted_to(diagonal):
        assert torch.equal(case(), restricted)


def test_a_mask_of_whole_numbers_is_refused():
    case = make("bert")
    use_attention(case.model)
    with pytest.raises(ValueError, match=r"`attention_mask` must be boolean .* got torch\.int64"):
        case.model(case.inputs["input_ids"], attention_mask=torch.ones(2, 1, LENGTH, LENGTH, dtype=torch.int64))


def test_a_model_that_ignores_the_interface_is_refused_by_name():
    sizes = {"src_vocab_size": 50, "tgt_vocab_size": 50, "d_model": 32, **MARIAN}
    model = FSMTForConditionalGeneration(FSMTConfig(langs=["en", "de"], **sizes))
    with pytest.raises(ValueError, match="FSMTForConditionalGeneration"):
        use_attention(model)
