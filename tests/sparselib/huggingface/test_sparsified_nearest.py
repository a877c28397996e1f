"""Models sparsified by predicting blocks: the nearest blocks, both ways to run the model, and refusals."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_models import made, output, text

from sparselib.huggingface import Sparsified, sparsify
from sparselib.huggingface.blocks import _layer_blocks
from sparselib.huggingface.heads import Setting
from sparselib.huggingface.layers import Layer
from sparselib.huggingface.nearest import Nearest
from sparselib.projections import Projection

OPTIONS = {"recall": 0.8, "confidence": 0.5, "gold": "entmax:1.5", "predictors": ("blocks",), "block": 4}


def nearest_by_hand(q, k, length, size, count):
    """Return, for each query block of a sentence, the numbers of the nearest key blocks, as a set."""
    starts = range(0, length, size)
    queries, keys = ([x[start : min(start + size, length)].mean(0) for start in starts] for x in (q, k))
    return [
        set(sorted(range(len(keys)), key=lambda j: (query - keys[j]).square().sum().item())[:count])
        for query in queries
    ]


@given(
    lengths=st.lists(st.integers(1, 13), min_size=1, max_size=3),
    eighths=st.lists(st.integers(1, 8), min_size=1, max_size=3),
    size=st.integers(1, 5),
    seed=st.integers(0, 1000),
)
def test_blocks_are_the_nearest_of_a_double_loop(lengths, eighths, size, seed):
    generator = torch.Generator().manual_seed(seed)
    n = max(lengths)
    q, k = (torch.randn(len(lengths), len(eighths), n, 3, generator=generator, dtype=torch.float64) for _ in range(2))
    predictor = Nearest(torch.tensor(eighths) / 8, size)
    blocks, pairs = predictor.blocks(q, k, lengths), predictor.predict(q, k, lengths=lengths)
    for sentence, length in enumerate(lengths):
        for head, share in enumerate(eighths):
            blocks_of_length = -(-length // size)
            count = -(-blocks_of_length * share // 8)
            expected = nearest_by_hand(q[sentence, head], k[sentence, head], length, size, count)
            for query, keys in enumerate(expected):
                assert set(blocks[sentence, head, query].nonzero().flatten().tolist()) == keys
            for i in range(n):
                allowed = [j for j in range(length) if i < length and j // size in expected[i // size]]
                assert pairs[sentence, head, i].nonzero().flatten().tolist() == allowed


@pytest.mark.parametrize("lengths", [None, [19, 7]])
def test_the_kernel_visits_the_blocks_of_the_predicted_pairs(lengths):
    generator = torch.Generator().manual_seed(0)
    q, k = (torch.randn(2, 3, 19, 8, generator=generator) for _ in range(2))
    projection = Projection(torch.randn(3, 8, 4, generator=generator), torch.zeros(3, 4))
    chosen = [Setting("blocks", share=0.4, size=4), Setting("dense"), Setting("blocks", share=0.2, size=4)]
    found = _layer_blocks(Layer(projection=projection, chosen=chosen), 4, q, k, lengths).to_dense()
    expected = Nearest(torch.tensor([0.4, 0.2]), 4).blocks(projection(q)[:, [0, 2]], projection(k)[:, [0, 2]], lengths)
    assert torch.equal(found[:, [0, 2]], expected)
    assert found[:, 1].all()
    assert expected.float().mean() < 0.5


def test_a_model_computes_the_same_over_pairs_and_over_blocks_also_when_loaded(tmp_path):
    model = made("bert")
    result = sparsify(model, text(12), **OPTIONS)
    sparse = [head for head in result.report.heads if head.predictor != "dense"]
    assert sparse
    assert all("of 4" in head.predictor and head.sparsity >= 0.1 for head in sparse)
    inputs = text(1, seed=4)[0]
    real = inputs["attention_mask"].bool()
    result.save(tmp_path)
    loaded = Sparsified.load(model, tmp_path)
    assert loaded.report == result.report
    with loaded:
        by_pairs = output(model, inputs)[real]
    with loaded.to_blocks(4):
        torch.testing.assert_close(output(model, inputs)[real], by_pairs, atol=1e-4, rtol=1e-4)
    assert (output(model, inputs)[real] - by_pairs).abs().max() > 1e-3


def test_blocks_of_another_size_are_refused():
    result = sparsify(made("bert"), text(12), **OPTIONS)
    with pytest.raises(ValueError, match="`size` must be 4, for which layer 0 was tuned, got 8"):
        result.to_blocks(8)


@pytest.mark.parametrize(
    ("model", "changed", "message"),
    [
        ("gpt2", {}, "`predictors` must not be blocks for GPT2.*, a decoder"),
        ("bert", {"predictors": ("blocks", "window")}, "`predictors` must be blocks alone"),
        ("bert", {"block": 0}, "`block` must be at least 1"),
    ],
)
def test_what_cannot_be_predicted_as_blocks_is_refused(model, changed, message):
    with pytest.raises(ValueError, match=message):
        sparsify(made(model), text(12), **OPTIONS | changed)


@pytest.mark.parametrize(
    "numbers", [{"share": 0.5}, {"size": 4}, {"share": -0.5, "size": 4}, {"share": 1.5, "size": 4}]
)
def test_settings_of_blocks_need_a_share_and_a_size(numbers):
    with pytest.raises(ValueError, match="must be"):
        Setting("blocks", **numbers)
