"""Chunk vectors and blocks of pairs against double loops; of size one nothing changes."""

import pytest
import torch
from drawing import drawn, drawn_mask

from sparselib.blocks.chunks import TOKENS, Chunks

N, LENGTHS = 11, [11, 7, 4, 1]
SIZES = [1, 2, 3, 4, 11, 16]


@pytest.fixture
def tokens():
    """`[B, H, n, R]`, whose padding holds NaN."""
    x = drawn(len(LENGTHS), 2, N, 3, dtype=torch.float64)
    for b, length in enumerate(LENGTHS):
        x[b, :, length:] = torch.nan
    return x


def chunk_of(x, b, h, i, size, pooling):
    real = [x[b, h, t] for t in range(i * size, min((i + 1) * size, LENGTHS[b]))]
    if pooling == "mean":
        return sum(real) / len(real) if real else torch.zeros(3)
    return torch.cat(real + [torch.zeros(3, dtype=x.dtype)] * (size - len(real)))


@pytest.mark.parametrize("pooling", ["concatenate", "mean"])
@pytest.mark.parametrize("size", SIZES)
def test_vectors_equal_their_loop(tokens, size, pooling):
    found = Chunks(size, pooling).vectors(tokens, torch.tensor(LENGTHS))
    assert found.shape == (4, 2, -(-N // size), 3 * size if pooling == "concatenate" else 3)
    for b, h, i in torch.cartesian_prod(*map(torch.arange, found.shape[:3])).tolist():
        torch.testing.assert_close(found[b, h, i], chunk_of(tokens, b, h, i, size, pooling).to(found))


@pytest.mark.parametrize("size", SIZES)
def test_a_block_is_positive_if_any_of_its_pairs_is(size):
    pairs = drawn_mask(2, 3, N, 7, density=0.05)
    found = Chunks(size).blocks(pairs)
    expected = torch.zeros_like(found)
    for b, h, i, j in pairs.nonzero().tolist():
        expected[b, h, i // size, j // size] = True
    assert found.shape == (2, 3, -(-N // size), -(-7 // size))
    assert torch.equal(found, expected)


@pytest.mark.parametrize("pooling", ["concatenate", "mean"])
def test_chunks_of_one_token_are_tokens(pooling):
    x = drawn(2, 3, N, 4)
    assert torch.equal(Chunks(1, pooling).vectors(x), x)
    assert TOKENS == Chunks(1)


def test_gradients_reach_real_tokens_only(tokens):
    x = tokens.nan_to_num().requires_grad_()
    Chunks(4).vectors(x, LENGTHS).sum().backward()
    for b, length in enumerate(LENGTHS):
        assert (x.grad[b, :, :length] == 1).all()
        assert (x.grad[b, :, length:] == 0).all()


def test_counts_of_numbers_and_of_tensors():
    assert Chunks(4).count(9) == 3
    assert Chunks(4).count(torch.tensor([1, 4, 5, 8])).tolist() == [1, 1, 2, 2]


@pytest.mark.parametrize(("arguments", "name"), [((0,), "size"), ((2, "max"), "pooling")])
def test_bad_arguments_are_named(arguments, name):
    with pytest.raises(ValueError, match=name):
        Chunks(*arguments)


def test_bad_lengths_are_named():
    with pytest.raises(ValueError, match="lengths"):
        Chunks(2).vectors(torch.zeros(1, 1, 4, 2), [5])
