"""Decoding from a cache in pages equals decoding from the same cache in one piece, bit by bit."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sparselib.kernels import BlockMask, block_sparse_entmax_decode
from sparselib.kernels.decoding import _operator

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
backends = pytest.mark.parametrize("backend", ["gather", "triton"])


@pytest.fixture(autouse=True)
def _triton(request):
    if getattr(request.node, "callspec", None) and request.node.callspec.params.get("backend") == "triton":
        pytest.importorskip("triton")


def paged(cache, size, spare=3, seed=0):
    """Return a pool with a cache ``[B, G, P * size, D]`` in pages of random order and NaN in others, and the page table."""
    (b, g, n, d), generator = cache.shape, torch.Generator().manual_seed(seed)
    count = b * (n // size)
    pool = cache.new_full((count + spare, g, size, d), torch.nan)
    table = torch.randperm(len(pool), generator=generator)[:count].view(b, -1).to(cache.device)
    for sequence, pages in enumerate(table.tolist()):
        for number, page in enumerate(pages):
            pool[page] = cache[sequence, :, number * size : (number + 1) * size]
    return pool, table


def random_inputs(b, heads, kv_heads, m, n, dtype=torch.float32, seed=0):
    generator = torch.Generator().manual_seed(seed)
    shapes = [(b, heads, m, 20), (b, kv_heads, n, 20), (b, kv_heads, n, 16)]
    return [torch.randn(shape, generator=generator).to(DEVICE, dtype) for shape in shapes]


@backends
@settings(max_examples=20, deadline=None)
@given(
    size=st.sampled_from([16, 48, 64]),
    block=st.sampled_from([None, 16, 32, 64]),
    count=st.integers(1, 4),
    m=st.integers(1, 3),
    kv_heads=st.integers(1, 2),
    ragged=st.booleans(),
    dtype=st.sampled_from([torch.float32, torch.float16]),
    alpha=st.sampled_from([1, 1.25, 1.5, 2]),
    table_dtype=st.sampled_from([torch.int32, torch.int64]),
    seed=st.integers(0, 99),
)
def test_pages_change_nothing(backend, size, block, count, m, kv_heads, ragged, dtype, alpha, table_dtype, seed):
    n = size * count
    q, k, v = random_inputs(2, 4, kv_heads, m, n, dtype, seed)
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(0, n + 1, (2,), generator=generator).to(DEVICE) if ragged else None
    mask = None
    if block is not None:
        visited = torch.rand(2, kv_heads, 1, -(-n // block), generator=generator) < 0.6
        mask = BlockMask.from_dense(visited, (m, block), (m, n)).to(DEVICE)
    rules = {"alpha": alpha, "lengths": lengths, "backend": backend}
    expected = block_sparse_entmax_decode(q, k, v, mask, **rules)
    if ragged:  # what is behind a sequence may be NaN
        behind = torch.arange(n, device=DEVICE) >= lengths[:, None]
        k, v = (x.masked_fill(behind[:, None, :, None], torch.nan) for x in (k, v))
    (keys, table), (values, _) = paged(k, size, seed=seed), paged(v, size, seed=seed)
    if ragged:  # pages behind a sequence need no entry
        used = torch.arange(count, device=DEVICE) * size < lengths[:, None]
        table = table.masked_fill(~used, 1000)
    output = block_sparse_entmax_decode(q, keys, values, mask, pages=table.to(table_dtype), **rules)
    # The kernel's steps may be shorter than without pages, so that sums are added in another order.
    torch.testing.assert_close(output, expected, atol=2e-6 if dtype == torch.float32 else 2e-3, rtol=0)
    if backend == "gather":
        assert torch.equal(output, expected)


@backends
def test_sequences_share_pages(backend):
    """As after a common prompt."""
    q, k, v = random_inputs(2, 4, 2, 1, 64)
    k[1, :, :32], v[1, :, :32] = k[0, :, :32], v[0, :, :32]
    (keys, table), (values, _) = paged(k, 16), paged(v, 16)
    keys[table[1, :2]] = values[table[1, :2]] = torch.nan
    table[1, :2] = table[0, :2]
    output = block_sparse_entmax_decode(q, keys, values, pages=table, backend=backend)
    expected = block_sparse_entmax_decode(q, k, v, backend=backend)
    torch.testing.assert_close(output, expected, atol=2e-6, rtol=0)


@backends
def test_a_pool_that_is_stored_by_tokens(backend):
    """As in vLLM: pages, tokens, heads."""
    q, k, v = random_inputs(2, 4, 2, 1, 64)
    (keys, table), (values, _) = paged(k, 16), paged(v, 16)
    by_tokens = [pool.transpose(1, 2).contiguous().transpose(1, 2) for pool in (keys, values)]
    assert not by_tokens[0].is_contiguous()
    output = block_sparse_entmax_decode(q, *by_tokens, pages=table, backend=backend)
    assert torch.equal(output, block_sparse_entmax_decode(q, keys, values, pages=table, backend=backend))


@backends
def test_pytorchs_operator_checks(backend):
    q, k, v = random_inputs(2, 4, 2, 1, 48)
    (keys, table), (values, _) = paged(k, 16), paged(v, 16)
    lengths = torch.tensor([48, 3], device=DEVICE)
    arguments = (q, keys.nan_to_num(), values.nan_to_num(), None, None, lengths, table, 1, 1.5, 0.25, backend)
    torch.library.opcheck(_operator, arguments)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pages": [[0, 1]]}, "`pages` must be an int32 or int64 tensor"),
        ({"pages": torch.zeros(2)}, "`pages` must be an int32 or int64 tensor"),
        ({"pages": torch.zeros(3, 3, dtype=torch.int64)}, r"`pages` must have shape \(2, pages per sequence\)"),
        ({"pages": torch.tensor([[0, 1, 2], [3, 4, 9]])}, r"`pages` must name pages from 0 to 8 for all tokens"),
        ({"pages": torch.tensor([[0, 1, 2], [3, -1, 5]])}, r"`pages` must name pages from 0 to 8 for all tokens"),
        ({"lengths": torch.tensor([49, 1])}, "`lengths` must be from 0 to 48"),
        ({"k": torch.zeros(9, 2, 20, 20)}, "`k` must have shape .* multiple of 16"),
        ({"v": torch.zeros(8, 2, 16, 16)}, "`v` must have shape .*`k` and `v` agree"),
        ({"k": torch.zeros(9, 2, 16)}, "`k` must have shape"),
        (
            {"block_mask": BlockMask.from_dense(torch.ones(1, 1, 1, 2, dtype=torch.bool), (1, 24), (1, 48))},
            "`block_mask` must have key blocks of a multiple of 16 with `pages`, got 24",
        ),
        (
            {"block_mask": BlockMask.from_dense(torch.ones(1, 1, 1, 2, dtype=torch.bool), (1, 16), (1, 32))},
            r"`block_mask` must have the lengths of `q` and `k`, \(1, 48\)",
        ),
        (
            {"block_mask": BlockMask.from_dense(torch.ones(1, 4, 1, 3, dtype=torch.bool), (1, 16), (1, 48))},
            r"`block_mask` must have the batch size and key heads of `k`, \(2, 2\), or 1, got \(1, 4\)",
        ),
    ],
)
def test_errors_name_the_argument(change, message):
    q, k, v = (x.cpu() for x in random_inputs(2, 4, 2, 1, 48))
    (keys, table), (values, _) = paged(k, 16), paged(v, 16)
    call = {"q": q, "k": keys, "v": values, "pages": table} | change
    with pytest.raises(ValueError, match=message):
        block_sparse_entmax_decode(**call)
