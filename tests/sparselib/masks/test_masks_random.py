"""Random patterns: their fixed part, the number and the distribution of the draws, and the seed."""

import math
import random

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
    certain = looped(n, lambda i, j: abs(i - j) <= 1 or {i, j} & {0, n - 1})
    assert (built | ~certain).all()
    for head in built:
        for i in range(n):
            extra = (head[i] & ~certain[i]).nonzero().flatten().tolist()
            legal = (~certain[i]).nonzero().flatten().tolist()
            assert len(extra) == sum(min(share, len(among)) for among, share in plan(n, count, scope, legal))


def plan(n, count, scope, legal):
    """Spec §5.3: [(legal keys in a range of columns, keys to draw from them)]."""
    if scope == "official_plan" and 2 * count + 5 < n:
        return [([j for j in legal if j < 2 * count + 5], count)]
    if scope == "official_plan" and count + 5 < n:
        near, far = [j for j in legal if j < count + 5], [j for j in legal if j >= count + 5]
        return [(near, count // 2), (far, count - count // 2)]
    return [(legal, count)]


def test_official_plan_keeps_the_random_keys_in_the_first_columns():
    count, n = 5, 64
    built = masks.to_dense(masks.bigbird(count, [n], 1, generator(), "official_plan"), 1, 1, n)[0, 0]
    random_part = built & ~looped(n, lambda i, j: abs(i - j) <= 1 or {i, j} & {0, n - 1})
    assert random_part.any(dim=0).nonzero().max() < 2 * count + 5
    spread = masks.to_dense(masks.bigbird(count, [n], 1, generator(), "uniform"), 1, 1, n)[0, 0]
    assert spread[20:40, 45:60].any()


def test_official_plan_is_that_of_the_published_bigbird_code():
    big_bird = pytest.importorskip("transformers.models.big_bird.modeling_big_bird")
    published = big_bird.BigBirdBlockSparseAttention._get_rand_attn_plan
    for n in range(8, 60):
        for count in range(2, 21):
            ends, shares = published(n, 1, count)
            theirs = [piece for piece in zip([0, *ends[:-1]], ends, shares, strict=True) if piece[2] > 0]
            assert masks.RANDOM_SCOPES["official_plan"](n, count) == theirs


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
def test_flex_attention_reads_the_draws(name):
    flex = pytest.importorskip("torch.nn.attention.flex_attention")
    pattern = RANDOM[name]([7, 16], 0)
    read = flex.create_mask(pattern, 2, 2, 16, 16, device="cpu")
    assert torch.equal(read, masks.to_dense(pattern, 2, 2, 16))


@pytest.mark.parametrize(
    ("build", "named"),
    [
        (lambda: masks.longformer(-1, [3], generator()), "globals_"),
        (lambda: masks.longformer(1, [0], generator()), "lengths"),
        (lambda: masks.bigbird(-1, [3], 1, generator()), "random_keys"),
        (lambda: masks.bigbird(1, [3], 0, generator()), "heads"),
        (lambda: masks.bigbird(1, [3], 1, generator(), "everywhere"), "random_scope"),
        (lambda: masks.random_keys(-1, [3], 1, generator()), "count"),
    ],
)
def test_errors_name_the_argument(build, named):
    with pytest.raises(ValueError, match=named):
        build()
