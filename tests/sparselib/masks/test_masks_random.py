"""Random patterns: their fixed part, the number and the distribution of the draws, and the seed."""

import itertools
import math
import random
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from sparselib import masks


def looped(n, allowed):
    """The twin: ask `allowed(i, j)` for every pair."""
    return torch.tensor([[bool(allowed(i, j)) for j in range(n)] for i in range(n)])


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("count", [0, 1, 4, 20])
def test_longformer_is_diagonal_rows_and_columns_of_distinct_real_positions(count):
    lengths = [3, 16, 1]
    built = masks.to_dense(masks.longformer(count, lengths, generator()), 3, 2, 16)
    assert torch.equal(built[:, 0], built[:, 1])
    for sentence, length in enumerate(lengths[:2]):
        real = built[sentence, 0, :length, :length]
        chosen = {i for i in range(length) if real[i].all()}
        assert len(chosen) == min(count, length)
        expected = looped(length, lambda i, j, chosen=chosen: i == j or i in chosen or j in chosen)
        assert torch.equal(real, expected)
    assert built[2, 0, 0, 0]


@pytest.mark.parametrize("scope", ["uniform", "official_plan"])
@pytest.mark.parametrize("count", [0, 1, 3, 20])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 10, 24, 36])
def test_bigbird_is_its_fixed_part_and_random_keys_beside_it(n, count, scope):
    built = masks.to_dense(masks.bigbird(count, [n], 2, generator(), scope), 1, 2, n)[0]
    certain = fixed_part(n)
    assert (built | ~certain).all()
    for head in built:
        for i in range(n):
            extra = (head[i] & ~certain[i]).nonzero().flatten().tolist()
            legal = (~certain[i]).nonzero().flatten().tolist()
            shares = [(among, share) for among, share in plan(i, n, count, scope, legal)]
            assert len(extra) == sum(min(share, len(among)) for among, share in shares)
            assert set(extra) <= {j for among, _ in shares for j in among}


def fixed_part(n):
    return looped(n, lambda i, j: abs(i - j) <= 1 or {i, j} & {0, n - 1})


