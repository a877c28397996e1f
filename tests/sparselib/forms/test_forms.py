"""The nine attention forms at a budget of k against double loops written from their definitions."""

from functools import partial
from itertools import pairwise

import pytest
import torch
from drawing import drawn_in_turn
from hypothesis import given, settings
from hypothesis import strategies as st

from sparselib import masks
from sparselib.control import LayerCall
from sparselib.dense_attention import attention
from sparselib.forms import FORMS, Positions, form
from sparselib.graphs import FormGraph
from sparselib.normalizers import topk_softmax

SEED = 7
SOFTMAX = partial(torch.softmax, dim=-1)


def lot(h, i, j, seed=SEED):
    """splitmix64 of one number per pair, in Python's integers; signed, as torch compares them."""
    word = (1 << 64) - 1
    x = (seed * 0x9E3779B97F4A7C15 + h * 0xD1B54A32D192ED03 + i * 0xA0761D6478BD642F + j * 0xE7037ED1A0B428DB) & word
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & word
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & word
    x ^= x >> 31
    return x - (1 << 64) if x >> 63 else x


def window(i, j, width, causal):
    return i - width < j <= i if causal else width > 0 and -((width - 1) // 2) <= j - i <= width // 2


def dilated(i, j, width, causal):
    return (j - i) % 2 == 0 and window(0, (j - i) // 2, width, causal)


def best(j, values, count):
    """Whether j is among the `count` largest of `values` by key, or ties with the last of them."""
    return j in values and values[j] >= sorted(values.values(), reverse=True)[:count][-1]


def looped(case, name, k):
    def edge(b, h, i, j):
        keys = range(i + 1 if case.causal else case.lengths[b])
        lots = {key: lot(h, i, key) for key in keys}
        scores = {key: float(case.q[b, h, i] @ case.k[b, h, key]) for key in keys}
        near, quarter = partial(window, i, causal=case.causal), k // 4

        def local_or_global(key):
            return near(key, k - 2 * quarter) or i < quarter or key < quarter

        match name:
            case "Full":
                return True
            case "Block":
                return i // k == j // k
            case "Window":
                return near(j, k)
            case "Dilated":
                return dilated(i, j, k, case.causal)
            case "Global":
                return i < k or j < k
            case "Random":
                return best(j, lots, k)
            case "BigBird":
                others = {key: lots[key] for key in keys if not local_or_global(key)}
                return local_or_global(j) or (quarter > 0 and best(j, others, quarter))
            case "Top-k":
                return best(j, scores, k)
            case "Top-k OOW":
                others = {key: scores[key] for key in keys if not near(key, k // 2)}
                return near(j, k // 2) or best(j, others, k - k // 2)

    return case.looped(edge)


@pytest.mark.parametrize("k", [1, 2, 4, 5, 8, 100])
@pytest.mark.parametrize("name", FORMS)
def test_equals_its_loop(case, name, k):
    predictor = form(name, k, SEED)
    if name == "Window" and k > case.q.shape[2]:
        with pytest.raises(ValueError, match=f"`k` must be at most {case.q.shape[2]}, .* got a window of {k}"):
            case.predict(predictor)
    else:
        assert torch.equal(case.predict(predictor), looped(case, name, k))


def queries_and_keys(queries, keys, seed=0, heads=2):
    return drawn_in_turn((2, heads, queries, 4), (2, heads, keys, 4), seed=seed, dtype=torch.float64)


@given(k=st.integers(1, 12), extra=st.integers(0, 10), causal=st.booleans(), name=st.sampled_from(list(FORMS)))
@settings(deadline=None)
def test_rows_keep_at_most_k_keys_and_global_rows_all(k, extra, causal, name):
    n = k + extra
    pairs = form(name, k, SEED).predict(*queries_and_keys(n, n), causal=causal)
    rows = pairs.sum(-1)
    if name in ("Global", "BigBird"):
        full = k if name == "Global" else k // 4
        assert (rows[..., :full] == (torch.arange(full) + 1 if causal else n)).all()
        rows = rows[..., full:]
    if name != "Full":
        assert (rows <= k).all()
    assert (rows >= 1).all()


@given(n=st.integers(1, 14), k=st.integers(1, 16), causal=st.booleans())
@settings(deadline=None)
def test_random_and_topk_use_their_budget_up(n, k, causal):
    seen = torch.arange(n) + 1 if causal else torch.full((n,), n)
    for name in ("Random", "Top-k", "Top-k OOW"):
        kept = form(name, k, SEED).predict(*queries_and_keys(n, n), causal=causal).sum(-1)
        if name != "Top-k OOW":
            assert torch.equal(kept, seen.clamp(max=k).expand_as(kept))
        else:  # the window is cut at the edges; the keys beyond it make up for none of that
            assert (kept <= seen.clamp(max=k)).all()


@given(n=st.integers(1, 14), end=st.integers(1, 14), k=st.integers(1, 6), name=st.sampled_from(list(FORMS)))
@settings(deadline=None)
def test_a_decoders_row_does_not_depend_on_later_tokens(n, end, k, name):
    """Else decoding step by step would not be decoding at once."""
    end, k = min(n, end), min(n, end, k)
    q, keys = queries_and_keys(n, n)
    whole = form(name, k, SEED).predict(q, keys, causal=True)
    part = form(name, k, SEED).predict(q[:, :, :end], keys[:, :, :end], causal=True)
    assert torch.equal(part, whole[:, :, :end, :end])


@pytest.mark.parametrize("name", ["Window", "Dilated", "Global", "Random", "Top-k"])
def test_a_larger_budget_keeps_what_a_smaller_one_kept(name, causal):
    masks_of = [form(name, k, SEED).predict(*queries_and_keys(12, 12), causal=causal) for k in range(1, 13)]
    for smaller, larger in pairwise(masks_of):
        assert not (smaller & ~larger).any()


def test_random_keys_are_uniform_and_differ_by_row_head_and_seed():
    q, keys = queries_and_keys(16, 16, heads=64)
    draws = torch.stack([form("Random", 4, seed).predict(q, keys)[0] for seed in range(16)])  # [seed, H, Q, K]
    share = draws.double().mean(dim=(0, 1))
    assert (share - 0.25).abs().max() < 0.07  # 5 standard deviations of 1024 draws
    assert len(draws.flatten(0, 2).unique(dim=0)) > 1500  # of 1820 possible rows
    assert torch.equal(form("Random", 4, 3).predict(q, keys)[1], draws[3])


@pytest.mark.parametrize("k", [2, 3])
def test_bigbird_at_the_smallest_budgets_is_a_window(k, causal):
    q, keys = queries_and_keys(9, 9)
    expected = form("Window", k).predict(q, keys, causal=causal)
    assert torch.equal(form("BigBird", k).predict(q, keys, causal=causal), expected)


def test_ties_outside_the_window_are_kept_and_the_window_uses_up_no_place():
    q = torch.ones(1, 1, 6, 1)
    keys = torch.tensor([1.0, 1.0, 0.0, 9.0, 9.0, 9.0]).view(1, 1, 6, 1)
    row = form("Top-k OOW", 4).predict(q, keys, causal=True)[0, 0, 5]
    assert row.tolist() == [True, True, False, True, True, True]  # 4, 5 by window; 3 best, 0 and 1 tie for second


@pytest.mark.parametrize("queries", [3, 11])
@pytest.mark.parametrize("name", ["Full", "Random", "Top-k"])
def test_cross_attention(name, queries):
    q, keys = queries_and_keys(queries, 7)
    found = form(name, 2, SEED).predict(q, keys)
    for b, h, i in torch.cartesian_prod(torch.arange(2), torch.arange(2), torch.arange(queries)).tolist():
        values = {
            "Full": dict.fromkeys(range(7), 0),
            "Random": {j: lot(h, i, j) for j in range(7)},
            "Top-k": {j: float(q[b, h, i] @ keys[b, h, j]) for j in range(7)},
        }[name]
        assert found[b, h, i].tolist() == [best(j, values, 2) for j in range(7)]


@pytest.mark.parametrize("name", ["Block", "Window", "Dilated", "Global", "BigBird", "Top-k OOW"])
def test_other_forms_have_no_cross_attention(name):
    with pytest.raises(ValueError, match="is for self-attention, got 3 queries and 7 keys"):
        form(name, 2).predict(*queries_and_keys(3, 7))


@pytest.mark.parametrize("name", FORMS)
def test_gradient_is_softmaxs_over_the_pairs_kept(name, causal):
    q, keys = (x.requires_grad_() for x in queries_and_keys(8, 8))
    value, direction = queries_and_keys(8, 8, seed=1)
    mask = form(name, 4, SEED).predict(q, keys, causal=causal)
    output, weights = attention(q, keys, value, mask, normalizer=SOFTMAX)
    found = torch.autograd.grad(output, (q, keys), direction)

    twin = (q @ keys.mT / 2).masked_fill(~mask, -torch.inf).softmax(-1)
    expected = torch.autograd.grad(twin @ value, (q, keys), direction)
    by_weight = direction @ value.mT  # and by hand: the softmax Jacobian on the pairs kept, nothing elsewhere
    scores = weights * (by_weight - (weights * by_weight).sum(-1, keepdim=True)) / 2
    for gradient, wanted, by_hand in zip(found, expected, (scores @ keys, scores.mT @ q), strict=True):
        torch.testing.assert_close(gradient, wanted)
        torch.testing.assert_close(gradient, by_hand)


def test_topk_over_softmax_is_topk_softmax(causal):
    q, keys = queries_and_keys(8, 8)
    visible = torch.ones(8, 8, dtype=torch.bool).tril() if causal else None
    by_mask = attention(q, keys, keys, form("Top-k", 3).predict(q, keys, causal=causal), normalizer=SOFTMAX)[0]
    by_normalizer = attention(q, keys, keys, visible, normalizer=partial(topk_softmax, k=3))[0]
    torch.testing.assert_close(by_mask, by_normalizer)


def test_any_pattern_can_be_a_form():
    parts = masks.strided_parts(3)
    found = Positions(masks.combined(parts, "per_head")).predict(*queries_and_keys(9, 9), causal=True)
    for head in range(2):
        assert torch.equal(found[:, head], masks.to_dense(parts[head], 2, 1, 9)[:, 0])


def test_errors_name_what_is_wrong():
    with pytest.raises(ValueError, match=r"`name` must be one of Full, Block, .*; got 'Sinkhorn'"):
        form("Sinkhorn", 4)
    for name in FORMS:
        with pytest.raises(ValueError, match="`k` must be at least 1, got 0"):
            form(name, 0)


def test_a_layer_of_cross_attention_draws_keys_for_each_of_its_queries():
    queries, keys, k = 5, 9, 3
    call = LayerCall(
        0,
        torch.zeros(1, 2, queries, 4),
        torch.zeros(1, 2, keys, 4),
        visible=torch.ones(1, 1, queries, keys, dtype=torch.bool),
        cross=True,
    )
    drawn = FormGraph([form("Random", k, seed=SEED)], causal=False)(call)
    assert drawn.shape == (1, 2, queries, keys)
    for h in range(2):
        for i in range(queries):
            largest = sorted(range(keys), key=lambda j, h=h, i=i: lot(h, i, j))[-k:]
            assert drawn[0, h, i].nonzero().flatten().tolist() == sorted(largest)
