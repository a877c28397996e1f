"""Block lists for the Triton kernels, against plain Python lists."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sparselib.kernels import BlockMask
from sparselib.kernels.block_operator import attend
from sparselib.kernels.lists import BlockLists, by_rows, dense

pytest.importorskip("triton")

from sparselib.kernels import triton_lists

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def random_lists(shape, blocks, block, seed):
    """Return lists of distinct blocks in random order, followed by entries that must be ignored."""
    generator = torch.Generator().manual_seed(seed)
    indices = torch.rand(*shape, blocks, generator=generator).argsort(-1)
    return by_rows(torch.randint(blocks + 1, shape, generator=generator).to(DEVICE), indices.to(DEVICE), block)


def rows(lists: BlockLists) -> list[list[int]]:
    """Return the valid entries of each row."""
    shape = lists.counts.shape
    indices = lists.indices.expand(*shape, -1).flatten(0, 2).tolist()
    return [row[:count] for row, count in zip(indices, lists.counts.flatten().tolist(), strict=True)]


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 99), causal=st.booleans(), two=st.booleans(), blocks=st.sampled_from([1, 5, 150]))
def test_both_lists(seed, causal, two, blocks):
    lists = [random_lists((1, 2, 3), blocks, (8, 4), seed + x) for x in range(1 + two)]
    joined = triton_lists.both_lists(lists[0], lists[1] if two else None, causal)
    expected = [[j for part in parts for j in part] for parts in zip(*map(rows, lists), strict=True)]
    if causal:
        expected = [[j for j in row if 4 * j <= 8 * (i % 3) + 7] for i, row in enumerate(expected)]
    assert rows(joined) == expected
    assert joined.block == (8, 4)


@pytest.mark.parametrize("flagged", [False, True])
@pytest.mark.parametrize("parts", [1, 2])
def test_tiles_share_their_blocks_list_and_keep_live_blocks(parts, flagged):
    lists, tiles, blocks = random_lists((1, 2, 3), 140, (8, 4), seed=0), 3 * parts - 1, 140
    alive = torch.rand(2, 2, tiles, blocks, generator=torch.Generator().manual_seed(1)).to(DEVICE) < 0.5
    flags = alive.to(torch.int8) if flagged else None
    by_tile, visitors = triton_lists.from_both_sides(lists, 8 // parts, tiles, flags, blocks)
    listed, expected = rows(lists), []
    for b in range(2 if flagged else 1):
        for h in range(2):
            for tile in range(tiles):
                row = listed[3 * h + tile // parts]
                living = alive[b, h, tile].tolist() if flagged else [True] * len(row)
                expected.append([j for j, flag in zip(row, living, strict=False) if flag])
    assert rows(by_tile) == expected
    check_transposed(visitors, expected, tiles, blocks)


def check_transposed(visitors, listed, tiles, blocks):
    """Check the tiles of each key block against the lists of each tile."""
    for head, (ends, members) in enumerate(zip(visitors.ends.flatten(0, 1), visitors.tiles.flatten(0, 1), strict=True)):
        starts = [0, *ends.tolist()]
        for j in range(blocks):
            actual = members[starts[j] : starts[j + 1]].tolist()
            assert actual == [i for i in range(tiles) if j in listed[head * tiles + i]]


def test_lists_of_keys_with_more_tiles_than_a_step():
    lists = random_lists((2, 1, 300), 3, (4, 4), seed=0)
    visitors = triton_lists.from_both_sides(lists, 4, 300, None, 3)[1]
    check_transposed(visitors, rows(lists), 300, 3)


@pytest.mark.parametrize("causal", [False, True])
def test_dense_lists(causal):
    assert rows(dense((3, 3), 16, causal, torch.device(DEVICE))) == [
        list(range(i + 1 if causal else 3)) for i in range(3)
    ]


@pytest.mark.parametrize("backend", ["gather", "triton"])
@pytest.mark.parametrize("layout", ["counts", "indices", "int64"])
def test_masks_may_be_views_of_any_strides(layout, backend):
    """The kernels read rows, but a mask may expand one count to all rows, or store its lists in columns."""
    q = torch.randn(1, 1, 64, 16, generator=torch.Generator().manual_seed(0)).to(DEVICE)
    counts = torch.full((1, 1, 4), 2, dtype=torch.int32, device=DEVICE)
    indices = torch.tensor([[0, 1], [1, 2], [2, 0], [3, 1]], dtype=torch.int32, device=DEVICE).view(1, 1, 4, 2)
    expected = attend(q, q, q, BlockMask(counts, indices, 16, 64), backend=backend)[0]
    views = {
        "counts": (counts[..., :1].expand(1, 1, 4), indices),
        "indices": (counts, indices.mT.contiguous().mT),
        "int64": (counts.long(), indices.long()),
    }
    assert torch.equal(attend(q, q, q, BlockMask(*views[layout], 16, 64), backend=backend)[0], expected)


@pytest.mark.parametrize("backend", ["gather", "triton"])
def test_lengths_may_be_views_of_any_strides(backend):
    q = torch.randn(2, 1, 20, 16, generator=torch.Generator().manual_seed(0)).to(DEVICE).requires_grad_()
    values = torch.tensor([7, 20, 7, 20], device=DEVICE)
    results = []
    for lengths in (values[::2].contiguous(), values[::2], values[:1].expand(2)):
        output = attend(q, q, q, lengths=lengths, backend=backend)[0]
        results.append(torch.stack([output, *torch.autograd.grad(output.square().sum(), q)]))
    assert torch.equal(results[0], results[1])
    assert torch.equal(results[0], results[2])


@pytest.mark.parametrize("alpha", [1, 1.5])
@pytest.mark.parametrize("causal", [False, True])
def test_full_blocks_are_visited(causal, alpha):
    generator = torch.Generator().manual_seed(0)
    q, k, v, upstream = (torch.randn(1, 2, 60, 16, generator=generator).to(DEVICE) for _ in range(4))
    dense_mask = torch.rand(1, 2, 4, 4, generator=generator).to(DEVICE) < 0.7
    apart = torch.rand(1, 2, 4, 4, generator=generator).to(DEVICE) < 0.5
    joined, partial, full = (
        BlockMask.from_dense(x, 16, 60) for x in (dense_mask, dense_mask & ~apart, dense_mask & apart)
    )
    split = BlockMask(*partial.lists()[0], 16, 60, *full.lists()[0])
    results = []
    for mask in (joined, split):
        leaves = [x.requires_grad_() for x in (q, k, v)]
        output = attend(*leaves, mask, alpha=alpha, causal=causal, backend="triton")[0]
        results.append((output, *torch.autograd.grad(output, leaves, upstream)))
    torch.testing.assert_close(results[0], results[1])