def plan(i, n, count, scope, legal):
    """Spec §5.3: [(legal keys of row i in a range of columns, keys to draw from them)]."""
    parts = [(0, n, count)]
    if scope == "official_plan" and 2 * count + 5 < n:
        parts = [(0, 2 * count + 5, count)]
    elif scope == "official_plan" and count + 5 < n:
        parts = [(0, count + 5, count // 2), (count + 5, n, count - count // 2)]

    def drawn(j, start, end):
        beside = scope == "official_plan" and (j == end - 1 or (i, j) in ((1, end - 2), (end - 2, 1)))
        return start <= j < end and not beside

    return [([j for j in legal if drawn(j, start, end)], share) for start, end, share in parts]


def test_official_plan_keeps_the_random_keys_in_the_first_columns():
    count, n = 5, 64
    built = masks.to_dense(masks.bigbird(count, [n], 1, generator(), "official_plan"), 1, 1, n)[0, 0]
    random_part = built & ~looped(n, lambda i, j: abs(i - j) <= 1 or {i, j} & {0, n - 1})
    assert random_part.any(dim=0).nonzero().max() < 2 * count + 5
    spread = masks.to_dense(masks.bigbird(count, [n], 1, generator(), "uniform"), 1, 1, n)[0, 0]
    assert spread[20:40, 45:60].any()


@pytest.fixture
def published():
    """The planner of BigBird's published code, which draws from numpy's global generator."""
    big_bird = pytest.importorskip("transformers.models.big_bird.modeling_big_bird")
    attention = big_bird.BigBirdBlockSparseAttention
    # In the place of a whole attention; outside of training the planner draws nothing.
    training = SimpleNamespace(training=True, _get_single_block_row_attention=attention._get_single_block_row_attention)
    state = np.random.get_state()  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002

    def drawn(n, count, heads):
        """Which pairs some head of the published code draws, ``Bool[n, n]``; None where it crashes."""
        try:
            if n in (1024, 3072, 4096):
                size = (training, 4096, 4096, 1, 1, count)
                rows = [attention._bigbird_block_rand_mask(*size, last_idx=1024)[: n - 2] for _ in range(heads)]
            else:
                ends, shares = attention._get_rand_attn_plan(n, 1, count)
                rows = attention._bigbird_block_rand_mask_with_head(training, n, n, 1, 1, heads, ends, shares)
        except (ValueError, IndexError):
            return None
        pairs = torch.zeros(n, n, dtype=torch.bool)
        for head in rows:
            pairs[1:-1].scatter_(1, torch.from_numpy(head).long(), True)
        return pairs

    yield SimpleNamespace(drawn=drawn, plan=attention._get_rand_attn_plan, row=training._get_single_block_row_attention)
    np.random.set_state(state)  # noqa: NPY002


def our_draws(n, count, heads, seed=0):
    """The same of ours, beside the fixed part."""
    built = masks.to_dense(masks.bigbird(count, [n], heads, generator(seed), "official_plan"), 1, heads, n)[0]
    return built.any(0) & ~(masks.to_dense(masks.bigbird(0, [n], 1, generator()), 1, 1, n)[0, 0])


def test_official_plan_is_that_of_the_published_bigbird_code(published):
    for n in range(8, 60):
        for count in range(2, 21):
            ends, shares = published.plan(n, 1, count)
            theirs = [piece for piece in zip([0, *ends[:-1]], ends, shares, strict=True) if piece[2] > 0]
            assert [share[:3] for share in masks.RANDOM_SCOPES["official_plan"](n, count)] == theirs


def test_official_plan_draws_the_columns_that_the_published_code_draws(published):
    """Row by row, and none else; it crashes for want of columns in some cases, not in all with short rows."""
    compared = crashes = 0
    for n in (6, 7, 8, 9, 10, 12, 15, 19, 24, 36):
        for count in (1, 2, 3, 4, 5, 8, 13):
            theirs = published.drawn(n, count, heads=80)
            compared, crashes = compared + (theirs is not None), crashes + (theirs is None)
            assert theirs is None or torch.equal(our_draws(n, count, heads=400), theirs), (n, count)
    assert compared > 30
    assert crashes > 10


def test_official_plan_takes_all_legal_columns_where_the_published_code_crashes(published):
    n, count = 10, 7
    assert published.drawn(n, count, heads=1) is None
    ours = our_draws(n, count, heads=1)
    for i in range(1, n - 1):
        assert ours[i].nonzero().flatten().tolist() == sorted(published.row(i, 0, n, num_rand_blocks=n))


def test_official_plan_at_a_length_of_the_paper(published):
    """Beside the fixed part; one of the columns in which it draws, the last of 1,024, is in that part."""
    n, count = 1024, 400
    theirs = published.drawn(n, count, heads=50)
    assert theirs[1:-1, 1023].any()
    fixed = masks.to_dense(masks.bigbird(0, [n], 1, generator()), 1, 1, n)[0, 0]
    ours = our_draws(n, count, 25, seed=0) | our_draws(n, count, 25, seed=1)
    assert torch.equal(ours, theirs & ~fixed)
    drawn = masks.to_dense(masks.bigbird(count, [n], 1, generator(), "official_plan"), 1, 1, n)[0, 0] & ~fixed
    assert set(drawn[1:-1].sum(-1).tolist()) == {count - 1, count}


def test_random_keys_are_exactly_as_many_as_asked_and_uniform():
    heads, n, count = 3000, 8, 2
    built = masks.to_dense(masks.random_keys(count, [n], heads, generator()), 1, heads, n)[0]
    assert (built.sum(-1) == count).all()
    share = built.double().mean(0)
    assert (share - count / n).abs().max() < 5 * math.sqrt(count / n * (1 - count / n) / heads)


def test_bigbird_random_keys_are_uniform_over_the_free_ones():
    heads, n, count = 3000, 12, 2
    row = masks.to_dense(masks.bigbird(count, [n], heads, generator()), 1, heads, n)[0, :, 5].double().mean(0)
    free = [1, 2, 3, 7, 8, 9, 10]
    assert (row[free] - count / 7).abs().max() < 5 * math.sqrt(count / 7 * (1 - count / 7) / heads)


RANDOM = {
    "longformer": lambda lengths, seed: masks.longformer(2, lengths, generator(seed)),
    "bigbird": lambda lengths, seed: masks.bigbird(2, lengths, 2, generator(seed)),
    "random_keys": lambda lengths, seed: masks.random_keys(2, lengths, 2, generator(seed)),
}


@pytest.mark.parametrize("name", RANDOM)
def test_random_patterns_depend_on_the_seed_alone(name):
    lengths = torch.tensor([5, 16, 12])
    before = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()  # noqa: NPY002
    first, again, other = (masks.to_dense(RANDOM[name](lengths, seed), 3, 2, 16) for seed in (0, 0, 1))
    after = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()  # noqa: NPY002
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(before[0], after[0])
    assert before[1:] == after[1:]


@pytest.mark.parametrize("name", RANDOM)
def test_random_patterns_ignore_the_padded_length(name):
    lengths = [5, 9]
    short = masks.to_dense(RANDOM[name](lengths, 0), 2, 2, 9)
    long = masks.to_dense(RANDOM[name](lengths, 0), 2, 2, 20)
    for sentence, n in enumerate(lengths):
        assert torch.equal(short[sentence, :, :n, :n], long[sentence, :, :n, :n])


@pytest.mark.parametrize("name", RANDOM)
def test_a_sentence_may_be_empty(name):
    """Others get what they get without it, whatever the sentence's padding is said to see."""
    alone = masks.to_dense(RANDOM[name]([5], 0), 1, 2, 5)
    beside = masks.to_dense(RANDOM[name]([5, 0], 0), 2, 2, 9)
    assert torch.equal(beside[0, :, :5, :5], alone[0])
    assert masks.to_dense(RANDOM[name]([0, 0], 0), 2, 2, 4).shape == (2, 2, 4, 4)


def test_an_empty_sentence_draws_nothing():
    assert not masks.to_dense(masks.random_keys(2, [0, 4], 2, generator()), 2, 2, 6)[0].any()
    diagonal = masks.to_dense(masks.longformer(2, [0, 4], generator()), 2, 2, 6)[0]
    assert torch.equal(diagonal, torch.eye(6, dtype=torch.bool).expand(2, 6, 6))


@pytest.mark.parametrize("name", RANDOM)
def test_flex_attention_reads_the_draws(name):
    flex = pytest.importorskip("torch.nn.attention.flex_attention")
    pattern = RANDOM[name]([7, 16], 0)
    read = flex.create_mask(pattern, 2, 2, 16, 16, device="cpu")
    assert torch.equal(read, masks.to_dense(pattern, 2, 2, 16))


@pytest.mark.parametrize(
    ("build", "named"),
    [
        (lambda: masks.longformer(-1, [3], generator()), "globals_"),
        (lambda: masks.longformer(1, [-1], generator()), "lengths"),
        (lambda: masks.bigbird(1, [3, -1], 1, generator()), "lengths"),
        (lambda: masks.random_keys(1, [-1], 1, generator()), "lengths"),
        (lambda: masks.bigbird(-1, [3], 1, generator()), "random_keys"),
        (lambda: masks.bigbird(1, [3], 0, generator()), "heads"),
        (lambda: masks.bigbird(1, [3], 1, generator(), "everywhere"), "random_scope"),
        (lambda: masks.random_keys(-1, [3], 1, generator()), "count"),
    ],
)
def test_errors_name_the_argument(build, named):
    with pytest.raises(ValueError, match=named):
        build()


@pytest.mark.parametrize("count", [0, 1, 3])
@pytest.mark.parametrize("seed", range(5))
def test_a_sentence_that_grows_keeps_its_global_tokens_but_those_that_a_new_one_displaces(count, seed):
    """So that beam search, which asks for one prefix after the other, does not draw new ones at every step."""

    def drawn(n):
        rows = masks.to_dense(masks.longformer(count, [n], generator(seed)), 1, 1, n)[0, 0]
        return {i for i in range(n) if rows[i].all()}

    globals_of = [drawn(n) for n in range(count + 2, 40)]
    for n, (before, after) in enumerate(itertools.pairwise(globals_of), start=count + 2):
        assert len(before) == count
        assert after <= before | {n}
    assert count == 0 or globals_of[0] != globals_of[-1]  # a new one does displace an old one, now and then


def test_longformers_positions_are_uniform():
    chosen = torch.zeros(12)
    for seed in range(2000):
        rows = masks.to_dense(masks.longformer(3, [12], generator(seed)), 1, 1, 12)[0, 0]
        chosen += rows.all(-1)
    assert chosen.sum() == 3 * 2000
    assert (chosen / 500 - 1).abs().max() < 0.15  # five standard deviations
