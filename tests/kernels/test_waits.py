"""Calls wait for a GPU only if they check or return numbers. Waits are counted on a CPU, and rejected by CUDA on a GPU."""

from contextlib import contextmanager

import pytest
import torch
from interpreter import require_interpreter
from torch.utils._python_dispatch import TorchDispatchMode

from replication.timing.contenders import untrained_prediction
from sparselib.kernels import BlockMask, block_sparse_entmax_attention

gpu = pytest.mark.gpu
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
#: Operators that return numbers to the host, or shapes that depend on numbers.
WAITING = ("_local_scalar_dense", "nonzero", "masked_select", "unique", "equal", "is_nonzero")


class Waits(TorchDispatchMode):
    """Counts the operators that would wait for a GPU."""

    count = 0

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        self.count += any(name in function.name() for name in WAITING)
        return function(*arguments, **(options or {}))


@contextmanager
def no_waits():
    """Let CUDA raise an error for every call that waits."""
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


def random_inputs(device, n=256, d=16):
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(1, 2, n, d, generator=generator).to(device).requires_grad_() for _ in range(3)]


def random_mask(device, n=256):
    dense = torch.rand(1, 2, n // 16, n // 16, generator=torch.Generator().manual_seed(0)) < 0.5
    return BlockMask.from_dense(dense, 16, n).to(device)


def both_passes(inputs, mask, **rules):
    """Run the forward and backward pass."""
    output = block_sparse_entmax_attention(*inputs, mask, **rules)
    return output, *torch.autograd.grad(output, inputs, output.detach())


@pytest.mark.parametrize("check", [False, True])
def test_numbers_are_checked_only_on_request(check):
    """Only the check of lengths counts here: on a CPU, the extremes of q, k and v are read without an operator."""
    require_interpreter()
    inputs, mask = random_inputs("cpu", 64), random_mask("cpu", 64)
    lengths = torch.tensor([40])
    with Waits() as waits:
        block_sparse_entmax_attention(*inputs, mask, causal=True, lengths=lengths, backend="triton", check=check)
    assert waits.count == check


def test_a_mask_waits_once():
    dense = torch.rand(1, 2, 8, 8, generator=torch.Generator().manual_seed(0)) < 0.5
    with Waits() as building:
        mask = BlockMask.from_dense(dense, 16, 128)
    with Waits() as checking:
        BlockMask(mask.kv_num_blocks, mask.kv_indices, 16, 128, 0 * mask.kv_num_blocks, mask.kv_indices)
    assert (building.count, checking.count) == (1, 1)


def test_unchecked_lengths_are_clamped():
    inputs = random_inputs("cpu", 64)
    for backend in ("gather", "triton"):
        require_interpreter(backend)
        too_long = block_sparse_entmax_attention(
            *inputs, lengths=torch.tensor([1000]), backend=backend, check=False, causal=True
        )
        whole = block_sparse_entmax_attention(*inputs, lengths=torch.tensor([64]), backend=backend, causal=True)
        assert torch.equal(too_long, whole)


@gpu
@needs_gpu
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("lengths", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_a_call_does_not_wait(masked, lengths, causal):
    inputs, mask = random_inputs("cuda"), random_mask("cuda") if masked else None
    rules = {"causal": causal, "lengths": torch.tensor([200], device="cuda") if lengths else None}
    both_passes(inputs, mask, **rules)  # compiles the kernels
    with no_waits():
        both_passes(inputs, mask, **rules)


@gpu
@needs_gpu
def test_a_check_waits():
    with no_waits(), pytest.raises(RuntimeError, match="synchroniz"):
        block_sparse_entmax_attention(*random_inputs("cuda"), check=True)


@gpu
@needs_gpu
@pytest.mark.parametrize("causal", [False, True])
def test_a_cuda_graph_replays_both_passes(causal):
    inputs, mask = random_inputs("cuda"), random_mask("cuda")
    # Detached, because a live autograd graph ties its leaves to the stream on which it was recorded.
    expected = [x.detach() for x in both_passes(inputs, mask, causal=causal)]
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        both_passes(inputs, mask, causal=causal)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = both_passes(inputs, mask, causal=causal)
    graph.replay()
    assert all(torch.equal(x, y) for x, y in zip(results, expected, strict=True))


@gpu
@needs_gpu
def test_a_compiled_prediction_does_not_wait():
    q, k, _ = (x.detach() for x in random_inputs("cuda", 1024, 64))
    predict = untrained_prediction(2, 64, 64, clusters=4, count=2, seed=0, device="cuda", compiled=True)
    predict(q, k)  # compiles the prediction
    with no_waits():
        predict(q, k)
