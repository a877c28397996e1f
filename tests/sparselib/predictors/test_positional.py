"""Position patterns as predictors: the pattern, cut to what is visible."""

import pytest
import torch

from sparselib import masks
from sparselib.predictors import BigBird, Longformer, Nothing, Positional


class Made(Positional):
    """A pattern that is made for the real lengths."""

    def __init__(self, make):
        self.make = make

    def pattern(self, lengths, heads):
        return self.make(lengths, heads)


def test_nothing_predicts_nothing(case):
    assert not case.predict(Nothing()).any()


def test_pattern_is_cut_to_visible_pairs(case):
    predictor = Made(lambda lengths, heads: masks.block(3))
    assert torch.equal(case.predict(predictor), case.looped(lambda b, h, i, j: i // 3 == j // 3))


def test_pattern_is_made_for_the_real_lengths(case):
    predictor = Made(lambda lengths, heads: masks.sequence_globals(lengths, "first_last"))

    def edge(b, h, i, j):
        return i in (0, case.lengths[b] - 1) or j in (0, case.lengths[b] - 1)

    assert torch.equal(case.predict(predictor), case.looped(edge))


@pytest.mark.parametrize("scope", ["uniform", "official_plan"])
def test_bigbird_is_its_mask_with_the_seed(case, scope):
    generator = torch.Generator().manual_seed(5)
    pattern = masks.bigbird(2, case.lengths, 2, generator, scope)
    expected = masks.to_dense(pattern, 3, 2, max(case.lengths))
    assert torch.equal(case.predict(BigBird(2, 5, scope)), case.looped(lambda *pair: expected[pair]))


def test_longformer_is_its_mask_with_the_seed(case):
    pattern = masks.longformer(2, case.lengths, torch.Generator().manual_seed(5))
    expected = masks.to_dense(pattern, 3, 2, max(case.lengths))
    assert torch.equal(case.predict(Longformer(2, 5)), case.looped(lambda *pair: expected[pair]))


@pytest.mark.parametrize("make", [Longformer, BigBird])
def test_seed_chooses_the_draw(make):
    x = torch.zeros(1, 2, 40, 4)
    assert not torch.equal(make(3, seed=0).predict(x, x), make(3, seed=1).predict(x, x))


@pytest.mark.parametrize(
    ("build", "named"),
    [
        (lambda: Longformer(-1), "global_count"),
        (lambda: BigBird(-1), "random_keys"),
        (lambda: BigBird(1, random_scope="near"), "random_scope"),
    ],
)
def test_errors_name_the_argument(build, named):
    with pytest.raises(ValueError, match=named):
        build()
