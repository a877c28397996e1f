"""Values that no query may see change nothing, even if they are NaN; NaN that a query sees reaches its row."""

import pytest
import torch

from sparselib.kernels import BlockMask, block_sparse_entmax_attention

pytest.importorskip("triton")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
N, LENGTH = 40, 25


def run(backend, alpha, causal, block, filled, dtype):
    """Return the output and gradients of one whole and one padded sequence, whose padding is ``filled``."""
    generator = torch.Generator().manual_seed(0)
    leaves = [torch.randn(2, 1, N, 16, generator=generator).to(DEVICE, dtype) for _ in range(3)]
    for x in leaves:
        x[1, :, LENGTH:] = filled
        x.requires_grad_()
    mask = block and BlockMask.from_dense(torch.ones(1, 1, -(-N // block), -(-N // block), dtype=torch.bool), block, N)
    lengths = torch.tensor([N, LENGTH], device=DEVICE)
    rules = {"alpha": alpha, "causal": causal, "lengths": lengths, "backend": backend, "check": False}
    output = block_sparse_entmax_attention(*leaves, mask and mask.to(DEVICE), **rules)
    return output, *torch.autograd.grad(output.square().sum(), leaves)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("block", [None, 16])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("alpha", [1, 1.25, 1.5, 2])
@pytest.mark.parametrize("backend", ["gather", "triton"])
def test_padding_may_be_nan(backend, alpha, causal, block, dtype):
    results = [run(backend, alpha, causal, block, filled, dtype) for filled in (0.0, torch.nan, torch.inf)]
    for other in results[1:]:
        for x, y in zip(results[0], other, strict=True):
            assert torch.equal(x, y)


@pytest.mark.parametrize("alpha", [1, 1.25, 1.5, 2])
def test_a_nan_score_gives_nan_in_its_row_alone(alpha):
    q, k, v = torch.randn(3, 1, 2, N, 16, generator=torch.Generator().manual_seed(0)).unbind()
    expected = block_sparse_entmax_attention(q, k, v, alpha=alpha)
    q[:, :, 7] = torch.nan
    output = block_sparse_entmax_attention(q, k, v, alpha=alpha, check=False)
    assert output[:, :, 7].isnan().all()
    others = torch.arange(N) != 7
    assert torch.equal(output[:, :, others], expected[:, :, others])


def test_an_overflow_is_still_reported():
    q = torch.full((1, 1, 4, 16), 1e30)
    with pytest.raises(ValueError, match="a score overflows"):
        block_sparse_entmax_attention(q, q, q, check=False)
