"""One normaliser for each layer, and SparseModernBERT: entmax in global layers, softmax in those with a window."""

import json
from functools import partial

import pytest
import torch
from transformers import AutoConfig, AutoModel, BertConfig, ModernBertConfig, ModernBertModel

from sparselib import Entmax, entmax15, topk_softmax
from sparselib.control import attention_control
from sparselib.huggingface import global_entmax, use_attention
from sparselib.kernels import support, support_library

TINY = {
    "vocab_size": 50,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "global_attn_every_n_layers": 3,
    "local_attention": 8,
    **{f"{name}_token_id": number for number, name in enumerate(("pad", "bos", "eos", "cls", "sep"))},
}
#: What SparseModernBERT's code writes into the configuration of a ModernBERT.
SPARSE = {"initial_alpha": 1.5, "alpha": 1.5, "use_triton_entmax": True, "pre_iter": 5, "post_iter": 5}
LENGTH = 60


def tiny_model(**changes):
    torch.manual_seed(0)
    model = ModernBertModel(ModernBertConfig(**TINY | changes)).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight), alpha=0.3)
    return model


def batch():
    ids = torch.arange(2 * LENGTH).view(2, -1) % 40 + 5
    return {"input_ids": ids, "attention_mask": (torch.arange(LENGTH) < torch.tensor([[LENGTH], [41]])).long()}


def gradients(model):
    model.zero_grad()
    output = model(**batch()).last_hidden_state[batch()["attention_mask"].bool()]
    output.square().mean().backward()
    return output.detach(), torch.cat([x.grad.flatten() for x in model.parameters()])


def test_each_layer_uses_its_own_normalizer():
    model = tiny_model()
    normalizers = [entmax15, Entmax(1), partial(topk_softmax, k=3), Entmax(2)]
    control = use_attention(model, normalizers)
    seen = {}
    with control.observing(lambda call, mask: seen.update({call.layer: (call, mask)})), torch.no_grad():
        weights = model(**batch(), output_attentions=True).attentions
    for layer, (call, mask) in seen.items():
        empty = ~mask.any(-1, keepdim=True)
        expected = normalizers[layer](call.scores.masked_fill(~mask, -torch.inf).masked_fill(empty, 0.0))
        torch.testing.assert_close(weights[layer], expected.masked_fill(empty, 0.0))
    assert sorted(seen) == [0, 1, 2, 3]


@pytest.mark.parametrize("kind", [list, tuple])
def test_another_number_of_normalizers_is_refused(kind):
    model = tiny_model()
    with pytest.raises(ValueError, match="`normalizer` must have one entry for each of the 4 attention layers, got 3"):
        use_attention(model, kind([entmax15] * 3))
    assert model.config._attn_implementation != "entmax"


@pytest.mark.parametrize("alpha", [1.5, 2.0])
def test_a_published_configuration_runs(tmp_path, alpha):
    """Published weights have the names of ModernBERT's, so that saving a ModernBERT makes such a folder."""
    tiny_model().save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | SPARSE | {"initial_alpha": alpha, "alpha": alpha}))
    config = AutoConfig.from_pretrained(tmp_path)
    normalizers = global_entmax(config)
    assert normalizers == [Entmax(alpha), Entmax(1), Entmax(1), Entmax(alpha)]
    model = AutoModel.from_pretrained(tmp_path).eval()
    use_attention(model, normalizers)
    with torch.no_grad():
        weights = model(**batch(), output_attentions=True).attentions
    near = (torch.arange(LENGTH)[:, None] - torch.arange(LENGTH)).abs() <= TINY["local_attention"] // 2
    for layer, x in enumerate(weights):
        x = x[0]  # without padding
        if layer in (1, 2):
            assert (x > 0).equal(near.expand_as(x))
        else:
            assert (x == 0).double().mean() > 0.3
            assert x[:, ~near].any()


@pytest.mark.skipif(support_library.library() is None, reason="the support backend was not compiled")
def test_training_equals_the_dense_form_and_runs_in_the_kernel(monkeypatch):
    model = tiny_model(**SPARSE)
    use_attention(model, global_entmax(model.config))
    with monkeypatch.context() as patch:
        patch.setattr(attention_control, "has_kernel", lambda *_: False)
        expected = gradients(model)
    alphas, forward = [], support.forward
    monkeypatch.setattr(support, "forward", lambda *x, **rules: alphas.append(rules["alpha"]) or forward(*x, **rules))
    results = gradients(model)
    assert alphas == [1.5, 1.0, 1.0, 1.5]
    torch.testing.assert_close(results[0], expected[0], atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(results[1], expected[1], atol=1e-5 * float(expected[1].abs().max()), rtol=1e-3)


def test_alpha_of_a_call_counts_before_the_configuration():
    config = ModernBertConfig(**TINY | SPARSE)
    assert global_entmax(config, 1.25)[0] == Entmax(1.25)
    assert global_entmax(ModernBertConfig(**TINY | {"alpha": 2.0}))[0] == Entmax(2.0)


def test_configurations_without_alpha_or_layers_are_refused():
    with pytest.raises(ValueError, match="`alpha` must be given for a ModernBertConfig without initial_alpha or alpha"):
        global_entmax(ModernBertConfig(**TINY))
    with pytest.raises(ValueError, match="`config` must have layer_types, got BertConfig without"):
        global_entmax(BertConfig(), 1.5)
