"""The oracle against its double loop, Proposition 1, and rows in which nothing may be attended to."""

from functools import partial

import entmax as reference
import pytest
import torch
from drawing import drawn, drawn_in_turn, drawn_mask
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import scaled_dot_product_attention

from sparselib import attention, entmax, entmax15, sparsemax, topk_softmax
from sparselib.dense_attention import Scoring, attention_weights, gold_graph

NORMALIZERS = {
    "entmax15": entmax15,
    "sparsemax": sparsemax,
    "alpha 1.3": lambda scores: entmax(scores, 1.3),
    "softmax": lambda scores: entmax(scores, 1),
    "top 2": lambda scores: topk_softmax(scores, 2),
}


@pytest.fixture(params=NORMALIZERS)
def normalizer(request):
    return NORMALIZERS[request.param]


def queries_keys_values(queries=5, keys=5, *, seed=0, dtype=torch.float64):
    """q, k, v of two sentences and three heads; v has another dimension."""
    shapes = (2, 3, queries, 4), (2, 3, keys, 4), (2, 3, keys, 6)
    return tuple(x.mul(2).to(dtype) for x in drawn_in_turn(*shapes, seed=seed, dtype=torch.float64))


some_pairs = partial(drawn_mask, density=0.4, seed=9)


def looped(q, k, v, mask, normalizer, scale):
    """Every query alone with the keys that it may see: nothing is ever masked."""
    output, weights = torch.zeros(*q.shape[:3], v.shape[-1]).to(q), torch.zeros(*q.shape[:3], k.shape[2]).to(q)
    for b, h, i in torch.cartesian_prod(*map(torch.arange, q.shape[:3])).tolist():
        seen = [j for j in range(k.shape[2]) if mask[b, h, i, j]]
        if seen:
            scores = torch.stack([sum(q[b, h, i] * k[b, h, j]) * scale for j in seen])
            for j, weight in zip(seen, normalizer(scores), strict=True):
                weights[b, h, i, j] = weight
                output[b, h, i] += weight * v[b, h, j]
    return output, weights


@pytest.mark.parametrize("scale", [None, 0.1, 3.0])
@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (5, 5), (3, 7), (7, 2)])
def test_equals_its_double_loop(normalizer, queries, keys, scale):
    q, k, v = queries_keys_values(queries, keys)
    mask = some_pairs(2, 3, queries, keys)
    found = attention(q, k, v, mask, normalizer=normalizer, scale=scale)
    expected = looped(q, k, v, mask, normalizer, 0.5 if scale is None else scale)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    assert torch.equal(attention_weights(q, k, mask, normalizer=normalizer, scoring=Scoring(scale)), found[1])


@pytest.mark.parametrize("shape", [(5, 5), (1, 1, 1, 5), (2, 1, 5, 5), (3, 1, 5), (2, 1, 1, 1)])
def test_masks_broadcast(normalizer, shape):
    q, k, v = queries_keys_values()
    mask = some_pairs(*shape)
    expected = attention(q, k, v, mask.expand(2, 3, 5, 5).contiguous(), normalizer=normalizer)
    torch.testing.assert_close(attention(q, k, v, mask, normalizer=normalizer), expected, rtol=0, atol=0)


def test_no_mask_is_a_full_mask(normalizer):
    q, k, v = queries_keys_values()
    full = attention(q, k, v, torch.ones(5, 5, dtype=torch.bool), normalizer=normalizer)
    torch.testing.assert_close(attention(q, k, v, normalizer=normalizer), full, rtol=0, atol=0)


def test_empty_rows_give_nothing_and_learn_nothing(normalizer):
    leaves = [x.requires_grad_() for x in queries_keys_values()]
    mask = some_pairs(2, 3, 5, 5)
    mask[0, 1, 2] = mask[1, 2] = False
    mask[0, 0] = True
    empty = ~mask.any(-1)
    output, weights = attention(*leaves, mask, normalizer=normalizer)
    assert (output[empty] == 0).all()
    assert (weights[empty] == 0).all()
    upstream = drawn(*output.shape, seed=1, dtype=output.dtype)
    q, k, v = torch.autograd.grad(output, leaves, upstream)
    assert (q[empty] == 0).all()
    assert (q[0, 0] != 0).any()
    for grad in (k, v):
        assert grad.isfinite().all()
        assert (grad[1, 2] == 0).all()
        assert (grad[0, 0] != 0).any()


def test_an_empty_row_does_not_change_the_others_gradients():
    q, k, v = (x.requires_grad_() for x in queries_keys_values())
    mask = torch.ones(5, 5, dtype=torch.bool).tril(-1)  # the first query sees nothing
    with_empty = torch.autograd.grad(attention(q, k, v, mask)[0].square().sum(), (q, k, v))
    without = torch.autograd.grad(attention(q[:, :, 1:], k, v, mask[1:])[0].square().sum(), (q, k, v))
    torch.testing.assert_close(with_empty, without, rtol=0, atol=1e-14)


@pytest.mark.parametrize("scale", [None, 0.3])
@pytest.mark.parametrize("masked", [False, True])
def test_softmax_is_pytorchs_attention(masked, scale):
    q, k, v = queries_keys_values(4, 6)
    mask = some_pairs(2, 3, 4, 6) if masked else None
    if masked:
        mask[..., 0] = True  # PyTorch has NaN for empty rows
    expected = scaled_dot_product_attention(q, k, v, mask, scale=scale)
    found, _ = attention(q, k, v, mask, normalizer=NORMALIZERS["softmax"], scale=scale)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


