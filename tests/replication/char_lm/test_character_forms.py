"""Attention forms and factorised patterns in both character models: what attends, in segments with a memory."""

import pytest
import torch
from characters import SPAN, XL, corpus, read, some_text, trained

from replication.char_lm.models import load_model, save_model
from sparselib.forms import FORMS, factorised, form

BUDGET = 3
FIXED = {"pattern": "fixed", "stride": 4, "summary": 1, "heads": "per_head"}
STRIDED = {"pattern": "strided", "stride": 4, "heads": "interleaved"}
RESTRICTIONS = {name: {"form": name, "budget": BUDGET} for name in FORMS} | {
    pattern["pattern"]: {"factorised": pattern} for pattern in (FIXED, STRIDED)
}


@torch.no_grad()
def weights_of(model, segments):
    """Of the last segment ``[B, H, Q, K]``, a tensor per layer."""
    memory, shown = None, {}
    for segment in segments:
        shown.clear()
        memory = model(segment, memory, lambda layer, weights: shown.update({layer: weights}))[1]
    return [shown[layer] for layer in sorted(shown)]


@pytest.mark.parametrize("architecture", [XL, SPAN], ids=["transformer-xl", "adaptive-span"])
@pytest.mark.parametrize("name", [name for name in RESTRICTIONS if not name.startswith("Top-k")])
def test_layers_attend_where_their_pattern_says(name, architecture):
    """Random keys are those that the form draws for itself; the model whose span is adaptive does not see its own position."""
    model = trained(architecture | RESTRICTIONS[name], steps=2)
    ids = some_text(18)
    for layer, weights in enumerate(weights_of(model, ids.split(6, 1))):
        if name in FORMS:
            predictor = form(name, BUDGET, seed=layer)
        else:
            predictor = factorised(**RESTRICTIONS[name]["factorised"], layer=layer)
        expected = predictor.predict(*torch.zeros(2, 2, 2, 18, 8), causal=True)[:, :, -6:]
        if architecture is SPAN:
            expected = expected & ~torch.eye(18, dtype=torch.bool)[-6:]
            if name in ("Random", "BigBird"):  # they draw others in place of the own position
                assert ((weights > 0).sum(-1) <= BUDGET).all()
                continue
        assert torch.equal(weights > 0, expected)


@pytest.mark.parametrize("architecture", [XL, SPAN], ids=["transformer-xl", "adaptive-span"])
def test_top_k_as_a_form_is_the_top_k_softmax(architecture):
    """The form selects by the model's own scores, with positions and spans in them, not by q.k."""
    ids = some_text(30)
    one, other = (trained(architecture | option).eval() for option in ({"top_k": 3}, {"form": "Top-k", "budget": 3}))
    torch.testing.assert_close(read(one, ids, 10), read(other, ids, 10))


@pytest.mark.parametrize("name", ["Window", "Top-k OOW", "strided"])
def test_segments_of_any_length_give_the_same_logits(name):
    model, ids = trained(XL | RESTRICTIONS[name]), some_text(40)
    torch.testing.assert_close(read(model, ids, 10), read(model, ids, 40))


def test_a_stored_model_keeps_its_form(tmp_path):
    settings = XL | RESTRICTIONS["strided"]
    model, ids = trained(settings), some_text(20)
    save_model(tmp_path / "model.safetensors", model, settings, corpus(2)[0])
    loaded, _ = load_model(tmp_path / "model.safetensors")
    torch.testing.assert_close(loaded.cpu().double()(ids)[0], model(ids)[0], atol=1e-5, rtol=1e-5)
    assert loaded.layers[1].attention.form.rule(0, 0, torch.tensor(9), torch.tensor(5))
    assert not loaded.layers[1].attention.form.rule(0, 0, torch.tensor(9), torch.tensor(8))
