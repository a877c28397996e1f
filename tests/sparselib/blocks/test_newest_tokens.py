"""The newest tokens of a cache: the decoding kernel computes them, and gives what dense attention gives."""

import pytest
import torch

from sparselib.control import AttentionControl, block_attention
from sparselib.dense_attention import PLAIN, Scoring, attention_weights
from sparselib.kernels import BlockMask
from sparselib.masks.visible import described

BATCH, HEADS, KEY_HEADS, KEYS = 2, 4, 2, 13


def tensors(queries):
    generator = torch.Generator().manual_seed(0)
    q = torch.randn(BATCH, HEADS, queries, 8, generator=generator, dtype=torch.float64)
    return q, *torch.randn(2, BATCH, KEY_HEADS, KEYS, 8, generator=generator, dtype=torch.float64)


def prefix(queries, *lengths):
    """Return the mask of the last tokens among the first `lengths` keys, with a row for each length."""
    last = torch.tensor(lengths)[:, None] - torch.arange(queries - 1, -1, -1)
    return (torch.arange(1, KEYS + 1) <= last[..., None])[:, None]


def block_mask(heads, queries, batch=1):
    dense = torch.rand(batch, heads, 1, 4, generator=torch.Generator().manual_seed(1)) < 0.5
    dense[..., 0] = True
    return BlockMask.from_dense(dense, (queries, 4), (queries, KEYS))


@pytest.fixture
def decoded(monkeypatch):
    """Return the list of calls of the decoding kernel."""
    calls, decode = [], block_attention.block_sparse_entmax_decode
    monkeypatch.setattr(
        block_attention, "block_sparse_entmax_decode", lambda *x, **kw: calls.append(x) or decode(*x, **kw)
    )
    return calls


def visited(q, k, v, visible, blocks, scoring=PLAIN, cross=()):
    control = AttentionControl(layers=1, cross_layers=frozenset(cross))
    with control.visiting(lambda *_: blocks, alpha=1.5):
        return control.visited(0, q, k, v, visible, scoring)


def dense(q, k, v, visible, blocks, scoring=PLAIN):
    k, v = (x.repeat_interleave(HEADS // KEY_HEADS, dim=1) for x in (k, v))
    mask = q.new_ones(BATCH, 1, q.shape[2], KEYS, dtype=torch.bool) if visible is None else visible
    if blocks is not None:
        allowed = blocks.to_dense().repeat_interleave(4, -1)[..., :KEYS]
        if allowed.shape[1] == KEY_HEADS:
            allowed = allowed.repeat_interleave(HEADS // KEY_HEADS, dim=1)
        mask = mask & allowed
    return attention_weights(q, k, mask, scoring=scoring) @ v


NEWEST = {
    "one token": (1, None),
    "one token, a mask": (1, prefix(1, KEYS)),
    "unused places": (1, prefix(1, 9, 4)),
    "a shared mask": (1, prefix(1, 9)),
    "a mask per head": (1, prefix(1, 9, 4).expand(-1, HEADS, -1, -1)),
    "three tokens": (3, prefix(3, KEYS)),
    "three tokens, unused places": (3, prefix(3, 9, 5)),
}


@pytest.mark.parametrize("heads", [None, 1, KEY_HEADS, HEADS])
@pytest.mark.parametrize("cross", [(), (0,)])
@pytest.mark.parametrize("case", NEWEST)
def test_newest_tokens_are_decoded(case, cross, heads, decoded):
    queries, visible = NEWEST[case]
    q, k, v = tensors(queries)
    blocks = None if heads is None else block_mask(heads, queries, BATCH)
    found = visited(q, k, v, visible, blocks, cross=cross)
    assert len(decoded) == 1
    torch.testing.assert_close(found, dense(q, k, v, visible, blocks))


HIDING_MORE = {
    "padding on the left": prefix(1, KEYS, KEYS) & (torch.arange(KEYS) > torch.tensor([[0], [-1]]))[:, None, None],
    "a window": prefix(2, KEYS, 9) & (torch.arange(KEYS) > 3),
    "later tokens attend to each other": torch.ones(BATCH, 1, 2, KEYS, dtype=torch.bool),
    "a hole": prefix(1, KEYS) & (torch.arange(KEYS) != 5),
}


@pytest.mark.parametrize("case", HIDING_MORE)
def test_other_masks_are_rules(case, decoded):
    visible = HIDING_MORE[case]
    q, k, v = tensors(visible.shape[2])
    assert not described(visible).newest
    found = visited(q, k, v, visible, None)
    torch.testing.assert_close(found, dense(q, k, v, visible, None))
    assert not decoded


def test_soft_caps_and_gradients_are_not_decoded(decoded):
    q, k, v = tensors(1)
    visible, capped = prefix(1, 9, 4), Scoring(softcap=2.0)
    torch.testing.assert_close(visited(q, k, v, visible, None, capped), dense(q, k, v, visible, None, capped))
    q.requires_grad_()
    torch.testing.assert_close(visited(q, k, v, visible, None), dense(q, k, v, visible, None))
    assert not decoded
    with torch.no_grad():
        visited(q, k, v, visible, None)
    assert len(decoded) == 1


def test_parts_of_a_prompt_are_not_decoded(decoded, monkeypatch):
    monkeypatch.setattr(block_attention, "MOST_NEW_TOKENS", 2)
    q, k, v = tensors(3)
    visible = prefix(3, KEYS)
    torch.testing.assert_close(visited(q, k, v, visible, None), dense(q, k, v, visible, None))
    assert not decoded