@given(st.integers(0, 10**6), st.integers(1, 12), st.floats(0, 1), st.floats(0.2, 1), st.floats(0.1, 3))
@settings(deadline=None, max_examples=60)
def test_proposition_1(seed, n, extra, visible, scale):
    """Whatever else a mask holds: if it holds the gold graph, output and gradients are those of full attention."""
    generator = torch.Generator().manual_seed(seed)
    allowed = torch.rand(2, 1, n, n, generator=generator) < visible
    superset = torch.rand(2, 3, n, n, generator=generator) < extra
    leaves = [x.requires_grad_() for x in queries_keys_values(n, n, seed=seed)]
    superset = gold_graph(*leaves[:2], allowed, scoring=Scoring(scale)) | (superset & allowed)
    results = []
    for mask in (allowed, superset):
        output, _ = attention(*leaves, mask, scale=scale)
        results.append((output, *torch.autograd.grad(output.square().sum(), leaves)))
    torch.testing.assert_close(results[0], results[1], rtol=0, atol=1e-10)


def test_a_mask_that_misses_one_gold_edge_changes_the_output():
    q, k, v = queries_keys_values()
    gold = gold_graph(q, k)
    assert (gold.sum(-1) > 1).any()
    b, h, i, j = (gold & (gold.sum(-1, keepdim=True) > 1)).nonzero()[0]
    gold[b, h, i, j] = False
    assert (attention(q, k, v, gold)[0] - attention(q, k, v)[0]).abs().max() > 1e-6


@pytest.mark.parametrize("scale", [None, 0.2, 2.0])
def test_gold_graph_is_where_the_package_gives_weight(scale):
    q, k, _ = queries_keys_values(20, 30)
    mask = some_pairs(2, 3, 20, 30, density=0.7)
    mask[..., 0] = True  # the package raises on empty rows
    scores = (q @ k.mT * (0.5 if scale is None else scale)).masked_fill(~mask, -torch.inf)
    assert torch.equal(gold_graph(q, k, mask, scoring=Scoring(scale)), reference.entmax15(scores, dim=-1) > 0)


def test_gold_graph_of_an_empty_row_is_empty_and_has_no_gradient():
    q, k = (x.requires_grad_() for x in queries_keys_values()[:2])
    mask = torch.ones(5, 5, dtype=torch.bool).tril(-1)
    gold = gold_graph(q, k, mask)
    assert gold.dtype == torch.bool
    assert not gold[:, :, 0].any()
    assert gold[:, :, 1:].any(-1).all()
    assert not (gold & ~mask).any()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_gold_graph_of_half_precision_is_computed_in_float32(dtype):
    q, k, _ = queries_keys_values(40, 40, dtype=dtype)
    assert torch.equal(gold_graph(q, k), gold_graph(q.float(), k.float()))
    assert not torch.equal(gold_graph(q, k), attention_weights(q, k) > 0)  # or nothing was tested


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda q, k, v: (q[:1], k, v), "`q` and `k`"),
        (lambda q, k, v: (q[:, :2], k, v), "`q` and `k`"),
        (lambda q, k, v: (q[..., :3], k, v), "`q` and `k`"),
        (lambda q, k, v: (q, k, v[:, :, :4]), "`k` and `v`"),
        (lambda q, k, v: (q, k, v[:, :2]), "`k` and `v`"),
        (lambda q, k, v: (q, k, v, torch.ones(5, 5)), "`mask`"),
    ],
)
def test_errors_name_the_argument(change, named):
    with pytest.raises(ValueError, match=named):
        attention(*change(*queries_keys_values()))


@pytest.mark.parametrize("normalizer", [torch.softmax, entmax15, sparsemax], ids=["softmax", "entmax15", "sparsemax"])
@pytest.mark.parametrize("filled", [torch.nan, torch.inf])
@pytest.mark.parametrize("shape", [(2, 1, 6, 6), (2, 1, 1, 6), (6,)])
def test_hidden_tokens_may_be_nan(shape, filled, normalizer):
    """Keys that no query sees, and queries that see no key, change neither the other rows nor any gradient."""
    mask = torch.ones(shape, dtype=torch.bool)
    mask[..., 4:] = False
    if len(shape) == 4 and shape[2] == 6:
        mask[1, :, 5:] = False
    results = []
    for value in (0.0, filled):
        leaves = torch.randn(3, 2, 3, 6, 4, generator=torch.Generator().manual_seed(0)).unbind(0)
        for x in leaves[1:]:
            x[:, :, 4:] = value
        if len(shape) == 4 and shape[2] == 6:
            leaves[0][1, :, 5:] = value
        leaves = [x.requires_grad_() for x in leaves]
        output, weights = attention(*leaves, mask, normalizer=lambda x: normalizer(x, dim=-1))
        results.append([output, weights, *torch.autograd.grad(output.square().sum(), leaves)])
    for x, y in zip(*results, strict=True):
        assert x.isfinite().all()
        torch.testing.assert_close(x, y)
