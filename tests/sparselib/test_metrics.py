"""Measures against sets of pairs."""

import pytest
import torch

from sparselib.metrics import empty_rows, exact_fraction, precision, recall, sparsity


def masks_of(n, lengths, density=0.3):
    generator = torch.Generator().manual_seed(n)
    return tuple(torch.rand(len(lengths), 2, n, n, generator=generator) < density for _ in range(2))


def pairs(mask, b, h, length, causal):
    visible = {(i, j) for i in range(length) for j in range(i + 1 if causal else length)}
    return visible if mask is None else {(i, j) for i, j in visible if mask[b, h, i, j]}


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("lengths", [[1, 1], [2, 1], [7, 4], [16, 5]])
def test_measures_equal_their_sets(lengths, causal):
    n = max(lengths)
    predicted, gold = masks_of(n, lengths)
    gold |= torch.eye(n, dtype=torch.bool)  # as entmax does, every row has an edge
    given_ = {"lengths": torch.tensor(lengths), "causal": causal}
    for b, length in enumerate(lengths):
        for h in range(2):
            ours, theirs = (pairs(mask, b, h, length, causal) for mask in (predicted, gold))
            visible = pairs(None, b, h, length, causal)
            exact = [{p for p in theirs if p[0] == i} <= ours for i in range(length)]
            empty = [not any(p[0] == i for p in ours) for i in range(length)]
            assert len(visible) == (length * (length + 1) // 2 if causal else length**2)
            assert recall(predicted, gold, **given_)[b, h] == len(ours & theirs) / len(theirs)
            share = len(ours & theirs) / len(ours) if ours else 1
            assert precision(predicted, gold, **given_)[b, h] == share
            assert sparsity(predicted, **given_)[b, h] == 1 - len(ours) / len(visible)
            assert exact_fraction(predicted, gold, **given_)[b, h] == sum(exact) / length
            assert empty_rows(predicted, **given_)[b, h] == sum(empty)


@pytest.mark.parametrize(("causal", "denominator"), [(False, 9), (True, 6)])
def test_sparsity_denominators_with_padding(causal, denominator):
    """n² and n(n+1)/2, n the real length."""
    one_edge = torch.zeros(1, 1, 5, 5, dtype=torch.bool)
    one_edge[0, 0, 0, 0] = one_edge[0, 0, 4, 4] = True  # the second is padding
    assert sparsity(one_edge, lengths=[3], causal=causal).item() == pytest.approx(1 - 1 / denominator)


def test_full_and_empty_predictions():
    _, gold = masks_of(6, [6, 6])
    full, none = torch.ones_like(gold), torch.zeros_like(gold)
    assert (recall(full, gold) == 1).all()
    assert (sparsity(full) == 0).all()
    assert (exact_fraction(full, gold) == 1).all()
    assert (empty_rows(full) == 0).all()
    assert (recall(none, gold) == 0).all()
    assert (precision(none, gold) == 1).all()  # nothing predicted, nothing wrong
    assert (recall(none, none) == 1).all()
    assert (sparsity(none) == 1).all()
    assert (empty_rows(none) == 6).all()


def test_no_sentences_have_no_measures():
    none = torch.zeros(0, 2, 3, 3, dtype=torch.bool)
    for value in (recall(none, none), sparsity(none), empty_rows(none)):
        assert value.shape == (0, 2)


def test_measures_are_float64_per_sentence_and_head():
    predicted, gold = masks_of(6, [6, 4])
    for value in (recall(predicted, gold), precision(predicted, gold), exact_fraction(predicted, gold)):
        assert value.shape == (2, 2)
        assert value.dtype == torch.float64


@pytest.mark.parametrize(
    ("measure", "named"),
    [
        (lambda mask: recall(mask, mask[..., :3]), "shape"),
        (lambda mask: exact_fraction(mask, mask[:, :1]), "shape"),
        (lambda mask: recall(mask.float(), mask.float()), "Bool"),
        (lambda mask: sparsity(mask[0]), "Bool"),
        (lambda mask: sparsity(mask, lengths=[5]), "lengths"),
        (lambda mask: empty_rows(mask, lengths=[-1]), "lengths"),
        (lambda mask: sparsity(mask[..., :3], causal=True), "as many queries as keys"),
    ],
)
def test_errors_name_what_is_wrong(measure, named):
    with pytest.raises(ValueError, match=named):
        measure(torch.ones(1, 2, 4, 4, dtype=torch.bool))
