"""A GPU is waited for only where numbers are asked for: counted on a CPU, and refused by CUDA itself on a GPU."""

from contextlib import contextmanager

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from replication.timing.contenders import untrained_prediction
from sparselib.kernels import BlockMask, block_sparse_entmax_attention

gpu = pytest.mark.gpu
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
#: What the host cannot know before a GPU has computed it: numbers, and shapes that depend on them.
WAITING = ("_local_scalar_dense", "nonzero", "masked_select", "unique", "equal", "is_nonzero")


class Waits(TorchDispatchMode):
    """Counts the operators for which a GPU would be waited for."""

    count = 0

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        self.count += any(name in function.name() for name in WAITING)
        return function(*arguments, **(options or {}))


@contextmanager
def no_waits():
    """CUDA refuses every call that would wait."""
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


def drawn(device, n=256, d=16):
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(1, 2, n, d, generator=generator).to(device).requires_grad_() for _ in range(3)]


def drawn_mask(device, n=256):
    dense = torch.rand(1, 2, n // 16, n // 16, generator=torch.Generator().manual_seed(0)) < 0.5
    return BlockMask.from_dense(dense, 16, n).to(device)


def attended(inputs, mask, **rules):
    """Both passes, through a call whose mask is ready."""
    output = block_sparse_entmax_attention(*inputs, mask, **rules)
    return output, *torch.autograd.grad(output, inputs, output.detach())


@pytest.mark.parametrize("check", [False, True])
def test_numbers_are_looked_at_only_when_asked(check):
    """Those of lengths; on a CPU, a list of the extremes of q, k and v is read without an operator."""
    pytest.importorskip("triton")
    inputs, mask = drawn("cpu", 64), drawn_mask("cpu", 64)
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


def test_unchecked_lengths_count_as_those_of_the_tensor():
    inputs = drawn("cpu", 64)
    for backend in ("gather", "triton"):
        if backend == "triton":
            pytest.importorskip("triton")
        far = block_sparse_entmax_attention(
            *inputs, lengths=torch.tensor([1000]), backend=backend, check=False, causal=True
        )
        whole = block_sparse_entmax_attention(*inputs, lengths=torch.tensor([64]), backend=backend, causal=True)
        assert torch.equal(far, whole)


@gpu
@needs_gpu
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("lengths", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_a_call_waits_for_nothing(masked, lengths, causal):
    inputs, mask = drawn("cuda"), drawn_mask("cuda") if masked else None
    rules = {"causal": causal, "lengths": torch.tensor([200], device="cuda") if lengths else None}
    attended(inputs, mask, **rules)  # compiles
    with no_waits():
        attended(inputs, mask, **rules)


@gpu
@needs_gpu
def test_a_check_waits():
    with no_waits(), pytest.raises(RuntimeError, match="synchroniz"):
        block_sparse_entmax_attention(*drawn("cuda"), check=True)


@gpu
@needs_gpu
@pytest.mark.parametrize("causal", [False, True])
def test_a_cuda_graph_replays_both_passes(causal):
    inputs, mask = drawn("cuda"), drawn_mask("cuda")
    # Detached: a graph of autograd that is alive holds its leaves to the stream that it was made on.
    expected = [x.detach() for x in attended(inputs, mask, causal=causal)]
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        attended(inputs, mask, causal=causal)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = attended(inputs, mask, causal=causal)
    graph.replay()
    assert all(torch.equal(x, y) for x, y in zip(found, expected, strict=True))


@gpu
@needs_gpu
def test_a_compiled_prediction_waits_for_nothing():
    q, k, _ = (x.detach() for x in drawn("cuda", 1024, 64))
    predict = untrained_prediction(2, 64, 64, clusters=4, count=2, seed=0, device="cuda", compiled=True)
    predict(q, k)  # compiles
    with no_waits():
        predict(q, k)
