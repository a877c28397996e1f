"""The transformer of Sparse Transformers: places as rows and columns, and attention to what a pattern says."""

import pytest
import torch
from characters import SIZES, some_text, trained

from replication.char_lm.models import build_model
from sparselib import masks

DENSE = {"architecture": "matrix_transformer", "top_k": None, "length": 20, "width": 5} | SIZES
PATTERNS = {
    "strided": ({"pattern": "strided", "stride": 5}, masks.strided_parts(5)),
    "fixed": ({"pattern": "fixed", "stride": 5, "summary": 2}, masks.fixed_parts(5, 2)),
}


def seen(model, ids) -> list[torch.Tensor]:
    """The weights of every layer."""
    found = []
    with torch.no_grad():
        model(ids, None, lambda layer, weights: found.append(weights))
    return found


def test_attention_is_pytorchs():
    model, hidden = trained(DENSE), torch.randn(2, 20, SIZES["dimension"], dtype=torch.float64)
    attention = model.layers[0].attention
    ours, _ = attention(hidden, hidden, None)
    q, k, v = attention.project(hidden, hidden)
    theirs = attention.project.merge(torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True))
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("heads", masks.HEAD_COMBINATIONS)
@pytest.mark.parametrize("name", PATTERNS)
def test_every_layer_attends_to_its_pattern_and_to_no_more(name, heads):
    pattern, parts = PATTERNS[name]
    model = trained(DENSE | {"factorised": pattern | {"heads": heads}})
    for layer, weights in enumerate(seen(model, some_text(20))):
        allowed = masks.to_dense(masks.combined(parts, heads, layer), 2, 2, 20)
        assert torch.equal(weights > 0, allowed)


def test_later_symbols_change_no_earlier_logits():
    model, ids = trained(DENSE), some_text(20)
    other = ids.clone()
    other[:, 11] = (other[:, 11] + 1) % 5 + 1
    with torch.no_grad():
        (before, memory), (after, _) = model(ids), model(other)
    assert torch.equal(before[:, :11], after[:, :11])
    assert not torch.equal(before[:, 11:], after[:, 11:])
    assert [layer.shape[1] for layer in memory] == [0, 0]


def test_equal_symbols_are_told_apart_by_row_and_by_column():
    model = trained(DENSE)
    with torch.no_grad():
        embedded = model.embed(torch.ones(1, 20, dtype=torch.long))[0]
    assert len(torch.unique(embedded, dim=0)) == 20
    # A row and a column each: differences between columns are the same in every row.
    torch.testing.assert_close(embedded[1] - embedded[0], embedded[6] - embedded[5], rtol=0, atol=1e-12)


def test_a_segment_that_is_too_long_is_refused():
    with pytest.raises(ValueError, match="`ids` must have at most 20 positions per segment, got 21"):
        build_model(DENSE, 60, seed=0)(torch.ones(1, 21, dtype=torch.long))
