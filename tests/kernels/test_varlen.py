"""Packed sequences against one call per sequence."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sparselib.kernels import BlockMask, block_sparse_entmax_attention, block_sparse_entmax_varlen

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
BOUNDS = torch.tensor([0, 33, 33, 50, 120], device=DEVICE)


def random_inputs(total, heads=4, kv_heads=2, d=16, e=16, *, dtype=torch.float32, seed=0):
    generator = torch.Generator().manual_seed(seed)
    shapes = [(total, heads, d), (total, kv_heads, d), (total, kv_heads, e)]
    return [torch.randn(x, generator=generator).to(DEVICE, dtype).requires_grad_() for x in shapes]


def random_blocks(batch, heads, n, block, seed=0):
    blocks = -(-n // block)
    return torch.rand(batch, heads, blocks, blocks, generator=torch.Generator().manual_seed(seed)) < 0.6


def separate_calls(q, k, v, bounds, dense=None, block=16, **rules):
    """Compute each sequence separately, with its part of the mask."""
    outputs = [q.new_zeros(0, q.shape[1], v.shape[-1])]
    for i, (start, end) in enumerate(itertools.pairwise(bounds)):
        if start == end:
            continue
        mask = None
        if dense is not None:
            blocks = -(-(end - start) // block)
            mask = BlockMask.from_dense(dense[[i % len(dense)], :, :blocks, :blocks], block, end - start).to(DEVICE)
        inputs = [x[start:end].transpose(0, 1)[None] for x in (q, k, v)]
        outputs.append(block_sparse_entmax_attention(*inputs, mask, **rules)[0].transpose(0, 1))
    return torch.cat(outputs)


def check_against_separate_calls(inputs, bounds, dense=None, block=16, longest=None, **rules):
    """Compare outputs and gradients with separate calls."""
    lengths = [end - start for start, end in itertools.pairwise(bounds)]
    mask = None if dense is None else BlockMask.from_dense(dense, block, longest or max(lengths)).to(DEVICE)
    packed = torch.tensor(bounds, dtype=torch.int32, device=DEVICE)
    output = block_sparse_entmax_varlen(*inputs, packed, mask, longest=longest, **rules)
    expected = separate_calls(*inputs, bounds, dense, block, **rules)
    torch.testing.assert_close(output, expected, rtol=1e-4, atol=1e-5)
    upstream = torch.randn(output.shape, generator=torch.Generator().manual_seed(1)).to(output)
    pairs = zip(*(torch.autograd.grad(x, inputs, upstream) for x in (output, expected)), strict=True)
    for gradient, expected_gradient in pairs:
        torch.testing.assert_close(gradient, expected_gradient, rtol=1e-3, atol=1e-4)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.integers(0, 90), min_size=1, max_size=5).filter(any),
    st.sampled_from([1, 1.25, 1.5, 2]),
    st.booleans(),
    st.none() | st.sampled_from([8, 16, 20]),
    st.booleans(),
)
def test_any_lengths(lengths, alpha, causal, block, shared):
    bounds = [sum(lengths[:i]) for i in range(len(lengths) + 1)]
    dense = block and random_blocks(1 if shared else len(lengths), 4, max(lengths), block)
    check_against_separate_calls(
        random_inputs(bounds[-1], e=24), bounds, dense, block or 16, alpha=alpha, causal=causal
    )


@pytest.mark.parametrize("alpha", [1, 1.5])
@pytest.mark.parametrize("causal", [False, True])
def test_triton(alpha, causal):
    pytest.importorskip("triton")
    inputs, blocks = random_inputs(50, heads=2, kv_heads=1, d=20), random_blocks(3, 2, 33, 16)
    check_against_separate_calls(inputs, [0, 33, 33, 50], blocks, alpha=alpha, causal=causal, backend="triton")


@pytest.mark.gpu
@pytest.mark.skipif(DEVICE == "cpu", reason="too large for the interpreter: no CUDA device")
@pytest.mark.parametrize("alpha", [1, 1.25, 1.5, 2])
def test_long_sequences(alpha):
    bounds = [0, 2000, 2001, 2001, 6000]
    for block in (None, 64):
        dense = block and random_blocks(4, 4, 3999, block)
        check_against_separate_calls(
            random_inputs(6000, d=64), bounds, dense, block or 64, alpha=alpha, causal=True, backend="triton"
        )


def test_a_larger_longest_does_not_change_the_result():
    check_against_separate_calls(random_inputs(50), [0, 33, 33, 50], random_blocks(3, 4, 64, 16), longest=64)


def test_scale_and_half_precision():
    inputs = random_inputs(50, dtype=torch.float16)
    output = block_sparse_entmax_varlen(*inputs, torch.tensor([0, 20, 50], device=DEVICE), scale=0.7)
    assert output.dtype == torch.float16
    torch.testing.assert_close(output, separate_calls(*inputs, [0, 20, 50], scale=0.7))


def test_no_tokens():
    inputs = random_inputs(0)
    for bounds in ([0], [0, 0, 0]):
        output = block_sparse_entmax_varlen(*inputs, torch.tensor(bounds, device=DEVICE))
        assert output.shape == (0, 4, 16)


@pytest.mark.parametrize("compiler", ["eager", "aot_eager"])
def test_compiled_calls_are_equal(compiler):
    inputs = random_inputs(120)

    def function(q, k, v, bounds):
        backend = "triton" if DEVICE == "cuda" else "gather"  # compiled or not
        return block_sparse_entmax_varlen(q * 2, k, v, bounds, longest=70, causal=True, backend=backend).relu()

    torch.compiler.reset()
    outputs = [f(*inputs, BOUNDS) for f in (function, torch.compile(function, fullgraph=True, backend=compiler))]
    gradients = [torch.autograd.grad(output.square().sum(), inputs) for output in outputs]
    torch.testing.assert_close((outputs[0], *gradients[0]), (outputs[1], *gradients[1]), rtol=0, atol=0)


@pytest.mark.skipif(DEVICE == "cuda", reason="values are not checked on a GPU")
@pytest.mark.parametrize(
    ("bounds", "rules", "message"),
    [
        (torch.tensor([1, 120]), {}, "`cu_seqlens` must rise from 0 to 120"),
        (torch.tensor([0, 119]), {}, "`cu_seqlens` must rise from 0 to 120"),
        (torch.tensor([0, 60, 50, 120]), {}, "`cu_seqlens` must rise from 0 to 120"),
        (torch.tensor([0, 60, 120]), {"longest": 59}, "`longest` must be at least 60, .* got 59"),
        (torch.tensor([0.0, 120.0]), {}, "`cu_seqlens` must be an int32 or int64 tensor"),
        ([0, 120], {}, "`cu_seqlens` must be an int32 or int64 tensor, got <class 'list'>"),
        (torch.tensor([[0, 120]]), {}, r"`cu_seqlens` must have shape \(B \+ 1,\)"),
        (torch.tensor([], dtype=torch.int32), {}, "`cu_seqlens` must have shape"),
        (
            torch.tensor([0, 120]),
            {"block_mask": BlockMask.from_dense(random_blocks(1, 1, 60, 16), 16, 60)},
            "`block_mask` must have the lengths",
        ),
        (torch.tensor([0, 120]), {"alpha": 3}, "`alpha` must be from 1"),
    ],
)
def test_errors_name_the_argument(bounds, rules, message):
    with pytest.raises(ValueError, match=message):
        block_sparse_entmax_varlen(*random_inputs(120), bounds, **rules)


def test_unpacked_inputs_are_rejected():
    q, k, v = random_inputs(120)
    with pytest.raises(ValueError, match=r"`k` must have shape \(total, heads, D\) and the total of `q`, 120"):
        block_sparse_entmax_varlen(q, k[:100], v, BOUNDS)
    with pytest.raises(ValueError, match=r"`q` must have shape \(total, heads, D\)"):
        block_sparse_entmax_varlen(q[None], k[None], v[None], BOUNDS)
