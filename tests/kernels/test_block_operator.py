"""The operator: PyTorch's operator checks, compilation, and the choice of backend."""

import shutil

import pytest
import torch
from interpreter import require_interpreter
from torch._subclasses.fake_tensor import FakeTensorMode

from sparselib.kernels import (
    BlockMask,
    block_sparse_entmax_attention,
    block_sparse_entmax_decode,
)
from sparselib.kernels.block_operator import _operator

#: Inductor compiles C++ for the CPU.
COMPILER = "inductor" if shutil.which("g++") else "aot_eager"


def random_inputs(n=40, d=16, dtype=torch.float32):
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(1, 2, n, d, generator=generator).to(dtype).requires_grad_() for _ in range(3)]


def random_mask(n=40):
    blocks = -(-n // 16)
    dense = torch.rand(1, 2, blocks, blocks, generator=torch.Generator().manual_seed(0)) < 0.6
    return BlockMask.from_dense(dense, 16, n)


def lists(mask):
    """Return the operator's first two list arguments."""
    return (None, None) if mask is None else (mask.kv_num_blocks, mask.kv_indices)


@pytest.mark.parametrize("alpha", [1.0, 1.5])
@pytest.mark.parametrize("mask", [None, random_mask(20)])
@pytest.mark.parametrize("backend", ["gather", "triton"])
def test_pytorchs_operator_checks(backend, mask, alpha):
    require_interpreter(backend)
    lengths = torch.tensor([17], dtype=torch.int32)
    torch.library.opcheck(
        _operator,
        (*random_inputs(20), *lists(mask), None, None, lengths, None, 16, 16, alpha, 0.25, True, backend, False, True),
    )


@pytest.mark.parametrize("mask", [None, random_mask()])
@pytest.mark.parametrize("backend", ["gather", "triton"])
def test_compiled_calls_are_equal(backend, mask):
    """Compile without graph breaks, with Inductor if a C++ compiler is available."""
    require_interpreter(backend)
    inputs = random_inputs()

    def function(q, k, v):
        lengths = torch.tensor([35])
        return block_sparse_entmax_attention(q * 2, k, v, mask, causal=True, lengths=lengths, backend=backend).relu()

    outputs = [f(*inputs) for f in (function, torch.compile(function, fullgraph=True, backend=COMPILER))]
    gradients = [torch.autograd.grad(output.square().sum(), inputs) for output in outputs]
    torch.testing.assert_close((outputs[0], *gradients[0]), (outputs[1], *gradients[1]), rtol=0, atol=0)


def test_backends_agree():
    require_interpreter()
    outputs = [
        block_sparse_entmax_attention(*random_inputs(), random_mask(), backend=x) for x in (None, "gather", "triton")
    ]
    torch.testing.assert_close(outputs[0], outputs[1])
    torch.testing.assert_close(outputs[1], outputs[2])


def test_repeated_calls_are_bitwise_equal():
    inputs = random_inputs(300)
    gradients = [
        torch.autograd.grad(block_sparse_entmax_attention(*inputs, random_mask(300)).sum(), inputs) for _ in range(2)
    ]
    assert all(torch.equal(x, y) for x, y in zip(*gradients, strict=True))


def test_second_derivatives_are_rejected():
    inputs = random_inputs()
    (dq,) = torch.autograd.grad(block_sparse_entmax_attention(*inputs).square().sum(), inputs[:1], create_graph=True)
    with pytest.raises(NotImplementedError, match="second derivatives"):
        dq.sum().backward()


@pytest.mark.parametrize("mask", [None, random_mask()])
def test_fake_tensors_have_shapes_and_gradients(mask):
    with FakeTensorMode(allow_non_fake_inputs=True):
        inputs = [torch.empty(1, 2, 40, 16, requires_grad=True) for _ in range(3)]
        output = block_sparse_entmax_attention(*inputs, mask, lengths=torch.tensor([35]))
        gradients = torch.autograd.grad(output.sum(), inputs)
        newest = block_sparse_entmax_decode(*(x.detach() for x in inputs), lengths=torch.tensor([35]))
    assert {x.shape for x in (output, newest, *gradients)} == {(1, 2, 40, 16)}


@pytest.mark.parametrize(
    "transformed",
    [
        lambda f, q: torch.vmap(f)(q[None]),
        lambda f, q: torch.func.grad(lambda q: f(q).sum())(q),
        lambda f, q: torch.func.jvp(f, (q,), (q,)),
        lambda f, q: torch.func.jacrev(f)(q),
    ],
    ids=["vmap", "grad", "jvp", "jacrev"],
)
@pytest.mark.parametrize("position", [0, 1, 2])
def test_transformations_are_rejected(transformed, position):
    inputs = [x.detach() for x in random_inputs()]

    def attend(x):
        return block_sparse_entmax_attention(*inputs[:position], x, *inputs[position + 1 :])

    with pytest.raises(NotImplementedError, match=r"does not run under torch\.vmap and torch\.func; give it a batch"):
        transformed(attend, inputs[position])


def test_gradients_in_batches_are_equal():
    q, k, v = (x.detach().double() for x in random_inputs(20))

    def summed(q):
        return block_sparse_entmax_attention(q, k, v, random_mask(20)).sum((2, 3))

    one_by_one, batched = (torch.autograd.functional.jacobian(summed, q, vectorize=x) for x in (False, True))
    torch.testing.assert_close(batched, one_by_one)


def test_unknown_backends_are_rejected():
    with pytest.raises(ValueError, match="`backend` must be one of 'gather', 'support', 'triton' or None, got 'cuda'"):
        block_sparse_entmax_attention(*random_inputs(), backend="cuda")


def test_triton_rejects_float64():
    with pytest.raises(ValueError, match="`backend` must be 'gather' for a float64 `q`"):
        block_sparse_entmax_attention(*random_inputs(dtype=torch.float64), backend="triton")


def test_compiled_triton_rejects_a_cpu(monkeypatch):
    pytest.importorskip("triton")
    from sparselib.kernels import triton_tiles

    monkeypatch.setattr(triton_tiles, "INTERPRETED", False)
    with pytest.raises(ValueError, match=r"`backend` must be 'gather' on cpu.*TRITON_INTERPRET"):
        block_sparse_entmax_attention(*random_inputs(), backend="triton")
