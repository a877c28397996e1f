"""Factorised patterns by name against their sets, written as loops."""

import pytest
import torch

from sparselib.forms import FACTORISED, factorised
from sparselib.masks import HEAD_COMBINATIONS

STRIDE, SUMMARY, HEADS, N = 4, 2, 3, 14


def part(pattern, number, i, j):
    """Section 4.3 of Child et al.: whether j is in A1 (0) or A2 (1) of i."""
    if j > i:
        return False
    if pattern == "strided":
        return j >= i - STRIDE if number == 0 else (i - j) % STRIDE == 0
    return j // STRIDE == i // STRIDE if number == 0 else j % STRIDE in range(STRIDE - SUMMARY, STRIDE)


@pytest.mark.parametrize("layer", [0, 1, 4])
@pytest.mark.parametrize("heads", HEAD_COMBINATIONS)
@pytest.mark.parametrize("pattern", FACTORISED)
def test_every_layer_equals_its_double_loop(pattern, heads, layer):
    predictor = factorised(pattern, STRIDE, heads=heads, summary=SUMMARY if pattern == "fixed" else None, layer=layer)
    found = predictor.predict(*torch.randn(2, 1, HEADS, N, 8), causal=True)
    for h in range(HEADS):
        numbers = {"interleaved": [layer % 2], "merged": [0, 1], "per_head": [h % 2]}[heads]
        for i in range(N):
            for j in range(N):
                assert found[0, h, i, j] == any(part(pattern, number, i, j) for number in numbers), (h, i, j)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("dilated", 4), "`pattern` must be one of strided, fixed"),
        (("strided", 0), "`stride` must be at least 1"),
        (("strided", 4, 2), "`summary` must be given for fixed and left out for strided, got 2 for strided"),
        (("fixed", 4), "`summary` must be given for fixed and left out for strided, got None for fixed"),
        (("fixed", 4, 5), "`summary` must be in 1..4"),
    ],
)
def test_names_and_numbers_out_of_range_are_named(arguments, message):
    pattern, stride, *summary = arguments
    with pytest.raises(ValueError, match=message):
        factorised(pattern, stride, summary=summary[0] if summary else None)
