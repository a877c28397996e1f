"""Decoding against entmax in float64 over all keys that a query may see; both backends, small in the interpreter."""

from functools import partial
from itertools import product

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sparselib.kernels import BlockMask, block_sparse_entmax_attention, block_sparse_entmax_decode
from sparselib.kernels.decoding import _operator
from sparselib.kernels.reference import entmax_with_threshold

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
ALPHAS = [1, 1.25, 1.5, 2]
DTYPES = [torch.float32, torch.float16, torch.bfloat16]
gpu = pytest.mark.gpu
needs_gpu = pytest.mark.skipif(DEVICE == "cpu", reason="too large for the interpreter: no CUDA device")
backends = pytest.mark.parametrize("backend", ["gather", "triton"])


@pytest.fixture(autouse=True)
def _triton(request):
    if getattr(request.node, "callspec", None) and request.node.callspec.params.get("backend") == "triton":
        pytest.importorskip("triton")


def drawn(b, heads, kv_heads, m, n, d, e=None, *, dtype=torch.float32, seed=0):
    generator = torch.Generator().manual_seed(seed)
    shapes = [(b, heads, m, d), (b, kv_heads, n, d), (b, kv_heads, n, e or d)]
    return [torch.randn(x, generator=generator).mul_(1.5).to(DEVICE, dtype) for x in shapes]


