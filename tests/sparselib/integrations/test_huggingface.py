"""Our attention inside Hugging Face models against their own eager attention, and predicted graphs inside them."""

from typing import NamedTuple

import entmax as reference
import pytest
import torch
from torch import Tensor
from transformers import (
    BertConfig,
    BertModel,
    FSMTConfig,
    FSMTForConditionalGeneration,
    Gemma2Config,
    Gemma2Model,
    GPT2Config,
    GPT2Model,
    GptOssConfig,
    GptOssModel,
    LlamaConfig,
    LlamaModel,
    MarianConfig,
    MarianModel,
    PreTrainedModel,
    RobertaConfig,
    RobertaModel,
    T5Config,
    T5Model,
)

from sparselib.blocks.kernel_arguments import token_rules
from sparselib.dense_attention import attention_weights, gold_graph
from sparselib.integrations import control as module_of_control
from sparselib.integrations.huggingface import use_attention
from sparselib.kernels import BlockMask
from sparselib.normalizers import Entmax, entmax15

HEADS, LENGTH, PADDED = 4, 9, 6
BOTH = {"vocab_size": 50, "max_position_embeddings": 40}
SIZES = BOTH | {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": HEADS, "intermediate_size": 32}
MARIAN = {f"{side}_{key}": value for side in ("encoder", "decoder") for key, value in
          {"layers": 2, "attention_heads": HEADS, "ffn_dim": 32}.items()}  # fmt: skip
GPT2 = {"n_embd": 32, "n_layer": 2, "n_head": HEADS, "bos_token_id": 0, "eos_token_id": 0}
MODELS = {
    "roberta": lambda: RobertaModel(RobertaConfig(**SIZES)),
    "bert": lambda: BertModel(BertConfig(**SIZES)),
    "gpt2": lambda: GPT2Model(GPT2Config(vocab_size=50, n_positions=40, **GPT2)),
    "llama": lambda: LlamaModel(LlamaConfig(**SIZES, num_key_value_heads=2)),
    "marian": lambda: MarianModel(MarianConfig(**BOTH, **MARIAN, d_model=32, pad_token_id=1, decoder_start_token_id=0)),
}
CAUSAL = ("gpt2", "llama")


class Case(NamedTuple):
    model: PreTrainedModel
    inputs: dict[str, Tensor]

    def __call__(self, **extra) -> Tensor:
        """Hidden states at real positions."""
        with torch.no_grad():
            hidden = self.model(**self.inputs, **extra).last_hidden_state
        return hidden[self.inputs.get("decoder_attention_mask", self.inputs["attention_mask"]).bool()]

    def attentions(self) -> list[Tensor]:
        """The weights of every layer, in the order in which the layers are called."""
        with torch.no_grad():
            found = self.model(**self.inputs, output_attentions=True)
        if not self.model.config.is_encoder_decoder:
            return list(found.attentions)
        pairs = zip(found.decoder_attentions, found.cross_attentions, strict=True)
        return [*found.encoder_attentions, *(weights for pair in pairs for weights in pair)]


def make(name: str, padding: str = "right") -> Case:
    """A model with weights large enough that heads are far from uniform, and a batch with a padded sentence."""
    torch.manual_seed(0)
    model = MODELS[name]().eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight), alpha=0.3)
    ids = torch.randint(5, 50, (2, LENGTH))
    mask = torch.ones_like(ids)
    mask[1, PADDED:] = 0
    if padding == "left":
        mask = mask.flip(1)
    inputs = {"input_ids": ids, "attention_mask": mask}
    if model.config.is_encoder_decoder:
        inputs |= {"decoder_input_ids": ids[:, 1:-1], "decoder_attention_mask": mask[:, 1:-1]}
    model.set_attn_implementation("eager")
    return Case(model, inputs)


@pytest.fixture(params=MODELS)
def case(request) -> Case:
    return make(request.param)


def by_package(scores: Tensor) -> Tensor:
    return reference.entmax15(scores, dim=-1)


def gold(call):
    return gold_graph(call.q, call.k, call.visible)


def diagonal(call):
    return torch.eye(call.q.shape[2], call.k.shape[2], dtype=torch.bool).expand_as(call.visible)


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
    """Proposition 1, sparse-consistency."""
    control = use_attention(case.model)
    free = case()
    with control.restricted_to(gold):
        torch.testing.assert_close(case(), free, atol=1e-6, rtol=1e-6)
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


def test_a_saved_model_comes_back_with_its_default_attention(case, tmp_path):
    own = case()
    use_attention(case.model)
    case.model.save_pretrained(tmp_path)
    assert "sparselib" not in (tmp_path / "config.json").read_text()
    again = Case(type(case.model).from_pretrained(tmp_path).eval(), case.inputs)
    torch.testing.assert_close(again(), own, atol=1e-4, rtol=1e-4)


def test_a_model_that_ignores_the_interface_is_refused_by_name():
    sizes = {"src_vocab_size": 50, "tgt_vocab_size": 50, "d_model": 32, **MARIAN}
    model = FSMTForConditionalGeneration(FSMTConfig(langs=["en", "de"], **sizes))
    with pytest.raises(ValueError, match="FSMTForConditionalGeneration"):
        use_attention(model)


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
    monkeypatch.setattr(module_of_control, "token_rules", lambda x: found.append(token_rules(x)) or found[-1])
    case = make("gpt2")
    control = use_attention(case.model)
    mask = torch.ones(2, 1, 9, 9, dtype=torch.bool).tril()
    ids = case.inputs["input_ids"][:, :9]
    with control.visiting(lambda *_: None), torch.no_grad():
        for real in (9, 5):
            mask[:, :, :, real:] = False
            case.model(input_ids=ids, attention_mask=mask)
    assert control.layers > 1
    assert [(causal, lengths if lengths is None else lengths.tolist()) for causal, lengths in found] == [
        (True, None),
        (True, [5, 5]),
    ]


def test_blocks_refuse_what_they_cannot_honour():
    case = make("gpt2", padding="left")
    control = use_attention(case.model)
    with control.visiting(two_by_two), pytest.raises(ValueError, match="padding on the right"):
        case()
    case = make("gpt2")
    control = use_attention(case.model)
    with control.visiting(two_by_two), pytest.raises(ValueError, match="neither weights nor graphs of token pairs"):
        with control.restricted_to(gold):
            case()
    with control.restricted_to(gold), pytest.raises(ValueError, match="not both at once"):
        with control.visiting(two_by_two):
            case()
    case.model.train()
    with control.visiting(two_by_two), pytest.raises(ValueError, match="block-sparse attention has none"):
        case.model(**case.inputs)


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
