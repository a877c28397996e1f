"""Scores as models make them: other scales, biases, soft caps, sinks, windows and masks that are added."""

import entmax as reference
import pytest
import torch
from models import LENGTH, diagonal, make
from transformers import (
    Gemma2Config,
    Gemma2Model,
    Gemma3TextConfig,
    Gemma3TextModel,
    GptOssConfig,
    GptOssModel,
    GraniteConfig,
    GraniteModel,
    MistralConfig,
    MistralModel,
    T5Config,
    T5Model,
)

from sparselib.control import LayerCall
from sparselib.dense_attention import Scoring, attention_weights
from sparselib.huggingface import use_attention
from sparselib.normalizers import Entmax
from sparselib.projections import Batch

TINY = {"vocab_size": 50, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 32}
GROUPED = TINY | {"num_key_value_heads": 2}
MODELS = {
    "T5: a bias of positions, and no scale": lambda: T5Model(
        T5Config(vocab_size=50, d_model=32, d_kv=8, d_ff=32, num_layers=2, num_heads=4)
    ),
    "Gemma 2: a soft cap": lambda: Gemma2Model(Gemma2Config(**GROUPED, head_dim=8, attn_logit_softcapping=0.5)),
    "Gemma 3: a scale of its own": lambda: Gemma3TextModel(
        Gemma3TextConfig(**GROUPED, head_dim=8, query_pre_attn_scalar=1)
    ),
    "Granite: a scale of its own": lambda: GraniteModel(GraniteConfig(**GROUPED, attention_multiplier=3.0)),
    "gpt-oss: sinks": lambda: GptOssModel(
        GptOssConfig(**GROUPED, head_dim=8, num_local_experts=2, num_experts_per_tok=1, experts_implementation="eager")
    ),
    "Mistral: a window": lambda: MistralModel(MistralConfig(**GROUPED, sliding_window=3)),
}


@pytest.fixture(params=MODELS)
def model(request):
    torch.manual_seed(0)
    made = MODELS[request.param]().eval().double()
    with torch.no_grad():
        for weight in made.parameters():
            weight.add_(torch.randn_like(weight), alpha=0.3)
    made.set_attn_implementation("eager")
    return made


def outputs(model):
    ids = torch.arange(2 * LENGTH).view(2, -1) % 40 + 5
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    inputs |= {"decoder_input_ids": ids} if model.config.is_encoder_decoder else {}
    with torch.no_grad():
        return model(**inputs).last_hidden_state


def test_softmax_is_the_models_own(model):
    own = outputs(model)
    use_attention(model, lambda scores: scores.softmax(-1))
    torch.testing.assert_close(outputs(model), own, atol=1e-6, rtol=1e-6)


def test_their_own_gold_graph_changes_nothing(model):
    """Proposition 1, sparse-consistency: it needs the model's own scores. With others it was broken by 4 to 6."""
    control = use_attention(model)
    free = outputs(model)
    with control.restricted_to(LayerCall.gold):
        torch.testing.assert_close(outputs(model), free, atol=1e-10, rtol=1e-10)
    with control.restricted_to(diagonal):
        assert (outputs(model) - free).abs().max() > 1e-2


@pytest.mark.parametrize("alpha", [1.25, 1.5, 2.0])
def test_batches_of_observed_calls_have_the_models_own_edges(model, alpha):
    """A batch of plain 1.5-entmax scores teaches projections another graph than the model has."""
    control, pairs = use_attention(model, Entmax(alpha)), []

    def observe(call, mask):
        if not call.cross:
            lengths, is_causal = torch.full((len(call.q),), LENGTH), not call.visible.all()
            pairs.append((Batch.of(call, lengths, causal=is_causal).gold, call))

    with control.observing(observe):
        outputs(model)
    assert pairs
    for gold, call in pairs:
        weights = call.scoring.weights(
            call.scores, call.visible, lambda x: reference.entmax_bisect(x, alpha, n_iter=100)
        )
        assert torch.equal(gold, weights > 1e-12)
        assert torch.equal(gold, call.gold())


def test_each_part_of_a_score_against_a_loop():
    """Row by row with the entmax package; the sink is one more score."""
    generator = torch.Generator().manual_seed(0)
    q, k = (torch.randn(2, 3, 5, 4, generator=generator, dtype=torch.float64) for _ in range(2))
    bias = torch.randn(1, 3, 5, 5, generator=generator, dtype=torch.float64)
    sinks = torch.randn(3, generator=generator, dtype=torch.float64)
    mask = torch.ones(5, 5, dtype=torch.bool).tril()
    found = attention_weights(q, k, mask, scoring=Scoring(0.7, 2.0, bias, sinks))
    for b in range(2):
        for h in range(3):
            for i in range(5):
                row = [2 * torch.tanh(q[b, h, i] @ k[b, h, j] * 0.7 / 2) + bias[0, h, i, j] for j in range(i + 1)]
                weights = reference.entmax15(torch.stack([*row, sinks[h]]), dim=0)
                torch.testing.assert_close(found[b, h, i, : i + 1], weights[:-1])
                assert (found[b, h, i, i + 1 :] == 0).all()


@pytest.mark.parametrize("hidden", [-torch.inf, torch.finfo(torch.float32).min])
def test_a_mask_that_is_added_hides_and_biases(hidden):
    """As BERT's eager attention adds it; ALiBi is such a bias."""
    case = make("bert")
    places = torch.arange(LENGTH)
    added = -0.3 * (places[:, None] - places).abs().float().expand(2, 4, -1, -1).clone()
    added[1, :, :, 5:] = hidden

    def run():
        with torch.no_grad():
            return case.model(case.inputs["input_ids"], attention_mask=added).last_hidden_state

    own = run()
    control = use_attention(case.model, lambda scores: scores.softmax(-1))
    torch.testing.assert_close(run(), own, atol=1e-5, rtol=1e-5)
    seen = []
    with control.observing(lambda call, mask: seen.append((call.visible, call.scoring.bias))):
        run()
    visible, bias = seen[0]
    assert visible[1, :, :, 5:].logical_not().all()
    assert visible[0].all()
    torch.testing.assert_close(bias[0], added[0])
