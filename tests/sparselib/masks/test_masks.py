"""Position patterns against double loops written from their definitions, and FlexAttention reading them."""

import doctest
import importlib
import inspect
import math
import pkgutil

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sparselib import masks

LENGTHS = [1, 2, 7, 16]


def looped(n, allowed):
    """The five-line twin: ask `allowed(i, j)` for every pair."""
    table = torch.zeros(n, n, dtype=torch.bool)
    for i in range(n):
        for j in range(n):
            table[i, j] = allowed(i, j)
    return table


def two_steps(second, first):
    """The query attends by `second` to some position that attends by `first` to the key."""
    return second.float() @ first.float() > 0


def dense(pattern, n):
    return masks.to_dense(pattern, 1, 1, n)[0, 0]


def in_window(i, j, width):
    return width > 0 and -math.ceil(width / 2) + 1 <= j - i <= width // 2


PATTERNS = {
    "causal": (masks.causal(), lambda i, j: j <= i),
    "nothing": (masks.nothing(), lambda i, j: False),
    "window 0": (masks.sliding_window(0), lambda i, j: False),
    "window 4": (masks.sliding_window(4), lambda i, j: in_window(i, j, 4)),
    "window 5": (masks.sliding_window(5), lambda i, j: in_window(i, j, 5)),
    "dilated 3, 2": (masks.dilated(3, 2), lambda i, j: j - i in (-2, 0, 2)),
    "dilated 4, 3": (masks.dilated(4, 3), lambda i, j: j - i in (-3, 0, 3, 6)),
    "block 3": (masks.block(3), lambda i, j: i // 3 == j // 3),
    "global 0, 4": (masks.global_tokens([0, 4]), lambda i, j: i in (0, 4) or j in (0, 4)),
    "no globals": (masks.global_tokens([]), lambda i, j: False),
    "strided 4": (masks.strided(4), lambda i, j: j <= i and (i - j <= 4 or (i - j) % 4 == 0)),
    "fixed 4, 2": (masks.fixed(4, 2), lambda i, j: j <= i and (i // 4 == j // 4 or j % 4 in (2, 3))),
    "union": (masks.union(masks.block(2), masks.causal()), lambda i, j: i // 2 == j // 2 or j <= i),
    "intersection": (
        masks.intersection(masks.block(4), masks.causal()),
        lambda i, j: i // 4 == j // 4 and j <= i,
    ),
}


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("name", PATTERNS)
def test_pattern_equals_its_loop(name, n):
    pattern, allowed = PATTERNS[name]
    assert torch.equal(dense(pattern, n), looped(n, allowed))


@pytest.mark.parametrize(
    ("width", "first", "last"),
    [(1, 0, 0), (2, 0, 1), (3, -1, 1), (4, -1, 2), (5, -2, 2), (11, -5, 5), (12, -5, 6), (251, -125, 125)],
)
def test_window_offsets_of_spec_section_4(width, first, last):
    middle = 300
    columns = dense(masks.sliding_window(width), 601)[middle].nonzero().flatten() - middle
    assert columns.tolist() == list(range(first, last + 1))
    assert len(columns) == width


def test_causal_window_of_11_is_self_and_5_previous():
    row = dense(masks.intersection(masks.sliding_window(11), masks.causal()), 40)[20]
    assert row.nonzero().flatten().tolist() == [15, 16, 17, 18, 19, 20]


def test_window_of_the_sentence_length_covers_three_quarters_and_1023_all():
    assert dense(masks.sliding_window(512), 512).double().mean() == pytest.approx(0.75, abs=1e-3)
    assert dense(masks.sliding_window(1023), 512).all()
    assert not dense(masks.sliding_window(1022), 512).all()


@given(width=st.integers(0, 20))
@settings(deadline=None)
def test_dilation_1_is_the_window(width):
    assert torch.equal(dense(masks.dilated(width, 1), 12), dense(masks.sliding_window(width), 12))


@given(n=st.integers(1, 40), stride=st.integers(1, 9), data=st.data())
@settings(deadline=None)
def test_two_steps_of_a_factorised_pattern_reach_every_earlier_position(n, stride, data):
    summary = data.draw(st.integers(1, stride))
    triangle = torch.ones(n, n, dtype=torch.bool).tril()
    near, far = (dense(part, n) for part in masks.strided_parts(stride))
    assert torch.equal(two_steps(far, near), triangle)
    near, far = (dense(part, n) for part in masks.fixed_parts(stride, summary))
    assert torch.equal(two_steps(far, near) | near, triangle)


@given(n=st.integers(1, 30), stride=st.integers(1, 7), how=st.sampled_from(sorted(masks.HEAD_COMBINATIONS)))
@settings(deadline=None)
def test_two_layers_reach_every_earlier_position_however_heads_are_combined(n, stride, how):
    """Through any head, keeping a position (a residual connection) where a layer's part lacks it."""
    triangle = torch.ones(n, n, dtype=torch.bool).tril()
    for parts in (masks.strided_parts(stride), masks.fixed_parts(stride, 1)):
        layers = [masks.to_dense(masks.combined(parts, how, layer), 1, 2, n)[0].any(0) for layer in range(2)]
        reached = two_steps(layers[1] | torch.eye(n, dtype=torch.bool), layers[0])
        assert torch.equal(reached, triangle)


@pytest.mark.parametrize("parts", [masks.strided_parts(4), masks.fixed_parts(4, 2)], ids=["strided", "fixed"])
def test_heads_combine_in_three_ways(parts):
    first, second = (dense(part, 12) for part in parts)

    def heads(how, layer):
        return list(masks.to_dense(masks.combined(parts, how, layer), 1, 3, 12)[0])

    for layer in range(4):
        expected = {
            "interleaved": [(first, second)[layer % 2]] * 3,
            "merged": [first | second] * 3,
            "per_head": [first, second, first],
        }
        for how, wanted in expected.items():
            assert all(torch.equal(one, other) for one, other in zip(heads(how, layer), wanted, strict=True))


def test_fixed_pattern_misses_its_own_block_without_the_direct_step():
    near, far = (dense(part, 16) for part in masks.fixed_parts(4, 1))
    assert not torch.equal(two_steps(far, near), torch.ones(16, 16, dtype=torch.bool).tril())


def test_strided_parts_have_their_sizes_and_hold_the_query_itself():
    near, far = (dense(part, 16) for part in masks.strided_parts(4))
    assert near[15].nonzero().flatten().tolist() == [11, 12, 13, 14, 15]
    assert far[15].nonzero().flatten().tolist() == [3, 7, 11, 15]


def test_fixed_summary_columns_of_stride_128_and_8_are_120_to_127():
    columns = dense(masks.fixed_parts(128, 8)[1], 256)[255].nonzero().flatten().tolist()
    assert columns == [*range(120, 128), *range(248, 256)]


@pytest.mark.parametrize("which", ["first", "first_last"])
def test_sequence_globals_follow_the_real_length(which):
    lengths = [1, 4, 7]
    built = masks.to_dense(masks.sequence_globals(torch.tensor(lengths), which), 3, 2, 7)
    for sentence, length in enumerate(lengths):
        tokens = {0} if which == "first" else {0, length - 1}
        expected = looped(7, lambda i, j, tokens=tokens: i in tokens or j in tokens)
        assert torch.equal(built[sentence, 0], expected)
        assert torch.equal(built[sentence, 1], expected)


def test_an_empty_sentence_has_no_last_token():
    built = masks.to_dense(masks.sequence_globals([0, 3], "first_last"), 2, 1, 4)
    assert torch.equal(
        built[0, 0], dense(masks.global_tokens([0]), 4)
    )  # no token of the padding but the first position
    assert torch.equal(built[1, 0], dense(masks.global_tokens([0, 2]), 4))


def test_to_dense_broadcasts_and_takes_unequal_sides():
    built = masks.to_dense(masks.causal(), 2, 3, 4, 6)
    assert built.shape == (2, 3, 4, 6)
    assert built.is_contiguous()
    assert torch.equal(built[1, 2], torch.ones(4, 6, dtype=torch.bool).tril())


MODULES = [f"sparselib.masks.{module.name}" for module in pkgutil.iter_modules(masks.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run_and_no_public_function_lacks_one(name):
    module = importlib.import_module(name)
    assert doctest.testmod(module, extraglobs={"masks": masks, "torch": torch}).failed == 0
    functions = {
        x: f for x, f in inspect.getmembers(module, inspect.isfunction) if f.__module__ == name and x[0] != "_"
    }
    assert [x for x, function in functions.items() if ">>>" not in function.__doc__] == []


def test_flex_attention_reads_every_pattern():
    flex = pytest.importorskip("torch.nn.attention.flex_attention")
    ragged = masks.sequence_globals(torch.tensor([7, 16]), "first_last")
    for pattern in [ragged, *(pattern for pattern, _ in PATTERNS.values())]:
        read = flex.create_mask(pattern, 2, 2, 16, 16, device="cpu")
        assert torch.equal(read, masks.to_dense(pattern, 2, 2, 16))


@pytest.mark.parametrize(
    ("build", "named"),
    [
        (lambda: masks.sliding_window(-1), "width"),
        (lambda: masks.dilated(-1, 1), "width"),
        (lambda: masks.dilated(3, 0), "dilation"),
        (lambda: masks.block(0), "size"),
        (lambda: masks.global_tokens([0, -1]), "positions"),
        (lambda: masks.strided(0), "stride"),
        (lambda: masks.fixed(0, 1), "stride"),
        (lambda: masks.fixed(4, 0), "summary"),
        (lambda: masks.fixed(4, 5), "summary"),
        (lambda: masks.combined(masks.strided_parts(4), "stacked"), "how"),
        (lambda: masks.combined([], "merged"), "parts"),
        (lambda: masks.combined(masks.strided_parts(4), "merged", -1), "layer"),
        (lambda: masks.sequence_globals([3], "last"), "which"),
        (lambda: masks.sequence_globals([-1], "first"), "lengths"),
        (lambda: masks.sequence_globals([2.0], "first"), "lengths"),
        (lambda: masks.to_dense(masks.causal(), 1, 0, 4), "heads"),
    ],
)
def test_errors_name_the_argument(build, named):
    with pytest.raises(ValueError, match=named):
        build()
