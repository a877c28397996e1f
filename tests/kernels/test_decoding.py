"""Decoding, in both backends, against float64 entmax over all allowed keys; the interpreter runs small sizes."""

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


def random_inputs(b, heads, kv_heads, m, n, d, e=None, *, dtype=torch.float32, seed=0):
    generator = torch.Generator().manual_seed(seed)
    shapes = [(b, heads, m, d), (b, kv_heads, n, d), (b, kv_heads, n, e or d)]
    return [torch.randn(x, generator=generator).mul_(1.5).to(DEVICE, dtype) for x in shapes]


def random_mask(b, kv_heads, m, n, block, *, density=0.5, seed=0):
    """Return a mask of random key blocks for one query block."""
    visited = torch.rand(b, kv_heads, 1, -(-n // block), generator=torch.Generator().manual_seed(seed)) < density
    return BlockMask.from_dense(visited, (m, block), (m, n)).to(DEVICE)


def in_order(q, k):
    """Return products of queries and keys ``[..., D, N]`` whose terms are added one after another.

    Matrix units add float32 like this. PyTorch adds partial sums, whose rounding is several times smaller for a large D.
    """
    return sum(q[..., i : i + 1] * k[..., i : i + 1, :] for i in range(q.shape[-1]))


def reference(q, k, v, mask=None, *, alpha=1.5, scale=None, lengths=None, products=torch.matmul):
    """Compute the output in the dtype of the inputs from all scores, with a token mask built row by row."""
    (b, h, m, d), (kv_heads, n) = q.shape, k.shape[1:3]
    seen = torch.zeros(b, h, m, n, dtype=torch.bool)
    dense = None if mask is None else mask.to_dense().cpu()
    for i, head, query in product(range(b), range(h), range(m)):
        length = n if lengths is None else int(lengths[i])
        visible = torch.arange(n) <= length - m + query
        if dense is not None:
            own = head if dense.shape[1] == h else (head // (h // kv_heads)) % dense.shape[1]
            blocks = dense[i % len(dense), own, 0]
            visible &= blocks.repeat_interleave(mask.block_size[1])[:n]
        seen[i, head, query] = visible
    scores = products(q.reshape(b, kv_heads, -1, d), k.mT).view(b, h, m, n) * (d**-0.5 if scale is None else scale)
    weights = entmax_with_threshold(scores, seen.to(q.device), alpha)[0].to(v.dtype)
    return (weights.view(b, kv_heads, -1, n) @ v).view(b, h, m, -1)


def check_error(inputs, mask=None, *, backend, **rules):
    """Check that the error is at most twice that of plain PyTorch in the same dtype, plus a few roundings."""
    output = block_sparse_entmax_decode(*inputs, mask, backend=backend, **rules)
    assert output.dtype == inputs[0].dtype
    exact = reference(*(x.double() for x in inputs), mask, **rules)
    plain = reference(*inputs, mask, **rules, products=in_order if output.dtype == torch.float32 else torch.matmul)
    if exact.numel():
        rounding = 8 * torch.finfo(output.dtype).eps * exact.abs().max()
        assert (output - exact).abs().max() <= 2 * (plain - exact).abs().max() + rounding
        assert torch.equal(output[(exact == 0).all(-1)], torch.zeros_like(output[(exact == 0).all(-1)]))
    return output


@st.composite
def random_calls(draw):
    """Draw the sizes and arguments of a call."""
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
        "lists": draw(st.sampled_from(["shared", "key heads", "query heads"])),
        "density": draw(st.sampled_from([0.0, 0.3, 0.8, 1.0])),
    }


def run(call, backend):
    """Check a call random_inputs by `random_calls`."""
    call = dict(call)
    alpha, scale, lengths = call.pop("alpha"), call.pop("scale"), call.pop("lengths")
    block, lists, density = call.pop("block"), call.pop("lists"), call.pop("density")
    heads = call["heads"] if lists == "query heads" and backend == "gather" else call["kv_heads"]
    sizes = (1, 1) if lists == "shared" else (call["b"], heads)
    mask = block and random_mask(*sizes, call["m"], call["n"], block, density=density, seed=call["seed"])
    lengths = None if lengths is None else torch.tensor(lengths, device=DEVICE)
    check_error(random_inputs(**call), mask, backend=backend, alpha=alpha, scale=scale, lengths=lengths)


SMALL = {
    "b": 2, "heads": 4, "kv_heads": 2, "m": 2, "n": 150, "d": 16, "e": 16, "dtype": torch.float32, "seed": 0,
    "alpha": 1.5, "scale": None, "lengths": [0, 1], "block": 16, "lists": "key heads", "density": 0.5,
}  # fmt: skip


@backends
@settings(max_examples=15, deadline=None)
@given(random_calls())
@example(SMALL)
@example(SMALL | {"density": 0.0})
@example(SMALL | {"lists": "query heads", "lengths": [149, 70]})
@example(SMALL | {"lengths": [149, 70], "block": None, "heads": 80, "alpha": 1})  # two tiles of rows
@example(SMALL | {"lengths": [149, 70], "block": 20, "dtype": torch.float16, "alpha": 1.25})
def test_any_sizes(backend, call):
    run(call, backend)


LARGE_BLOCKS = [None, 16, 20, 64, 128]


@gpu
@needs_gpu
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("block", LARGE_BLOCKS)
def test_realistic_sizes(block, alpha, dtype):
    """Dimensions rotate, because a GPU compiles kernels for seconds: each runs with any two of the parameters."""
    d = (64, 128, 256)[(LARGE_BLOCKS.index(block) + ALPHAS.index(alpha) + DTYPES.index(dtype)) % 3]
    for (heads, kv_heads), m in product([(32, 8), (8, 8), (32, 1)], [1, 5]):
        inputs = random_inputs(3, heads, kv_heads, m, 9000, d, dtype=dtype)
        mask = block and random_mask(3, kv_heads, m, 9000, block, density=0.2)
        lengths = torch.tensor([9000, 4097, 0], device=DEVICE)
        check_error(inputs, mask, backend="triton", alpha=alpha, lengths=lengths)


@gpu
@needs_gpu
def test_a_cuda_graph_replays_with_other_lengths():
    inputs, lengths = random_inputs(2, 8, 2, 1, 5000, 64, dtype=torch.float16), torch.tensor([5000, 17], device=DEVICE)
    mask = random_mask(2, 2, 1, 5000, 64)
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
def test_a_call_does_not_wait_for_the_gpu():
    inputs, lengths = random_inputs(2, 8, 2, 1, 5000, 64, dtype=torch.float16), torch.tensor([5000, 17], device=DEVICE)
    mask = random_mask(2, 2, 1, 5000, 64)
    block_sparse_entmax_decode(*inputs, mask, lengths=lengths)
    torch.cuda.set_sync_debug_mode("error")
    try:
        block_sparse_entmax_decode(*inputs, mask, lengths=lengths)
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("alpha", ALPHAS)
def test_float64(alpha):
    inputs = [x.double() for x in random_inputs(2, 4, 2, 3, 100, 16)]
    output = block_sparse_entmax_decode(
        *inputs, alpha=alpha, backend="gather", lengths=torch.tensor([100, 9]).to(DEVICE)
    )
    torch.testing.assert_close(output, reference(*inputs, alpha=alpha, lengths=[100, 9]), rtol=1e-10, atol=1e-12)


@backends
@pytest.mark.parametrize("alpha", ALPHAS)
def test_output_equals_the_last_rows_of_causal_attention(alpha, backend):
    q, k, v = random_inputs(1, 2, 1, 70, 70, 16)
    output = block_sparse_entmax_decode(q[:, :, -5:], k, v, alpha=alpha, backend=backend)
    all_rows = block_sparse_entmax_attention(q, k, v, alpha=alpha, causal=True, backend=backend)
    torch.testing.assert_close(output, all_rows[:, :, -5:])


@backends
@pytest.mark.parametrize("alpha", ALPHAS)
def test_padding_is_not_read(alpha, backend):
    q, k, v = random_inputs(2, 4, 2, 1, 100, 16)
    lengths = torch.tensor([64, 33], device=DEVICE)
    clean = block_sparse_entmax_decode(q, k, v, alpha=alpha, lengths=lengths, backend=backend)
    for i, length in enumerate(lengths.tolist()):
        k[i, :, length:] = v[i, :, length:] = float("nan")
    output = block_sparse_entmax_decode(q, k, v, alpha=alpha, lengths=lengths, backend=backend)
    assert torch.equal(output, clean)


@backends
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("poisoned", [0, 1, 2])
def test_nan_reaches_the_rows_that_attend_to_it(poisoned, alpha, backend):
    inputs = random_inputs(2, 4, 2, 1, 100, 16)
    inputs[poisoned][0, :2, 0, 3] = float("nan")
    if poisoned == 2:
        inputs[1][0, :, 0] = inputs[0][0, ::2, 0] * 2  # gives the first key a weight, so that its value is read
    output = block_sparse_entmax_decode(*inputs, alpha=alpha, backend=backend)
    touched = output.isnan().any(-1)[..., 0]
    rows = [True, True, False, False] if poisoned == 0 else [True] * 4
    if poisoned == 2:
        assert touched[0, ::2].all()
    else:
        assert touched[0].tolist() == rows
    assert not touched[1].any()


def test_values_with_weight_0_are_not_read():
    pytest.importorskip("triton")
    q, k, v = random_inputs(1, 4, 1, 1, 640, 16)
    k[:, :, 100] = 50 * q[:, :1, 0] / q[:, :1, 0].norm()
    clean = block_sparse_entmax_decode(q[:, :1], k, v, backend="triton")
    v[:, :, 256:] = float("nan")
    assert torch.equal(block_sparse_entmax_decode(q[:, :1], k, v, backend="triton"), clean)


@backends
@pytest.mark.parametrize("scores", ["equal", "ties", "huge", "one huge key"])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_adversarial_scores(alpha, scores, backend):
    q, k, v = random_inputs(1, 2, 1, 1, 300, 16)
    if scores == "equal":
        k = torch.zeros_like(k)
    elif scores == "ties":
        k = k[:, :, :5].repeat(1, 1, 60, 1)
    elif scores == "huge":
        k = k * 1e9
    else:
        k[:, :, 3] *= 1e9
    check_error([q, k, v], backend=backend, alpha=alpha)


@backends
def test_strided_caches_and_masks_of_one_list(backend):
    """Caches are usually stored as [B, n, G, D] and longer than the part that is read."""
    q, k, v = random_inputs(2, 4, 2, 2, 120, 16)
    mask = random_mask(1, 1, 2, 100, 16)
    inputs = [
        q.transpose(1, 2).contiguous().transpose(1, 2),
        *(x.transpose(1, 2).contiguous().transpose(1, 2) for x in (k, v)),
    ]
    inputs = [inputs[0], inputs[1][:, :, :100], inputs[2][:, :, :100]]
    assert not any(x.is_contiguous() for x in inputs)
    check_error(inputs, mask, backend=backend, lengths=torch.tensor([100, 40], device=DEVICE))


@backends
def test_full_blocks_are_visited(backend):
    inputs, dense = random_inputs(1, 2, 1, 1, 64, 16), torch.tensor([True, False, True, True]).view(1, 1, 1, 4)
    first = dense & (torch.arange(4) < 1)
    partial, full = (BlockMask.from_dense(x, (1, 16), (1, 64)).to(DEVICE) for x in (first, dense & ~first))
    split = BlockMask(partial.kv_num_blocks, partial.kv_indices, (1, 16), (1, 64), full.kv_num_blocks, full.kv_indices)
    whole = BlockMask.from_dense(dense, (1, 16), (1, 64)).to(DEVICE)
    assert torch.equal(*(block_sparse_entmax_decode(*inputs, x, backend=backend) for x in (split, whole)))


@backends
def test_empty_inputs(backend):
    for sizes in ((2, 4, 2, 1, 0, 16), (0, 4, 2, 1, 10, 16), (2, 4, 2, 0, 10, 16)):
        output = block_sparse_entmax_decode(*random_inputs(*sizes), backend=backend)
        assert output.shape == (*[sizes[i] for i in (0, 1, 3)], 16)
        assert not output.any()


@backends
def test_repeated_calls_are_bitwise_equal(backend):
    inputs = random_inputs(2, 8, 2, 2, 300, 16, dtype=torch.float16)
    assert torch.equal(*(block_sparse_entmax_decode(*inputs, backend=backend) for _ in range(2)))


@backends
@pytest.mark.parametrize("compiler", ["eager", "aot_eager"])
def test_compiled_calls_are_equal(backend, compiler):
    inputs, mask = random_inputs(2, 4, 2, 1, 100, 16), random_mask(2, 2, 1, 100, 16)

    def function(q, k, v, lengths):
        return block_sparse_entmax_decode(q * 2, k, v, mask, lengths=lengths, backend=backend).relu()

    torch.compiler.reset()
    compiled = torch.compile(function, fullgraph=True, backend=compiler)
    for lengths in (torch.tensor([100, 3], device=DEVICE), torch.tensor([0, 99], device=DEVICE)):
        assert torch.equal(compiled(*inputs, lengths), function(*inputs, lengths))


@backends
@pytest.mark.parametrize("listed", [False, True])
def test_pytorchs_operator_checks(backend, listed):
    mask = random_mask(2, 2, 1, 50, 16)
    lists = (mask.kv_num_blocks, mask.kv_indices) if listed else (None, None)
    lengths = torch.tensor([50, 3], device=DEVICE)
    torch.library.opcheck(
        _operator, (*random_inputs(2, 4, 2, 1, 50, 16), *lists, lengths, None, 16, 1.5, 0.25, backend)
    )


def test_gradients_are_rejected():
    q, k, v = random_inputs(1, 2, 1, 1, 20, 16)
    q.requires_grad_()
    with pytest.raises(ValueError, match=r"must not require gradients.*no_grad"):
        block_sparse_entmax_decode(q, k, v)
    with torch.no_grad():
        assert not block_sparse_entmax_decode(q, k, v).requires_grad


def test_autocast():
    inputs = random_inputs(1, 2, 1, 1, 20, 16)
    with torch.autocast(DEVICE, torch.bfloat16):
        output = block_sparse_entmax_decode(*inputs)
    assert torch.equal(output, block_sparse_entmax_decode(*(x.bfloat16() for x in inputs)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"block_mask": torch.ones(1, 1, 1, 4)}, "`block_mask` must be a BlockMask"),
        ({"block_mask": random_mask(1, 1, 2, 50, 16).to("cpu")}, "`block_mask` must have the lengths"),
        ({"block_mask": random_mask(2, 3, 1, 50, 16).to("cpu")}, "`block_mask` must have the batch size and key heads"),
        (
            {"block_mask": random_mask(2, 4, 1, 50, 16).to("cpu"), "backend": "triton"},
            "`block_mask` must have the batch size and key heads",
        ),
        ({"lengths": [50, 3]}, "`lengths` must be an int32 or int64 tensor"),
        ({"lengths": torch.tensor([50])}, r"`lengths` must have shape \(2,\)"),
        ({"lengths": torch.tensor([51, 3])}, r"`lengths` must be from 0 to 50.*got \[51, 3\]"),
        ({"lengths": torch.tensor([50, -1])}, "`lengths` must be from 0 to 50"),
        ({"alpha": 2.5}, "`alpha` must be from 1"),
        ({"scale": float("inf")}, "`scale` must be finite"),
        ({"backend": "cuda"}, "`backend` must be one of 'gather', 'triton'"),
    ],
)
def test_errors_name_the_argument(change, message):
    inputs = [x.cpu() for x in random_inputs(2, 4, 2, 1, 50, 16)]
    with pytest.raises(ValueError, match=message):
        block_sparse_entmax_decode(*inputs, **change)


def test_two_query_blocks_are_rejected():
    q, k, v = random_inputs(1, 2, 1, 4, 32, 16)
    mask = BlockMask.from_dense(torch.ones(1, 1, 2, 2, dtype=torch.bool), (2, 16), (4, 32)).to(DEVICE)
    with pytest.raises(ValueError, match="`block_mask` must have one query block, got 2"):
        block_sparse_entmax_decode(q, k, v, mask)
