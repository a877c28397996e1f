"""An alpha that is learned, for all heads or for each: outputs and gradients equal dense attention in float64."""

import pytest
import torch
from torch.nn import Parameter

from sparselib.kernels import (
    BlockMask,
    block_sparse_entmax_attention,
    block_sparse_entmax_decode,
)
from sparselib.normalizers import entmax

HEADS, N = 4, 40
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def random_inputs(dtype=torch.float64, kv_heads=2):
    generator = torch.Generator().manual_seed(0)
    shapes = [(2, HEADS, N, 8), (2, kv_heads, N, 8), (2, kv_heads, N, 6)]
    return [torch.randn(shape, generator=generator, dtype=dtype).mul_(2).requires_grad_() for shape in shapes]


def alphas(shape, dtype=torch.float64):
    values = torch.tensor([1.5, 1.01, 2.0, 1.3], dtype=dtype)
    return Parameter(values[: max(1, sum(shape))].reshape(shape))


def dense(q, k, v, seen, alpha, scale, score_mod=None):
    """Compute attention from all scores, with the normaliser of dense attention."""
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = q @ k.mT * scale
    if score_mod is not None:
        places = (
            torch.arange(size).view([-1 if i == j else 1 for j in range(4)]) for i, size in enumerate(scores.shape)
        )
        scores = score_mod(scores, *places)
    seen = seen.expand_as(scores)
    scores = scores.masked_fill(~seen, -torch.inf).masked_fill(~seen.any(-1, keepdim=True), 0.0)
    weights = entmax(scores, alpha.reshape(-1, 1, 1))
    return weights.masked_fill(~seen.any(-1, keepdim=True), 0.0) @ v


def near(b, h, q_idx, kv_idx):
    """Let each head see a window of its own width."""
    return (q_idx - kv_idx).abs() <= 3 + 4 * h


def biased(score, b, h, q_idx, kv_idx):
    return 3 * torch.tanh(score / 3) - 0.1 * (h + 1) * (q_idx - kv_idx).abs()


def triangle():
    return torch.ones(N, N, dtype=torch.bool).tril()


def listed(heads):
    """Return random blocks of 16, and the pairs in them."""
    blocks = torch.rand(1, heads, 3, 3, generator=torch.Generator().manual_seed(1)) < 0.6
    mask = BlockMask.from_dense(blocks, 16, N)
    return mask, blocks.repeat_interleave(16, 2).repeat_interleave(16, 3)[..., :N, :N]


def cases():
    tokens = torch.arange(N)
    lengths = torch.tensor([N, 23])
    real = tokens < lengths[:, None]
    heads = torch.arange(HEADS).view(1, -1, 1, 1)
    windows = near(0, heads, tokens[:, None], tokens)
    yield "all pairs", {}, torch.ones(N, N, dtype=torch.bool)
    yield "causal", {"causal": True}, triangle()
    yield "lengths", {"lengths": lengths}, (real[:, :, None] & real[:, None])[:, None]
    for count in (1, HEADS):
        mask, pairs = listed(count)
        yield f"blocks of {count}", {"block_mask": mask, "causal": True}, pairs & triangle()
    yield "windows", {"mask_mod": near}, windows
    mask, pairs = listed(HEADS)
    whole = BlockMask(mask.kv_num_blocks, mask.kv_indices, 16, N, mask_mod=near)
    yield "windows of a mask", {"block_mask": whole}, pairs & windows
    yield "bias", {"score_mod": biased, "causal": True}, triangle()
    yield "negative scale", {"scale": -0.7, "causal": True}, triangle()


CASES = {name: (rules, seen) for name, rules, seen in cases()}


