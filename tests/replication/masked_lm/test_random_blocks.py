"""BigBird's random blocks: where they lie, how many they are, and that draws are fair."""

from collections import Counter

import pytest
import torch
from scipy.stats import chisquare

from replication.masked_lm.random_blocks import RandomBlocks


@pytest.mark.parametrize("count", [1, 2, 40])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("lengths", [[1, 1, 1], [7, 3, 6], [16, 9, 1], [0, 6, 4]])
def test_they_lie_outside_window_and_global_blocks_and_are_as_many_as_asked(lengths, causal, count):
    n = max(lengths)
    q, k = torch.randn(2, 3, 2, n, 4, generator=torch.Generator().manual_seed(0))
    found = RandomBlocks(count).predict(q, k, lengths=lengths, causal=causal)
    assert found.shape == (3, 2, n, min(count, n))
    for b, h, i in torch.cartesian_prod(*map(torch.arange, found.shape[:3])).tolist():
        row = [j for j in found[b, h, i].tolist() if j != n]
        visible = set(range(i + 1 if causal else lengths[b])) if i < lengths[b] else set()
        free = visible - {0, i - 1, i, i + 1, lengths[b] - 1}
        assert len(set(row)) == len(row) == min(count, len(free))
        assert set(row) <= free


def test_random_blocks_are_uniform_and_draws_of_a_row_are_pairs_of_equal_chance():
    shape = torch.zeros(1, 4, 12, 1)
    drawn = torch.cat([RandomBlocks(2, seed).predict(shape, shape)[0, :, 5] for seed in range(500)])  # row 5
    pairs = Counter(tuple(sorted(pair)) for pair in drawn.tolist())
    free = [1, 2, 3, 7, 8, 9, 10]
    assert set(pairs) == {(a, b) for a in free for b in free if a < b}
    assert chisquare(list(pairs.values())).pvalue > 0.01


def test_heads_and_seeds_draw_apart_and_sentences_of_one_length_alike():
    shape = torch.zeros(2, 3, 30, 1)
    first, again, other = (RandomBlocks(4, seed).predict(shape, shape) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(first[0], first[1])
    assert not torch.equal(first[0, 0], first[0, 1])


def test_padding_changes_nothing_whatever_it_holds():
    q, k = torch.randn(2, 3, 2, 12, 4, generator=torch.Generator().manual_seed(0))
    predictor, lengths = RandomBlocks(2, seed=3), [12, 5, 1]
    reference = predictor.predict(q, k, lengths=lengths)
    longer = [torch.nn.functional.pad(x, (0, 0, 0, 7), value=torch.nan) for x in (q, k)]
    padded = predictor.predict(*longer, lengths=lengths)
    assert torch.equal(padded[:, :, :12].masked_fill(padded[:, :, :12] == 19, 12), reference)
    assert (padded[:, :, 12:] == 19).all()


def test_the_global_generator_is_left_alone():
    q, k = torch.randn(2, 3, 2, 12, 4, generator=torch.Generator().manual_seed(0))
    before = torch.get_rng_state()
    RandomBlocks(2).predict(q, k)
    assert torch.equal(before, torch.get_rng_state())


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="count"):
        RandomBlocks(0)
    with pytest.raises(ValueError, match="`q` and `k`"):
        RandomBlocks(2).predict(torch.zeros(3, 2, 6, 4), torch.zeros(3, 2, 7, 4))
