"""The one place where learned edges, window, global tokens, padding and causality meet."""

import math

import pytest
import torch
from drawing import drawn_mask

from sparselib.masks.combine import combine

LENGTHS = [16, 7, 2, 1]


def predicted_edges(n=16):
    return drawn_mask(len(LENGTHS), 2, n, n, density=0.1)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("which", ["none", "first", "first_last"])
@pytest.mark.parametrize("window", [0, 1, 4, 5])
def test_equals_its_loop(window, which, causal):
    predicted = predicted_edges()
    mask = combine(predicted, window, which, LENGTHS, causal)
    for b, length in enumerate(LENGTHS):
        tokens = {"none": set(), "first": {0}, "first_last": {0, length - 1}}[which]
        for h in range(2):
            for i in range(16):
                for j in range(16):
                    near = window > 0 and -math.ceil(window / 2) + 1 <= j - i <= window // 2
                    wanted = bool(predicted[b, h, i, j]) or near or i in tokens or j in tokens
                    allowed = i < length and j < length and (j <= i or not causal)
                    assert mask[b, h, i, j] == (wanted and allowed)


def test_without_anything_added_it_is_the_prediction():
    predicted = predicted_edges()
    assert torch.equal(combine(predicted), predicted)


def test_first_last_takes_the_padded_end_only_when_it_is_real():
    mask = combine(torch.zeros(1, 1, 5, 5, dtype=torch.bool), 0, "first_last", [3])
    assert mask[0, 0].nonzero().unique().tolist() == [0, 1, 2]
    assert mask[0, 0, 2, :3].all()


def test_first_token_of_a_decoder_adds_its_column_only():
    mask = combine(torch.zeros(1, 1, 5, 5, dtype=torch.bool), 0, "first", causal=True)
    assert mask[0, 0, 0].tolist() == [True, False, False, False, False]
    assert mask[0, 0, :, 0].all()
    assert mask.sum() == 5


def test_prediction_itself_is_left_alone():
    predicted = predicted_edges()
    kept = predicted.clone()
    combine(predicted, 3, "first", LENGTHS, True)
    assert torch.equal(predicted, kept)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((torch.zeros(1, 1, 4, 4),), "predicted"),
        ((torch.zeros(1, 1, 5, 4, dtype=torch.bool),), "predicted"),
        ((torch.zeros(1, 1, 3, 4, dtype=torch.bool), 0, "none", [4]), "lengths"),
        ((torch.zeros(4, 4, dtype=torch.bool),), "predicted"),
        ((torch.zeros(1, 1, 4, 4, dtype=torch.bool), -1), "width"),
        ((torch.zeros(1, 1, 4, 4, dtype=torch.bool), 0, "last"), "global_tokens"),
        ((torch.zeros(1, 1, 4, 4, dtype=torch.bool), 0, "first", [5]), "lengths"),
    ],
)
def test_errors_name_the_argument(arguments, named):
    with pytest.raises(ValueError, match=named):
        combine(*arguments)


@pytest.mark.parametrize("rows", [1, 2, 6])
def test_fewer_queries_than_keys_are_the_last_ones(rows):
    """A step of incremental decoding has the last rows of the whole."""
    predicted = drawn_mask(2, 3, 6, 6, density=0.2)
    whole = combine(predicted, 3, "first", causal=True)
    assert torch.equal(combine(predicted[:, :, -rows:], 3, "first", causal=True), whole[:, :, -rows:])