@pytest.mark.parametrize("shape", [(), (1,), (HEADS,)], ids=str)
@pytest.mark.parametrize("case", CASES)
def test_outputs_and_gradients_equal_dense_attention(case, shape):
    rules, seen = CASES[case]
    upstream = torch.randn(2, HEADS, N, 6, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    results = []
    for function in (
        lambda q, k, v, alpha: block_sparse_entmax_attention(q, k, v, alpha=alpha, **rules),
        lambda q, k, v, alpha: dense(q, k, v, seen, alpha, rules.get("scale", 8**-0.5), rules.get("score_mod")),
    ):
        leaves = [*random_inputs(), alphas(shape)]
        output = function(*leaves)
        results.append([output, *torch.autograd.grad((output * upstream).sum(), leaves)])
    assert results[0][4].shape == shape
    assert results[0][4].abs().min() > 1e-3
    for ours, expected in zip(*results, strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("start", [1.05, 1.25, 1.5, 1.8, 1.999])
def test_the_gradient_is_the_slope_of_the_output(start):
    q, k, v = (x.detach() for x in random_inputs())
    alpha = torch.full((HEADS,), start, dtype=torch.float64, requires_grad=True)

    def total(alpha):
        return block_sparse_entmax_attention(q, k, v, alpha=alpha, causal=True).square().sum((0, 2, 3))

    (slope,) = torch.autograd.grad(total(alpha).sum(), alpha)
    step = 1e-5 if start < 1.9 else 1e-6
    with torch.no_grad():
        expected = (total(alpha + step) - total(alpha - step)) / (2 * step)
    torch.testing.assert_close(slope, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("backend", ["gather", "triton"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_lower_precision(dtype, backend):
    if backend == "triton":
        pytest.importorskip("triton")
    results = []
    for kind in (dtype, torch.float64):
        leaves = [x.detach().to(DEVICE, kind).requires_grad_() for x in random_inputs(dtype)]
        alpha = Parameter(torch.tensor([1.5, 1.25, 2.0, 1.4], dtype=torch.float32, device=DEVICE))
        chosen = backend if kind == dtype else "gather"
        output = block_sparse_entmax_attention(*leaves, alpha=alpha, causal=True, backend=chosen)
        results.append([output, *torch.autograd.grad(output.double().square().sum(), [*leaves, alpha])])
        assert output.dtype == kind
    for ours, expected in zip(*results, strict=True):
        size = expected.abs().max().item()
        torch.testing.assert_close(
            ours.double(), expected.double(), rtol=0, atol=size * (1e-4 if dtype == torch.float32 else 2e-2)
        )


def test_numbers_per_head_need_no_gradient():
    q, k, v = (x.detach() for x in random_inputs())
    alpha = torch.tensor([1.5, 1.25, 2.0, 1.01])
    output = block_sparse_entmax_attention(q, k, v, alpha=alpha)
    assert not output.requires_grad
    for head, value in enumerate(alpha.tolist()):
        expected = block_sparse_entmax_attention(q, k, v, alpha=value)[:, head]
        torch.testing.assert_close(output[:, head], expected)


def test_an_alpha_is_learned():
    """From softmax-like attention, gradient descent finds the alpha that made a target."""
    q, k, v = (x.detach() for x in random_inputs())
    wanted = torch.tensor([1.2, 1.4, 1.6, 1.8], dtype=torch.float64)
    target = block_sparse_entmax_attention(q, k, v, alpha=wanted)
    raw = Parameter(torch.zeros(HEADS, dtype=torch.float64))
    optimizer = torch.optim.Adam([raw], lr=0.1)
    for _ in range(80):
        optimizer.zero_grad()
        output = block_sparse_entmax_attention(q, k, v, alpha=1.01 + 0.99 * raw.sigmoid())
        (output - target).square().sum().backward()
        optimizer.step()
    torch.testing.assert_close((1.01 + 0.99 * raw.sigmoid()).detach(), wanted, rtol=0, atol=0.01)


@pytest.mark.parametrize(
    ("alpha", "rules", "message"),
    [
        (Parameter(torch.tensor(1.0)), {}, r"`alpha` must be from 1\.01 to 2 if it is learned, got 1\.0; for softmax"),
        (Parameter(torch.tensor([1.5, 1.5, 2.1, 1.5])), {}, r"`alpha` must be from 1\.01 to 2"),
        (Parameter(torch.tensor(float("nan"))), {}, r"`alpha` must be from 1\.01 to 2"),
        (torch.tensor([1.5, 1.25]), {}, r"`alpha` must be a number, or a tensor of shape \(\) or \(4,\)"),
        (Parameter(torch.tensor([[1.5]])), {}, r"`alpha` must be a number, or a tensor of shape"),
        (
            Parameter(torch.tensor(1.5)),
            {"certify": True},
            "`alpha` must be one number without a gradient with `certify`",
        ),
        (torch.full((HEADS,), 1.5), {"exact": True}, "`alpha` must be one number without a gradient with `certify`"),
    ],
)
def test_errors_name_the_argument(alpha, rules, message):
    with pytest.raises(ValueError, match=message):
        block_sparse_entmax_attention(*random_inputs(), alpha=alpha, **rules)


@pytest.mark.parametrize("alpha", [Parameter(torch.tensor(1.5)), torch.tensor([1.5, 1.25, 1.5, 1.5])])
def test_decoding_refuses_it(alpha):
    q, k, v = (x.detach() for x in random_inputs())
    with pytest.raises(ValueError, match="`alpha` must be one number without a gradient, got a tensor of shape"):
        block_sparse_entmax_decode(q[:, :, -1:], k, v, alpha=alpha)


def test_compiled_calls_refuse_it():
    torch.compiler.reset()
    compiled = torch.compile(block_sparse_entmax_attention, backend="eager", fullgraph=True)
    with pytest.raises(Exception, match=r"`alpha` must be a number under torch\.compile"):
        compiled(*random_inputs(), alpha=Parameter(torch.tensor(1.5)))
