"""What holds for both models: no look-ahead, a bounded memory without gradient, and the shift to relative positions."""

import pytest
import torch
from characters import SPAN, XL, read, some_text, trained
from drawing import drawn

from replication.char_lm.models import build_model
from replication.char_lm.recurrent import distances, relative_shift

STRIDED = {"pattern": "strided", "stride": 4}
MODELS = {"XL": XL, "XL, top 3": XL | {"top_k": 3}, "span": SPAN, "span, top 3": SPAN | {"top_k": 3}}


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    return trained(MODELS[request.param])


@pytest.mark.parametrize("length", [1, 7, 20])
def test_segments_with_a_memory_equal_the_whole(model, length):
    ids = some_text(40)
    torch.testing.assert_close(read(model, ids, length), read(model, ids, 40), rtol=0, atol=1e-10)


def test_a_short_memory_forgets():
    forgetful, ids = trained(XL | {"memory_length": 4}), some_text(40)
    assert (read(forgetful, ids, 10) - read(forgetful, ids, 40)).abs().max() > 1e-3


@pytest.mark.parametrize("length", [10, 40])
@pytest.mark.parametrize("changed", [1, 17, 39])
def test_later_characters_change_no_earlier_logits(model, length, changed):
    ids = some_text(40)
    other = ids.clone()
    other[:, changed] = (other[:, changed] + 1) % 5 + 1
    before, after = read(model, ids, length), read(model, other, length)
    assert torch.equal(before[:, :changed], after[:, :changed])
    assert not torch.equal(before[:, changed:], after[:, changed:])


@pytest.mark.parametrize("bound", [0, 3, 25])
def test_memory_is_bounded_and_has_no_gradient(bound):
    model = build_model(XL | {"memory_length": bound}, 60, seed=0)
    memory = None
    for read_so_far in (10, 20, 30, 40):
        logits, memory = model(torch.ones(2, 10, dtype=torch.long), memory)
        assert [tuple(layer.shape) for layer in memory] == [(2, min(bound, read_so_far), 16)] * 2
        assert logits.requires_grad
        assert not any(layer.requires_grad for layer in memory)


def test_observers_see_every_layers_weights_once(model):
    seen = []
    with torch.no_grad():
        model(some_text(12), None, lambda layer, weights: seen.append((layer, tuple(weights.shape))))
    assert seen == [(0, (2, 2, 12, 12)), (1, (2, 2, 12, 12))]


@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (4, 4), (3, 8), (1, 6)])
def test_shifting_equals_its_double_loop(queries, keys):
    by_distance = drawn(2, 3, queries, keys)
    shifted, distance = relative_shift(by_distance), distances(queries, keys, by_distance.device)
    for i in range(queries):
        for j in range(keys):
            expected = keys - queries + i - j
            assert distance[i, j] == expected
            if expected >= 0:
                assert torch.equal(shifted[..., i, j], by_distance[..., i, keys - 1 - expected])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (XL | {"architecture": "lstm"}, "`architecture` must be one of transformer_xl, adaptive_span"),
        (XL | {"top_k": 0}, "`top_k` must be at least 1"),
        (XL | {"form": "Window"}, "`form` and `budget` must be given together"),
        (XL | {"form": "Windows", "budget": 2}, "`name` must be one of Full, Block"),
        (XL | {"top_k": 2, "form": "Window", "budget": 2}, "`top_k`, `form` and `factorised` exclude each other"),
        (SPAN | {"factorised": STRIDED, "form": "Window", "budget": 2}, "`form` and `factorised` exclude each other"),
        (SPAN | {"factorised": STRIDED | {"stride": 0}}, "`stride` must be at least 1"),
        (XL | {"memory_length": -1}, "`memory_length` must be at least 0"),
        (XL | {"heads": 3}, "`dimension` must be a multiple of `heads` 3, got 16"),
        (SPAN | {"maximal_span": 0}, "`maximal_span` must be at least 1"),
        (SPAN | {"ramp": 0}, "`ramp` must be at least 1"),
        (SPAN | {"initial_span": 1.5}, "`initial_span` must be a share of `maximal_span`"),
    ],
)
def test_settings_out_of_range_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        build_model(settings, 60, seed=0)


def test_a_missing_size_is_named():
    settings = {key: value for key, value in XL.items() if key not in ("layers", "top_k")}
    with pytest.raises(TypeError, match="layers"):
        build_model(settings, 60, seed=0)


def test_building_leaves_the_global_generator_alone():
    state = torch.get_rng_state()
    first, second = build_model(XL, 60, seed=1), build_model(XL, 60, seed=1)
    assert torch.equal(state, torch.get_rng_state())
    assert torch.equal(first.embedding.weight, second.embedding.weight)
