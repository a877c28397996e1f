"""Adaptive spans against their formulas, by loops and by finite differences; and what the penalty does."""

import pytest
import torch
from characters import SPAN, corpus, read, some_text, trained
from drawing import drawn
from torch import nn

from replication.char_lm.adaptive_span import span_mask
from replication.char_lm.data import cut
from replication.char_lm.evaluation import evaluate
from replication.char_lm.models import build_model


def with_shares(model, *shares):
    """The same model with these spans, as shares of S, in every layer."""
    with torch.no_grad():
        for layer in model.layers:
            layer.attention.share.copy_(torch.tensor(shares))
    return model


@pytest.mark.parametrize("span", [0.0, 0.3, 7.5, 40.0])
@pytest.mark.parametrize("ramp", [1, 6])
def test_the_mask_is_its_formula(span, ramp):
    found = span_mask(torch.arange(41), torch.tensor(span, dtype=torch.float64), ramp)
    expected = [min(max((ramp + span - x) / ramp, 0), 1) for x in range(41)]
    assert found.tolist() == pytest.approx(expected, abs=1e-12)


@torch.no_grad()
def reweighted(attention, places, context, queries, top_k):
    """Weights ``[H, Q, K]`` as the papers' code makes them: softmax, times the mask, the k largest, divided by their sum."""
    q, k, _ = attention.project(context[:, -queries:], context)
    keys, spans = context.shape[1], attention.spans()
    weights = torch.zeros(len(spans), queries, keys, dtype=torch.float64)
    for h, z in enumerate(spans.tolist()):
        for i in range(queries):
            t = keys - queries + i
            seen = range(max(0, t - attention.maximal_span), t)
            scores = [q[0, h, i] @ (k[0, h, r] + places[t - r - 1]) / q.shape[-1] ** 0.5 for r in seen]
            ramp = [min(max((attention.ramp + z - (t - r)) / attention.ramp, 0), 1) for r in seen]
            row = torch.stack(scores).softmax(0) * torch.tensor(ramp, dtype=torch.float64)
            if top_k is not None and top_k < len(row):
                row[row < row.topk(top_k).values[-1]] = 0
            weights[h, i, list(seen)] = row / row.sum()
    return weights


@pytest.mark.parametrize("top_k", [None, 3])
@pytest.mark.parametrize("shares", [(0.0, 0.13), (0.4, 0.21), (1.0, 1.0)])
def test_weights_are_those_of_the_papers_code(top_k, shares):
    model = with_shares(trained(SPAN | {"maximal_span": 10, "top_k": top_k}), *shares)
    attention = model.layers[0].attention
    context = drawn(1, 17, 16, dtype=torch.float64)
    with torch.no_grad():
        output, weights = attention(context[:, -5:], context, model.positions(17))
        values = attention.project(context, context)[2]
    expected = reweighted(attention, model.places, context, 5, top_k)
    unread = 17 - weights.shape[-1]
    assert (expected[..., :unread] == 0).all()
    torch.testing.assert_close(weights[0], expected[..., unread:], rtol=0, atol=1e-12)
    torch.testing.assert_close(output, attention.project.merge(expected[None] @ values).detach())


def test_maximal_spans_are_plain_causal_attention(monkeypatch):
    """Of all positions before the query, which a model with masks of 1 everywhere gives too."""
    model, ids = trained(SPAN), some_text(30)
    with_shares(model, 1.0, 1.0)
    found = read(model, ids, 30)
    monkeypatch.setattr("replication.char_lm.adaptive_span.span_mask", lambda distance, span, ramp: distance * 0.0 + 1)
    assert torch.equal(found, read(model, ids, 30))
    seen = []
    with torch.no_grad():
        model(ids, None, lambda layer, weights: seen.append(weights > 0))
    assert torch.equal(seen[0], torch.ones(30, 30).tril(-1).bool().expand_as(seen[0]))


def test_gradients_of_spans_equal_finite_differences():
    # No span at which some distance is at an end of its ramp, where the formula has a corner.
    model, ids = with_shares(trained(SPAN), 0.137, 0.411), some_text(31)
    shares = [layer.attention.share for layer in model.layers]

    def loss():
        return nn.functional.cross_entropy(model(ids[:, :-1])[0].mT, ids[:, 1:])

    gradients = torch.autograd.grad(loss(), shares)
    for share, gradient in zip(shares, gradients, strict=True):
        assert gradient.abs().min() > 0
        for head in range(2):
            around = []
            for change in (1e-6, -2e-6):
                with torch.no_grad():
                    share[head] += change
                    around.append(loss().item())
            with torch.no_grad():
                share[head] += 1e-6
            assert gradient[head].item() == pytest.approx((around[0] - around[1]) / 2e-6, rel=1e-4, abs=1e-9)


@pytest.mark.parametrize("top_k", [None, 3])
def test_gradients_are_finite_where_masks_are_zero_and_rows_empty(top_k):
    model = build_model(SPAN | {"ramp": 1, "initial_span": 0.0, "top_k": top_k}, 60, seed=0)
    logits, _ = model(torch.ones(2, 9, dtype=torch.long))
    (logits.square().mean() + model.penalty()).backward()
    assert all(parameter.grad is None or parameter.grad.isfinite().all() for parameter in model.parameters())


def test_a_large_penalty_shrinks_spans_to_nothing_and_a_small_one_does_not():
    start = 0.5
    spans = {
        penalty: trained(SPAN | {"initial_span": start, "span_penalty": penalty}, steps=12).spans().mean().item()
        for penalty in (0.0, 10.0)
    }
    assert spans[10.0] < start * 40 - 2
    assert spans[10.0] < spans[0.0]


def test_the_penalty_is_the_sum_over_layers_of_mean_spans():
    model = with_shares(build_model(SPAN | {"span_penalty": 2e-6}, 60, seed=0), 0.1, 0.5)
    assert model.penalty().item() == pytest.approx(2e-6 * 2 * (4 + 20) / 2)


def test_spans_stay_between_nothing_and_the_maximum():
    model = with_shares(build_model(SPAN, 60, seed=0), -0.2, 1.3)
    model.constrain()
    assert model.spans().tolist() == [[0.0, 40.0]] * 2


def test_mean_span_and_attended_positions_are_reported():
    model = with_shares(trained(SPAN), 0.05, 1.0)
    # z = 2 and 40; with the ramp of 6 these are 8 and, at most, 40 positions.
    assert model.measurements()["mean_span"] == pytest.approx((8 + 40) / 2)
    stream = cut(corpus(2)[1][:2001], rows=1, length=50)
    # m(x) > 0 for x < z + R: 7 positions and 40, but for the first characters.
    assert evaluate(model, stream, 50).attended_positions == pytest.approx((7 + 40) / 2, abs=0.4)
    selecting = with_shares(trained(SPAN | {"top_k": 3}), 0.05, 1.0)
    assert evaluate(selecting, stream, 50).attended_positions == pytest.approx(3, abs=0.01)