def drawn_mask(b, kv_heads, m, n, block, *, density=0.5, seed=0):
    visited = torch.rand(b, kv_heads, 1, -(-n // block), generator=torch.Generator().manual_seed(seed)) < density
    return BlockMask.from_dense(visited, (m, block), (m, n)).to(DEVICE)


def twin(q, k, v, mask=None, *, alpha=1.5, scale=None, lengths=None):
    """The output in the dtype of the inputs, from all scores; what a query sees is said pair by pair."""
    (b, h, m, d), (kv_heads, n) = q.shape, k.shape[1:3]
    seen = torch.zeros(b, h, m, n, dtype=torch.bool)
    dense = None if mask is None else mask.to_dense().cpu()
    for i, head, query in product(range(b), range(h), range(m)):
        length = n if lengths is None else int(lengths[i])
        visible = torch.arange(n) <= length - m + query
        if dense is not None:
            own = dense[i % len(dense), (head // (h // kv_heads)) % dense.shape[1], 0]
            visible &= own.repeat_interleave(mask.block_size[1])[:n]
        seen[i, head, query] = visible
    k, v = (x.repeat_interleave(h // kv_heads, 1) for x in (k, v))
    scores = q @ k.mT * (d**-0.5 if scale is None else scale)
    return entmax_with_threshold(scores, seen.to(q.device), alpha)[0].to(v.dtype) @ v


def agrees(inputs, mask=None, *, backend, **rules):
    """The error is at most twice that of plain PyTorch in the same dtype, and a few roundings."""
    found = block_sparse_entmax_decode(*inputs, mask, backend=backend, **rules)
    assert found.dtype == inputs[0].dtype
    exact = twin(*(x.double() for x in inputs), mask, **rules)
    plain = twin(*inputs, mask, **rules)
    if exact.numel():
        rounding = 8 * torch.finfo(found.dtype).eps * exact.abs().max()
        assert (found - exact).abs().max() <= 2 * (plain - exact).abs().max() + rounding
        assert torch.equal(found[(exact == 0).all(-1)], torch.zeros_like(found[(exact == 0).all(-1)]))
    return found


@st.composite
def settings_of_a_call(draw):
    kv_heads, m, n, b = (
        draw(st.integers(1, 2)),
        draw(st.integers(1, 4)),
        draw(st.integers(1, 200)),
        draw(st.integers(1, 3)),
    )
    return {
        "b": b,
        "heads": kv_heads * draw(st.sampled_from([1, 2, 3, 4, 8])),
        "kv_heads": kv_heads,
        "m": m,
        "n": n,
        "d": draw(st.sampled_from([1, 16, 20, 64])),
        "e": draw(st.sampled_from([1, 16, 33])),
        "dtype": draw(st.sampled_from(DTYPES)),
        "seed": draw(st.integers(0, 100)),
        "alpha": draw(st.sampled_from(ALPHAS)),
        "scale": draw(st.sampled_from([None, 0.5, -0.3, 0.0])),
        "lengths": draw(st.none() | st.lists(st.integers(0, n), min_size=b, max_size=b)),
        "block": draw(st.none() | st.sampled_from([1, 3, 16, 20, 32, 64, 128])),
        "shared": draw(st.booleans()),
        "density": draw(st.sampled_from([0.0, 0.3, 0.8, 1.0])),
    }


def run(call, backend):
    call = dict(call)
    alpha, scale, lengths = call.pop("alpha"), call.pop("scale"), call.pop("lengths")
    block, shared, density = call.pop("block"), call.pop("shared"), call.pop("density")
    sizes = (1, 1) if shared else (call["b"], call["kv_heads"])
    mask = block and drawn_mask(*sizes, call["m"], call["n"], block, density=density, seed=call["seed"])
    lengths = None if lengths is None else torch.tensor(lengths, device=DEVICE)
    agrees(drawn(**call), mask, backend=backend, alpha=alpha, scale=scale, lengths=lengths)


SMALL = {
    "b": 2, "heads": 4, "kv_heads": 2, "m": 2, "n": 150, "d": 16, "e": 16, "dtype": torch.float32, "seed": 0,
    "alpha": 1.5, "scale": None, "lengths": [0, 1], "block": 16, "shared": False, "density": 0.5,
}  # fmt: skip


@backends
@settings(max_examples=30, deadline=None)
@given(settings_of_a_call())
@example(SMALL)
@example(SMALL | {"density": 0.0})
@example(SMALL | {"lengths": [149, 70], "block": None, "heads": 80, "alpha": 1})  # two tiles of rows
@example(SMALL | {"lengths": [149, 70], "block": 20, "dtype": torch.float16, "alpha": 1.25})
def test_any_sizes(backend, call):
    run(call, backend)


@gpu
@needs_gpu
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("block", [None, 16, 20, 64, 128])
def test_sizes_of_use(block, alpha, dtype):
    for (heads, kv_heads), d, m in product([(32, 8), (8, 8), (32, 1)], [64, 128, 256], [1, 5]):
        inputs = drawn(3, heads, kv_heads, m, 9000, d, dtype=dtype)
        mask = block and drawn_mask(3, kv_heads, m, 9000, block, density=0.2)
        lengths = torch.tensor([9000, 4097, 0], device=DEVICE)
        agrees(inputs, mask, backend="triton", alpha=alpha, lengths=lengths)


@gpu
@needs_gpu
def test_a_graph_is_replayed_with_other_lengths():
    inputs, lengths = drawn(2, 8, 2, 1, 5000, 64, dtype=torch.float16), torch.tensor([5000, 17], device=DEVICE)
    mask = drawn_mask(2, 2, 1, 5000, 64)
    call = partial(block_sparse_entmax_decode, *inputs, mask, lengths=lengths)
    call()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        output = call()
    for new in ([5000, 17], [0, 3000]):
        lengths.copy_(torch.tensor(new))
        graph.replay()
        assert torch.equal(output, call())


@gpu
@needs_gpu
def test_nothing_waits_for_the_gpu():
    inputs, lengths = drawn(2, 8, 2, 1, 5000, 64, dtype=torch.float16), torch.tensor([5000, 17], device=DEVICE)
    mask = drawn_mask(2, 2, 1, 5000, 64)
    block_sparse_entmax_decode(*inputs, mask, lengths=lengths)
    torch.cuda.set_sync_debug_mode("error")
    try:
        block_sparse_entmax_decode(*inputs, mask, lengths=lengths)
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("alpha", ALPHAS)
def test_float64(alpha):
    inputs = [x.double() for x in drawn(2, 4, 2, 3, 100, 16)]
    found = block_sparse_entmax_decode(
        *inputs, alpha=alpha, backend="gather", lengths=torch.tensor([100, 9]).to(DEVICE)
    )
    torch.testing.assert_close(found, twin(*inputs, alpha=alpha, lengths=[100, 9]), rtol=1e-10, atol=1e-12)


@backends
@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_last_rows_of_causal_attention(alpha, backend):
    q, k, v = drawn(1, 2, 1, 70, 70, 16)
    found = block_sparse_entmax_decode(q[:, :, -5:], k, v, alpha=alpha, backend=backend)
    whole = block_sparse_entmax_attention(q, k, v, alpha=alpha, causal=True, backend=backend)
    torch.testing.assert_close(found, whole[:, :, -5:])


@backends
@pytest.mark.parametrize("alpha", ALPHAS)
def test_what_follows_a_sequence_is_not_read(alpha, backend):
    q, k, v = drawn(2, 4, 2, 1, 100, 16)
    lengths = torch.tensor([64, 33], device=DEVICE)
    clean = block_sparse_entmax_decode(q, k, v, alpha=alpha, lengths=lengths, backend=backend)
    for i, length in enumerate(lengths.tolist()):
        k[i, :, length:] = v[i, :, length:] = float("nan")
    found = block_sparse_entmax_decode(q, k, v, alpha=alpha, lengths=lengths, backend=backend)
    assert torch.equal(found, clean)


@backends
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("poisoned", [0, 1, 2])
def test_nan_reaches_the_rows_that_see_it(poisoned, alpha, backend):
    inputs = drawn(2, 4, 2, 1, 100, 16)
    inputs[poisoned][0, :2, 0, 3] = float("nan")
    if poisoned == 2:
        inputs[1][0, :, 0] = inputs[0][0, ::2, 0] * 2  # the first key has a weight, so that its value is read
    found = block_sparse_entmax_decode(*inputs, alpha=alpha, backend=backend)
    touched = found.isnan().any(-1)[..., 0]
    rows = [True, True, False, False] if poisoned == 0 else [True] * 4
    if poisoned == 2:
        assert touched[0, ::2].all()
    else:
        assert touched[0].tolist() == rows
    assert not touched[1].any()


def test_values_without_a_weight_are_not_read():
    pytest.importorskip("triton")
    q, k, v = drawn(1, 4, 1, 1, 640, 16)
    k[:, :, 100] = 50 * q[:, :1, 0] / q[:, :1, 0].norm()
    clean = block_sparse_entmax_decode(q[:, :1], k, v, backend="triton")
    v[:, :, 256:] = float("nan")
    assert torch.equal(block_sparse_entmax_decode(q[:, :1], k, v, backend="triton"), clean)


@backends
@pytest.mark.parametrize("scores", ["equal", "ties", "huge", "one huge key"])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_adversarial_scores(alpha, scores, backend):
    q, k, v = drawn(1, 2, 1, 1, 300, 16)
    if scores == "equal":
        k = torch.zeros_like(k)
    elif scores == "ties":
        k = k[:, :, :5].repeat(1, 1, 60, 1)
    elif scores == "huge":
        k = k * 1e9
    else:
        k[:, :, 3] *= 1e9
    agrees([q, k, v], backend=backend, alpha=alpha)


@backends
def test_strided_caches_and_masks_of_one_list(backend):
    """As caches are kept: [B, n, G, D], and longer than what is read."""
    q, k, v = drawn(2, 4, 2, 2, 120, 16)
    mask = drawn_mask(1, 1, 2, 100, 16)
    inputs = [
        q.transpose(1, 2).contiguous().transpose(1, 2),
        *(x.transpose(1, 2).contiguous().transpose(1, 2) for x in (k, v)),
    ]
    inputs = [inputs[0], inputs[1][:, :, :100], inputs[2][:, :, :100]]
    assert not any(x.is_contiguous() for x in inputs)
    agrees(inputs, mask, backend=backend, lengths=torch.tensor([100, 40], device=DEVICE))


@backends
def test_full_blocks_are_visited_too(backend):
    inputs, dense = drawn(1, 2, 1, 1, 64, 16), torch.tensor([True, False, True, True]).view(1, 1, 1, 4)
    first = dense & (torch.arange(4) < 1)
    one, other = (BlockMask.from_dense(x, (1, 16), (1, 64)).to(DEVICE) for x in (first, dense & ~first))
    split = BlockMask(one.kv_num_blocks, one.kv_indices, (1, 16), (1, 64), other.kv_num_blocks, other.kv_indices)
    whole = BlockMask.from_dense(dense, (1, 16), (1, 64)).to(DEVICE)
    assert torch.equal(*(block_sparse_entmax_decode(*inputs, x, backend=backend) for x in (split, whole)))


@backends
def test_nothing_to_see(backend):
    for sizes in ((2, 4, 2, 1, 0, 16), (0, 4, 2, 1, 10, 16), (2, 4, 2, 0, 10, 16)):
        output = block_sparse_entmax_decode(*drawn(*sizes), backend=backend)
        assert output.shape == (*[sizes[i] for i in (0, 1, 3)], 16)
        assert not output.any()


@backends
def test_two_runs_give_the_same_bytes(backend):
    inputs = drawn(2, 8, 2, 2, 300, 16, dtype=torch.float16)
    assert torch.equal(*(block_sparse_entmax_decode(*inputs, backend=backend) for _ in range(2)))


@backends
@pytest.mark.parametrize("compiler", ["eager", "aot_eager"])
def test_compiled_is_the_same(backend, compiler):
    inputs, mask = drawn(2, 4, 2, 1, 100, 16), drawn_mask(2, 2, 1, 100, 16)

    def function(q, k, v, lengths):
        return block_sparse_entmax_decode(q * 2, k, v, mask, lengths=lengths, backend=backend).relu()

    torch.compiler.reset()
    compiled = torch.compile(function, fullgraph=True, backend=compiler)
    for lengths in (torch.tensor([100, 3], device=DEVICE), torch.tensor([0, 99], device=DEVICE)):
        assert torch.equal(compiled(*inputs, lengths), function(*inputs, lengths))


@backends
@pytest.mark.parametrize("listed", [False, True])
def test_pytorchs_checks_of_operators(backend, listed):
    mask = drawn_mask(2, 2, 1, 50, 16)
    lists = (mask.kv_num_blocks, mask.kv_indices) if listed else (None, None)
    lengths = torch.tensor([50, 3], device=DEVICE)
    torch.library.opcheck(_operator, (*drawn(2, 4, 2, 1, 50, 16), *lists, lengths, 16, 1.5, 0.25, backend))


def test_gradients_are_refused_and_not_needed():
    q, k, v = drawn(1, 2, 1, 1, 20, 16)
    q.requires_grad_()
    with pytest.raises(ValueError, match=r"requires gradients.*no_grad"):
        block_sparse_entmax_decode(q, k, v)
    with torch.no_grad():
        assert not block_sparse_entmax_decode(q, k, v).requires_grad


def test_autocast():
    inputs = drawn(1, 2, 1, 1, 20, 16)
    with torch.autocast(DEVICE, torch.bfloat16):
        found = block_sparse_entmax_decode(*inputs)
    assert torch.equal(found, block_sparse_entmax_decode(*(x.bfloat16() for x in inputs)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"block_mask": torch.ones(1, 1, 1, 4)}, "BlockMask expected"),
        ({"block_mask": drawn_mask(1, 1, 2, 50, 16).to("cpu")}, "block_mask of shape"),
        ({"block_mask": drawn_mask(2, 4, 1, 50, 16).to("cpu")}, "heads of keys"),
        ({"lengths": [50, 3]}, "lengths: int32"),
        ({"lengths": torch.tensor([50])}, "lengths of shape"),
        ({"lengths": torch.tensor([51, 3])}, "outside 0 to n"),
        ({"lengths": torch.tensor([50, -1])}, "outside 0 to n"),
        ({"alpha": 2.5}, "alpha"),
        ({"scale": float("inf")}, "scale"),
        ({"backend": "cuda"}, "backend"),
    ],
)
def test_bad_arguments_are_named(change, message):
    inputs = [x.cpu() for x in drawn(2, 4, 2, 1, 50, 16)]
    with pytest.raises(ValueError, match=message):
        block_sparse_entmax_decode(*inputs, **change)


def test_two_blocks_of_queries_are_refused():
    q, k, v = drawn(1, 2, 1, 4, 32, 16)
    mask = BlockMask.from_dense(torch.ones(1, 1, 2, 2, dtype=torch.bool), (2, 16), (4, 32)).to(DEVICE)
    with pytest.raises(ValueError, match="one block of queries"):
        block_sparse_entmax_decode(q, k, v, mask)
