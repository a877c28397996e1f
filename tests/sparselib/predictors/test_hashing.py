"""Hashing by random rotations against its double loop."""

import pytest
import torch
from drawing import drawn

from sparselib.predictors import Hashing


def bucket(case, rotations, b, h, turn, token):
    """argmax over [xM; -xM] of the token's query and key, one after the other."""
    x = [*case.q[b, h, token].tolist(), *case.k[b, h, token].tolist()]
    rotated = [sum(a * m for a, m in zip(x, column, strict=True)) for column in rotations[h, turn].T.tolist()]
    values = rotated + [-value for value in rotated]
    return values.index(max(values))


@pytest.mark.parametrize(("buckets", "rounds"), [(2, 1), (6, 1), (6, 4)])
def test_equals_its_loop(case, buckets, rounds):
    seed = 3
    generator = torch.Generator().manual_seed(seed)
    rotations = torch.randn(2, rounds, 8, buckets // 2, generator=generator)

    def edge(b, h, i, j):
        turns = range(rounds)
        return any(bucket(case, rotations, b, h, t, i) == bucket(case, rotations, b, h, t, j) for t in turns)

    assert torch.equal(case.predict(Hashing(buckets, rounds, seed)), case.looped(edge))


def test_graph_is_symmetric_with_its_diagonal_and_grows_with_rounds():
    generator = torch.Generator().manual_seed(0)
    q, k = (torch.randn(2, 3, 30, 4, generator=generator) for _ in range(2))
    one, four = Hashing(10).predict(q, k), Hashing(10, rounds=4).predict(q, k)
    for graph in (one, four):
        assert torch.equal(graph, graph.mT)
        assert graph.diagonal(dim1=-2, dim2=-1).all()
    assert four.sum() > one.sum()


def test_opposite_tokens_never_share_a_bucket():
    x = drawn(1, 1, 1, 4)
    pair = torch.cat([x, -x], dim=2)
    assert torch.equal(Hashing(2, rounds=5).predict(pair, pair)[0, 0], torch.eye(2, dtype=torch.bool))


def test_seed_chooses_the_rotations():
    x = drawn(1, 2, 40, 4)
    assert not torch.equal(Hashing(10, seed=0).predict(x, x), Hashing(10, seed=1).predict(x, x))


@pytest.mark.parametrize(
    ("arguments", "named"), [((0,), "buckets"), ((3,), "buckets"), ((-2,), "buckets"), ((4, 0), "rounds")]
)
def test_errors_name_the_argument(arguments, named):
    with pytest.raises(ValueError, match=named):
        Hashing(*arguments)
