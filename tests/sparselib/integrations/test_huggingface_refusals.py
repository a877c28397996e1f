"""What a Hugging Face model asks of its attention is computed or refused, and a refused model is as it was."""

import pytest
import torch
from models import LENGTH, MARIAN, diagonal, make
from transformers import (
    FSMTConfig,
    FSMTForConditionalGeneration,
    Gemma2Config,
    Gemma2Model,
    GptOssConfig,
    GptOssModel,
    T5Config,
    T5Model,
)

from sparselib.integrations.huggingface import use_attention
from sparselib.normalizers import Entmax

TINY = {"vocab_size": 50, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
OTHERS = {
    "position_bias": lambda: T5Model(T5Config(vocab_size=50, d_model=32, d_kv=16, d_ff=32, num_layers=1, num_heads=2)),
    "softcap": lambda: Gemma2Model(Gemma2Config(**TINY, head_dim=16, num_key_value_heads=2)),
    "s_aux": lambda: GptOssModel(
        GptOssConfig(**TINY, head_dim=16, num_key_value_heads=2, num_local_experts=2, num_experts_per_tok=1)
    ),
}


@pytest.mark.parametrize("argument", OTHERS)
def test_what_changes_scores_is_refused_by_name_and_the_model_is_as_it_was(argument):
    """They were swallowed, and the model computed something else."""
    torch.manual_seed(0)
    model = OTHERS[argument]().eval()
    ids = torch.arange(8)[None] + 10
    inputs = {"input_ids": ids} | ({"decoder_input_ids": ids} if model.config.is_encoder_decoder else {})
    with torch.no_grad():
        before = model(**inputs).last_hidden_state
    implementation = model.config._attn_implementation
    with pytest.raises(ValueError, match=f"passes .*{argument}"):
        use_attention(model)
    assert model.config._attn_implementation == implementation
    with torch.no_grad():
        assert torch.equal(model(**inputs).last_hidden_state, before)
    assert not any(hasattr(module, "sparselib_control") for module in model.modules())


def test_a_refused_second_change_leaves_the_first_one(monkeypatch):
    case = make("bert")
    control = use_attention(case.model)
    with control.restricted_to(diagonal):
        restricted = case()

    def failing(*arguments, **others):
        raise RuntimeError("out of memory")

    with monkeypatch.context() as patched:
        patched.setattr(type(case.model), "forward", failing)
        with pytest.raises(RuntimeError, match="out of memory"):
            use_attention(case.model, Entmax(1))
    with control.restricted_to(diagonal):
        assert torch.equal(case(), restricted)


def test_a_mask_that_is_added_to_scores_is_refused():
    case = make("bert")
    use_attention(case.model)
    additive = torch.zeros(2, 1, LENGTH, LENGTH)
    with pytest.raises(ValueError, match=r"adds a mask of torch\.float32"):
        case.model(case.inputs["input_ids"], attention_mask=additive)


def test_a_model_that_ignores_the_interface_is_refused_by_name():
    sizes = {"src_vocab_size": 50, "tgt_vocab_size": 50, "d_model": 32, **MARIAN}
    model = FSMTForConditionalGeneration(FSMTConfig(langs=["en", "de"], **sizes))
    with pytest.raises(ValueError, match="FSMTForConditionalGeneration"):
        use_attention(model)
